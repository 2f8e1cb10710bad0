"""Planning rules, by the name of the op: how ops are planned that are not scalar expressions.

A rule adds nodes to the builder of a region, and binds the results of its equation.
"""

from __future__ import annotations

from collections.abc import Callable

from lowering.algorithms import ALGORITHMS
from lowering.algorithms.lapack import UPDATED
from lowering.plan.calls.collectives import KINDS
from lowering.planning.control import branches, loop
from lowering.planning.custom_kernels import custom_kernel, embedded_graph
from lowering.planning.effects import (
    debug_callback,
    debug_print,
    host_call,
    pure_callback,
    report_step,
    require,
)
from lowering.planning.events import use_event
from lowering.planning.factorizations import factorization, lapack_routine
from lowering.planning.fourier import fourier_transform
from lowering.planning.libraries.collectives import collective
from lowering.planning.matmul import matrix_product
from lowering.planning.region_builder import RegionBuilder
from lowering.planning.sorting import select, sort
from tracegraph.ir.program import Eqn

RULES: dict[str, Callable[[RegionBuilder, Eqn], None]] = {
    "matmul": matrix_product,
    **dict.fromkeys(("fft", "rfft", "irfft"), fourier_transform),
    **dict.fromkeys(KINDS, collective),
    "custom_kernel": custom_kernel,
    **dict.fromkeys(ALGORITHMS, factorization),
    **dict.fromkeys([op.name for op in UPDATED], lapack_routine),
    "sort": sort,
    "argsort": sort,
    "largest": select,
    "ranked": select,
    "cond": branches,
    "switch": branches,
    "rotated_loop": loop,
    "debug_print": debug_print,
    "debug_callback": debug_callback,
    "pure_callback": pure_callback,
    "host_call": host_call,
    "embedded_graph": embedded_graph,
    "use_event": use_event,
    "mark_time": use_event,
    "require": require,
    "report_step": report_step,
}
