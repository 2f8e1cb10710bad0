"""Index wrapping: a fast path for indices that are all in range.

A negative index counts from the end of an axis. Most index arrays have none. As unsigned numbers,
negative indices are larger than all others, so one maximum finds out whether all are in range. To
compare, add and select takes several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation.evaluate import Evaluation, Evaluator
from lowering.host.evaluation.instructions import DynamicView, NumpyValue, View
from tracegraph.ir.scalar import Both, Clamp, Compare, Const, Expr, Select, select


class Wrapping(NamedTuple):
    """A `given` index into an axis of `extent` that wraps if negative; perhaps `clamped` to it."""

    given: Expr
    extent: int
    clamped: bool


def wrapped_index(run: Evaluator, expr: Expr) -> Evaluation | None:
    """The form of an index that wraps, or of a test whether it is in range."""
    if not isinstance(expr, Clamp | Select | Both) or not run.axes_of(expr):
        return None
    if isinstance(expr, Both):
        found = range_of(expr)
        if found is None:
            return None
        index, extent = found
        test = within(extent)
        return Evaluation((index,), lambda: run.write(test, (run.value(index),), expr.dtype))
    wrapping = wrapping_of(expr)
    if wrapping is None:
        return None

    def emit() -> NumpyValue:
        value = run.value(wrapping.given)
        if not isinstance(value, View | DynamicView):
            return run.write(wrap_into(wrapping), (value,), expr.dtype)
        output = DynamicView(value.dtype, value.shape, value.dims, value.buffer, value.strides)
        return run.assign(wrap(wrapping), (value,), output)

    return Evaluation((wrapping.given,), emit)


def wrapping_of(expr: Expr) -> Wrapping | None:
    """The wrapping that an expression is."""
    wrapped = expr.operand if isinstance(expr, Clamp) else expr
    if not isinstance(wrapped, Select) or wrapped.dtype.kind not in "iu":
        return None  # only an index wraps
    index = wrapped.other
    extent = wrapped.chosen - index
    if not isinstance(extent, Const) or not isinstance(extent.value, int):
        return None
    if wrapped is not select(index < 0, wrapped.chosen, index):
        return None
    if isinstance(expr, Clamp) and (expr.low, expr.high) != (0, extent.value - 1):
        return None
    return Wrapping(index, extent.value, isinstance(expr, Clamp))


def range_of(expr: Expr) -> tuple[Expr, int] | None:
    """The index that an expression compares with an axis, and the axis's extent."""
    match expr:
        case Both(
            left=Compare(relation=">=", left=index, right=Const(value=0)),
            right=Compare(relation="<", left=other, right=Const(value=int(extent))),
        ) if other is index:
            return index, extent
    return None


def wrap(wrapping: Wrapping) -> Callable[[Array], Array]:
    """A function from indices to wrapped indices; the same array if all are in range."""
    _, extent, clamped = wrapping

    def wrapped(index: Array) -> Array:
        if _all_within(index, extent):
            return index
        found = np.where(index < 0, index + extent, index)
        return found.clip(0, extent - 1, found) if clamped else found

    return wrapped


def wrap_into(wrapping: Wrapping) -> Callable[[Array, Array], None]:
    """The same as a function (index, out); `out` may be `index`."""
    wrapped = wrap(wrapping)

    def write(index: Array, out: Array) -> None:
        found = wrapped(index)
        if found is not out:
            np.copyto(out, found)

    return write


def within(extent: int) -> Callable[[Array, Array], None]:
    """A function (index, out): whether each index is in range."""

    def in_range(index: Array, out: Array) -> None:
        if _all_within(index, extent):
            out.fill(True)
        else:
            np.less(index.view(np.uint64), extent, out)

    return in_range


def _all_within(index: Array, extent: int) -> bool:
    return not index.size or bool(np.maximum.reduce(index.view(np.uint64), None) < extent)
