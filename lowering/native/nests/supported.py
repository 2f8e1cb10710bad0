"""Which nests have a native form: those whose ops and combiners the library has.

Others, such as prints and users' functions, are calls of the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.native.library.load import has
from lowering.native.library.symbols import Function, combiner, elementwise
from lowering.native.nests.nest_kinds import NEST_WRITERS
from lowering.native.nests.operations import direct_instruction, fold_dtype
from lowering.plan.nests.analysis import nest_accumulators, nest_expressions
from lowering.plan.nests.kernel import CallNest, Nest, ScanNest, ScatterNest
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar_values import Apply


def missing(nest: Nest) -> str:
    """The first thing of a nest that native code does not have; "" if it has all.

    >>> from lowering.plan.nests.kernel import MapNest
    >>> missing(MapNest((3,), ()))
    ''
    """
    if type(nest) not in NEST_WRITERS:
        return "a callback" if isinstance(nest, CallNest) else "a print"
    for expr in nest_expressions(nest):
        if isinstance(expr, Apply):
            dtypes = [arg.dtype for arg in expr.args]
            if not _is_there(elementwise(expr.op, expr.attrs, dtypes, expr.dtype)):
                return f"the op {expr.op.name}"
    for how, dtype in _folds(nest):
        wide = fold_dtype(dtype)
        if direct_instruction(how, wide) is None and not _is_there(combiner(how, wide)):
            return f"a fold by {how.name}"
    return ""


def _is_there(function: Function | None) -> bool:
    """Whether the library has a function; it lacks some values of attributes."""
    return function is not None and has(function.name)


def _folds(nest: Nest) -> list[tuple[Combiner, np.dtype[Any]]]:
    if isinstance(nest, ScanNest):
        return [(nest.combiner, nest.store.value.dtype)]
    if isinstance(nest, ScatterNest):
        return [] if nest.combiner is None else [(nest.combiner, nest.store.value.dtype)]
    return [(a.combiner, a.value.dtype) for a in nest_accumulators(nest) if not a.arg]
