"""Breakpoints: the positions along an axis where an index expression wraps, or is clamped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracegraph.ir.scalar import Axis, Clamp, Compare, Expr, FloorDiv, Mod, affine
from tracegraph.ir.subexpressions import subexpressions


def breakpoints(below: Sequence[Expr], extents: tuple[int, ...]) -> list[list[int]]:
    """Both ends of each axis and the breakpoints between them."""
    ends = [{0, extent} for extent in extents]
    for expr in below:
        for axis, point in _breakpoints_of(expr):
            if 0 < point < axis.extent:
                ends[axis.number].add(point)
    return [sorted(each) for each in ends]


def _breakpoints_of(expr: Expr) -> Iterator[tuple[Axis, int]]:
    """The breakpoints of an expression that depends on one axis only."""
    match expr:
        case Compare(relation=relation, left=left, right=right):
            thresholds = (0, 1) if relation == "==" else (0,)
            yield from _crossings(left - right, thresholds)
        case Clamp(operand=operand, low=low, high=high):
            yield from _crossings(operand, (low, high))
        case FloorDiv(operand=operand, divisor=divisor) | Mod(operand=operand, divisor=divisor):
            yield from _crossings(operand, (-divisor, 0, divisor, 2 * divisor))


def _crossings(operand: Expr, thresholds: tuple[int, ...]) -> Iterator[tuple[Axis, int]]:
    """The first points at which factor · axis + offset reaches a threshold."""
    found, axes = affine(operand), [e for e in subexpressions((operand,)) if isinstance(e, Axis)]
    if found is None or len(axes) != 1:
        return
    (factor,), offset = found[0].values(), found[1]
    for threshold in thresholds:
        if factor > 0:
            yield axes[0], -((offset - threshold) // factor)
        else:
            yield axes[0], (offset - threshold) // -factor + 1
