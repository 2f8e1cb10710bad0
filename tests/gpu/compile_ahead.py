"""Compiles what this folder runs into the cache of kernels: most of a run is NVRTC's time.

Usage: python compile_ahead.py ARCH PART PARTS. Each of several processes compiles one part.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "codegen"))

import contraction_cases
import numpy as np
import test_gpu_alignment as alignment
import test_gpu_derivatives as derivatives
import test_gpu_gradients as gradients
import test_gpu_one_kernel as one_kernel
import test_gpu_scatters as scatters
import test_gpu_sorting as sorting
from corpus import CASES
from derivative_cases import SMOOTH
from forced import BRANCHING, FORCED
from gradient_programs import PROGRAMS, X
from vmap_cases import VMAP_CASES

import tracegraph
from lowering.codegen import partition, translation_unit, unit_source
from lowering.cuda.compile import cubin, usable_processors
from lowering.cuda.graph.compiled_plan import functions_of
from lowering.scheduling.overrides import Choices
from tracegraph.testing.ways import using

FREE = Choices()


def sources() -> Iterator[Callable[[], list[str]]]:
    """The sources of each program's units when they are asked for, the largest units first."""
    for unit in alignment.UNITS.values():
        yield lambda unit=unit: [alignment.unit_of(*unit).source]
    for name, case in CASES.items():
        yield partial(source, case.function, case.arguments)
        donated = range(len(case.arguments))
        yield partial(source, case.function, case.arguments, donate_argnums=donated)
        for chosen in FORCED.values() if name in BRANCHING else ():
            yield partial(source, case.function, case.arguments, chosen)
    for method in scatters.UFUNCS:
        for dtype in scatters.ELEMENTS:
            yield partial(source_of_updates, method, dtype)
    for dtype in sorting.DTYPES:
        yield partial(source, sorting.all_of_them, (sorting.given(dtype),))
    for name in contraction_cases.CASES:
        for dtype in contraction_cases.DTYPES:
            yield partial(source_of_contraction, name, dtype)
    for op in SMOOTH:
        for dtype in derivatives.DTYPES:
            if chosen_cases := derivatives.cases(op, dtype):
                function, given = derivatives.both_modes(chosen_cases)
                yield partial(source, function, (given,))
    for program in PROGRAMS:
        yield partial(source, tracegraph.grad(program), (X,))
        for scope in gradients.SCOPES:
            chosen = Choices(loops="one_kernel", scope=scope)
            yield partial(source, tracegraph.grad(program), (X,), chosen)
    for case in VMAP_CASES.values():
        yield partial(source, tracegraph.vmap(case.function, case.axes), case.arguments)
    for scope in one_kernel.SCOPES:
        chosen = Choices(loops="one_kernel", scope=scope)
        for size, dtype in product(one_kernel.SIZES, one_kernel.DTYPES):
            x = np.zeros(size, dtype)
            yield partial(source, one_kernel.diffusion, (x, 3), chosen)


def source_of_updates(method: str, dtype: Any) -> list[str]:
    """The units of updates that collide."""
    program, given = scatters.updates(method, dtype)
    return source(program, (given,))


def source_of_contraction(name: str, dtype: Any) -> list[str]:
    """The units of a case of contractions."""
    function, _ = contraction_cases.CASES[name]
    return source(function, contraction_cases.operands(name, dtype))


def source(function: Any, arguments: Any, chosen: Choices = FREE, **options: Any) -> list[str]:
    """The units of a program."""
    with using(chosen):
        plan = tracegraph.jit(function, device="cuda", **options).lower(*arguments).plan
    unit = unit_source(plan)
    parts = partition(functions_of(plan, unit), usable_processors())
    return [translation_unit(part.values(), unit.definitions) for part in parts]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's, about constants
    arch, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for units in islice(sources(), part, None, parts):
        for text in units():
            cubin(text, arch)
