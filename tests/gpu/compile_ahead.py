"""Compiles what this folder runs into the cache of kernels: most of a run is NVRTC's time.

Usage: python compile_ahead.py ARCH PART PARTS. Each of several processes compiles one part.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "codegen"))

import contraction_cases
import test_gpu_alignment as alignment
import test_gpu_scatters as scatters
from corpus import CASES
from forced import BRANCHING, FORCED

import tracegraph
from lowering.cuda.compile import cubin
from lowering.scheduling import overrides
from lowering.scheduling.overrides import Choices

FREE = Choices()


def sources() -> Iterator[Callable[[], str]]:
    """Each unit's source when it is asked for, the largest units first."""
    for unit in alignment.UNITS.values():
        yield lambda unit=unit: alignment.unit_of(*unit).source
    for name, case in CASES.items():
        yield partial(source, case.function, case.arguments)
        donated = range(len(case.arguments))
        yield partial(source, case.function, case.arguments, donate_argnums=donated)
        for chosen in FORCED.values() if name in BRANCHING else ():
            yield partial(source, case.function, case.arguments, chosen)
    for method in scatters.UFUNCS:
        for dtype in scatters.ELEMENTS:
            yield partial(source_of_updates, method, dtype)
    for name in contraction_cases.CASES:
        for dtype in contraction_cases.DTYPES:
            yield partial(source_of_contraction, name, dtype)


def source_of_updates(method: str, dtype: Any) -> str:
    """The unit of updates that collide."""
    program, given = scatters.updates(method, dtype)
    return source(program, (given,))


def source_of_contraction(name: str, dtype: Any) -> str:
    """The unit of a case of contractions."""
    function, _ = contraction_cases.CASES[name]
    return source(function, contraction_cases.operands(name, dtype))


def source(function: Any, arguments: Any, chosen: Choices = FREE, **options: Any) -> str:
    """The unit of a program."""
    with overrides.override(chosen.branches, chosen.loops, chosen.unroll):
        return tracegraph.jit(function, device="cuda", **options).lower(*arguments).source


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's, about constants
    arch, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for text in islice(sources(), part, None, parts):
        cubin(text(), arch)
