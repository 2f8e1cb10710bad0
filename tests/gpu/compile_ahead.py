"""Compiles the corpus into the cache of kernels: most of a run of this folder is NVRTC's time.

Usage: python compile_ahead.py ARCH PART PARTS. Each of several processes compiles one part.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from corpus import CASES, Case
from forced import BRANCHING, FORCED

import tracegraph
from lowering.cuda.compile import cubin
from lowering.scheduling import overrides
from lowering.scheduling.overrides import Choices


def jobs() -> Iterator[tuple[Case, Choices, dict[str, Any]]]:
    """Each program as it is, with donated arguments, and in the forced ways."""
    for name, case in CASES.items():
        yield case, Choices(), {}
        yield case, Choices(), {"donate_argnums": range(len(case.arguments))}
        for chosen in FORCED.values() if name in BRANCHING else ():
            yield case, chosen, {}


def source(case: Case, chosen: Choices, options: dict[str, Any]) -> str:
    """The unit of a program."""
    with overrides.override(chosen.branches, chosen.loops, chosen.unroll):
        return tracegraph.jit(case.function, device="cuda", **options).lower(*case.arguments).source


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's, about constants
    arch, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for job in islice(jobs(), part, None, parts):
        cubin(source(*job), arch)
