"""Positions that a program was given: negative ones count from the end of an axis, and some lie
past it.

Most lie on the axis. Read as unsigned numbers, negative ones are larger than all others, so that
one look for the largest tells; to compare, add and choose is several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowering.host.arena import Array
from tracegraph.ir.scalar import Both, Clamp, Compare, Const, Expr, Select, select


class Wrapping(NamedTuple):
    """An index into an axis of `extent` that counts from the end where it is negative, `clamped` to
    the axis or not.
    """

    given: Expr
    extent: int
    clamped: bool


def wrapping_of(expr: Expr) -> Wrapping | None:
    """What an expression wraps, if that is all it does."""
    wrapped = expr.operand if isinstance(expr, Clamp) else expr
    if not isinstance(wrapped, Select):
        return None
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
    """The index of which an expression tells whether it lies on an axis, and the axis's extent."""
    match expr:
        case Both(
            left=Compare(relation=">=", left=index, right=Const(value=0)),
            right=Compare(relation="<", left=other, right=Const(value=int(extent))),
        ) if other is index:
            return index, extent
    return None


def wrap(wrapping: Wrapping) -> Callable[[Array], Array]:
    """A function that wraps an index, and clamps it if that is asked for: itself if all lie on the
    axis.
    """
    _, extent, clamped = wrapping

    def wrapped(index: Array) -> Array:
        if _all_within(index, extent):
            return index
        found = np.where(index < 0, index + extent, index)
        return found.clip(0, extent - 1, found) if clamped else found

    return wrapped


def wrap_into(wrapping: Wrapping) -> Callable[[Array, Array], None]:
    """The same as a function (index, out); both may be one array."""
    wrapped = wrap(wrapping)

    def write(index: Array, out: Array) -> None:
        found = wrapped(index)
        if found is not out:
            np.copyto(out, found)

    return write


def within(extent: int) -> Callable[[Array, Array], None]:
    """A function (index, out) that tells of each index whether it lies on the axis."""

    def lies_within(index: Array, out: Array) -> None:
        if _all_within(index, extent):
            out.fill(True)
        else:
            np.less(index.view(np.uint64), extent, out)

    return lies_within


def _all_within(index: Array, extent: int) -> bool:
    return not index.size or bool(np.maximum.reduce(index.view(np.uint64), None) < extent)
