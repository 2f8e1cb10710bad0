"""Empty caches of compiled kernels, so that every first run compiles."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLES = (
    "TRACEGRAPH_CACHE_DIR",
    "CUPY_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "WARP_CACHE_PATH",
)
"""Where libraries keep compiled kernels. JAX keeps none unless it is configured to."""

PLANS = "TRACEGRAPH_CACHE_PROGRAMS"
"""Whether whole programs are kept: rows of planning plan the same one again and again."""


@contextmanager
def empty_caches() -> Iterator[None]:
    """While it is open, libraries keep what they compile in new directories."""
    before = {variable: os.environ.get(variable) for variable in (*VARIABLES, PLANS)}
    with tempfile.TemporaryDirectory() as directory:
        os.environ[PLANS] = "0"
        for variable in VARIABLES:
            os.environ[variable] = str(Path(directory) / variable.lower())
        try:
            yield
        finally:
            for variable, value in before.items():
                if value is None:
                    del os.environ[variable]
                else:
                    os.environ[variable] = value
