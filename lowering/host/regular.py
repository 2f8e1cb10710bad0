"""Nests rewritten so that more of their loads and stores are strided views.

Remainders and quotients of an axis (reshapes, tiles) disappear when the axis is split in two;
guards, clamps and wrap-arounds (concatenations, pads, rolls) when the space is cut where they
change. Both are substitutions: the folding of index expressions does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from math import prod

from lowering.facts import nest_expressions
from lowering.kernel import MapNest, Nest, ReduceNest, RowNest
from lowering.stage import map_nest
from tracegraph.scalar import Axis, Clamp, Compare, Expr, FloorDiv, Mod, affine
from tracegraph.subexpressions import subexpressions

FEW_PARTS = 4
"""Parts into which a nest of any size may be cut: no more calls than masks would need."""

MANY_PARTS = 32
PART_ELEMENTS = 1 << 12
"""Elements that a part must have on average where there are more than a few."""


def regular_nests(nest: Nest) -> list[Nest]:
    """Nests that together do what `nest` does."""
    if 0 in nest.space or not isinstance(nest, MapNest | ReduceNest | RowNest):
        return [nest]
    split = _split_axes(nest)
    return [*_cut(split)] if isinstance(split, MapNest) else [split]


# -- splitting axes ----------------------------------------------------------------------------


def _split_axes(nest: Nest) -> Nest:
    while (found := _divided_axis(nest)) is not None:
        nest = _split(nest, *found)
    return nest


def _divided_axis(nest: Nest) -> tuple[Axis, int] | None:
    """An axis of which the quotient or remainder by a proper divisor is taken."""
    for expr in nest_expressions(nest):
        if isinstance(expr, FloorDiv | Mod) and isinstance(expr.operand, Axis):
            axis, divisor = expr.operand, expr.divisor
            if 1 < divisor < axis.extent and axis.extent % divisor == 0:
                return axis, divisor
    return None


def _split(nest: Nest, axis: Axis, divisor: int) -> Nest:
    parts = (axis.extent // divisor, divisor)
    moved: dict[Expr, Expr] = {}
    for later in _axes(nest):
        if later.number > axis.number:
            moved[later] = Axis.make(later.number + 1, later.extent)
    outer, inner = (Axis.make(axis.number + i, extent) for i, extent in enumerate(parts))
    moved[axis] = outer * divisor + inner
    rank, at = len(nest.space), axis.number
    nest = map_nest(nest, moved)
    if at < rank:
        return replace(nest, space=(*nest.space[:at], *parts, *nest.space[at + 1 :]))
    assert isinstance(nest, ReduceNest | RowNest)
    at -= rank
    return replace(nest, loop=(*nest.loop[:at], *parts, *nest.loop[at + 1 :]))


# -- cutting the space -------------------------------------------------------------------------


def _cut(nest: Nest) -> Iterator[Nest]:
    ends = [{0, extent} for extent in nest.space]
    for expr in nest_expressions(nest):
        for axis, point in _turning_points(expr):
            if 0 < point < axis.extent:
                ends[axis.number].add(point)
    parts = prod(len(points) - 1 for points in ends)
    few = parts <= FEW_PARTS or parts <= min(MANY_PARTS, prod(nest.space) // PART_ELEMENTS)
    if parts == 1 or not few:
        yield nest
        return
    for box in product(*(pairwise(sorted(points)) for points in ends)):
        moved: dict[Expr, Expr] = {}
        for axis in _axes(nest):
            start, stop = box[axis.number]
            moved[axis] = Axis.make(axis.number, stop - start) + start
        part = map_nest(nest, moved)
        yield replace(part, space=tuple(stop - start for start, stop in box))


def _axes(nest: Nest) -> list[Axis]:
    return [e for e in nest_expressions(nest) if isinstance(e, Axis)]


def _turning_points(expr: Expr) -> Iterator[tuple[Axis, int]]:
    """Where along an axis an expression of that axis alone begins to follow another rule."""
    match expr:
        case Compare(relation=relation, left=left, right=right):
            thresholds = (0, 1) if relation == "==" else (0,)
            yield from _crossings(left - right, thresholds)
        case Clamp(operand=operand, low=low, high=high):
            yield from _crossings(operand, (low, high))
        case FloorDiv(operand=operand, divisor=divisor) | Mod(operand=operand, divisor=divisor):
            yield from _crossings(operand, (-divisor, 0, divisor, 2 * divisor))


def _crossings(operand: Expr, thresholds: tuple[int, ...]) -> Iterator[tuple[Axis, int]]:
    """The points from which factor · axis + offset is at a threshold or past it."""
    found, axes = affine(operand), [e for e in subexpressions((operand,)) if isinstance(e, Axis)]
    if found is None or len(axes) != 1:
        return
    (factor,), offset = found[0].values(), found[1]
    for threshold in thresholds:
        if factor > 0:
            yield axes[0], -((offset - threshold) // factor)
        else:
            yield axes[0], (offset - threshold) // -factor + 1
