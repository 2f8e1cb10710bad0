"""What of this installation a Plan depends on: the code of both packages, and what they call."""

from __future__ import annotations

import platform
from functools import cache
from hashlib import sha256
from pathlib import Path

import ml_dtypes
import numpy as np

from tracegraph import version

_SUFFIXES = frozenset({".py", ".cuh", ".ll"})


@cache
def installation() -> str:
    """A digest of versions, and of the sizes of all files of both packages.

    Of a checkout, the times of changes count, too. It takes some milliseconds, once.
    """
    roots = (Path(version.__file__).parent, Path(__file__).parents[1])
    digest = sha256()
    packages = (version.__version__, np.__version__, ml_dtypes.__version__)
    digest.update(repr((packages, platform.python_version(), platform.machine())).encode())
    for root in roots:
        is_installed = "site-packages" in root.parts or "dist-packages" in root.parts
        for path in sorted(root.rglob("*")):
            if path.suffix in _SUFFIXES:
                status = path.stat()
                when = 0 if is_installed else status.st_mtime_ns
                line = f"{path.relative_to(root)} {status.st_size} {when}\n"
                digest.update(line.encode())
    return digest.hexdigest()
