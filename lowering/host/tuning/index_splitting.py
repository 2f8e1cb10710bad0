"""Nests rewritten so that more of their loads and stores are strided views.

Remainders and quotients of an axis (reshapes, tiles) disappear when the axis is split in two;
guards, clamps and wrap-arounds (concatenations, pads, rolls) when the space is cut where they
change. Both are substitutions: the folding of index expressions does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod

from lowering.host.access_maps import access_map
from lowering.host.evaluate import Evaluator
from lowering.host.instructions import backwards
from lowering.host.tuning.contiguous_ranges import WASTE
from lowering.host.tuning.index_breakpoints import breakpoints
from lowering.host.tuning.wrapped_loads import pieces_of, wraps
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import MapNest, Nest, ReduceNest, RowNest
from lowering.plan.nest_analysis import (
    nest_expressions,
    nest_loads,
    nest_reads,
    nest_roots,
    nest_writes,
)
from lowering.plan.nest_rewriting import map_nest
from tracegraph.ir.scalar import Apply, Axis, Expr, FloorDiv, Load, Mod, Select
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ir.types import row_major_strides

FEW_PARTS = 4
"""Parts into which a nest of any size may be cut: no more calls than masks would need."""

CALL, APART, ROW, ROW_BYTE, STRIDED = 0.4, 0.5, 0.015, 0.00007, 0.0007
"""Microseconds, about: of a call, more of one on what is not one range of memory, of each row of
that, of each byte of these rows, for few of them begin where a cache line does, and of rows of one
element."""

COPY, VIEW = 0.2, 0.1
"""Microseconds of a copy, and of a window of what is not at the same place in each call."""

CACHED_BYTES, CACHED, UNCACHED = 1 << 18, 0.00003, 0.0001
"""What fits a cache, and microseconds for each byte that is copied within it, and beyond it."""

MANY_PARTS = 32
PART_ELEMENTS = 1 << 12
"""Elements that a part must have on average where there are more than a few."""


def split_index_sets(nest: Nest) -> list[Nest]:
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


def _cut(nest: MapNest) -> Iterator[Nest]:
    ends = breakpoints(nest_expressions(nest), nest.space)
    axes_of = Evaluator(nest.space).axes_of
    wrapping = [load for load in nest_loads(nest) if pieces_of(load, nest.space, axes_of)]
    if wrapping:
        others = subexpressions(nest_roots(nest), set(wrapping))
        fewer = breakpoints(others, nest.space)
        if _copies_pay(nest, ends, fewer, wrapping):
            ends = fewer
    parts = prod(len(points) - 1 for points in ends)
    few = parts <= FEW_PARTS or parts <= min(MANY_PARTS, prod(nest.space) // PART_ELEMENTS)
    if parts == 1 or not few:
        yield nest
        return
    for box in product(*map(pairwise, ends)):
        moved: dict[Expr, Expr] = {}
        for axis in _axes(nest):
            start, stop = box[axis.number]
            moved[axis] = Axis.make(axis.number, stop - start) + start
        part = map_nest(nest, moved)
        yield replace(part, space=tuple(stop - start for start, stop in box))


def _axes(nest: Nest) -> list[Axis]:
    return [e for e in nest_expressions(nest) if isinstance(e, Axis)]


# -- copying what wraps around instead ---------------------------------------------------------


def _copies_pay(
    nest: MapNest,
    ends: Sequence[Sequence[int]],
    fewer: Sequence[Sequence[int]],
    wrapping: Sequence[Load],
) -> bool:
    """Whether calls on fewer parts save more than it costs to copy loads that wrap around."""
    stored, copied = {store.value for store in nest.stores}, 0.0
    for load in wrapping:
        pieces = wraps(load, nest.space)
        assert pieces is not None
        each_piece = COPY + VIEW * _moves(load.buffer)
        copied += each_piece * prod(len(each) - 1 for each in pieces)
        if load not in stored:
            nbytes = prod(nest.space) * load.dtype.itemsize
            copied += nbytes * (CACHED if nbytes <= CACHED_BYTES else UNCACHED)
    return _time_of_calls(nest, fewer) + copied < _time_of_calls(nest, ends)


def _time_of_calls(nest: MapNest, ends: Sequence[Sequence[int]]) -> float:
    """What calls on the parts of a nest take, besides what they take for each element."""
    calls = sum(isinstance(e, Apply | Select) for e in nest_expressions(nest))
    calls += sum(isinstance(store.value, Load) for store in nest.stores)
    boxes = [tuple(b - a for a, b in box) for box in product(*map(pairwise, ends))]
    size = max(store.buffer.type.dtype.itemsize for store in nest.stores)
    times = [CALL + _time_of_rows(own, nest.space, size) for own in boxes]
    touched = nest_reads(nest) | nest_writes(nest)
    if len(boxes) > 1 and _may_be_ranges(nest):
        largest = max(range(len(boxes)), key=lambda k: prod(boxes[k]))
        if _length_of_range(boxes[largest], nest.space) <= WASTE * prod(boxes[largest]):
            times[largest] = CALL  # `hull` makes a range of its rows
    views = len(boxes) * sum(map(_moves, touched)) if len(boxes) > 1 else 0
    return calls * sum(times) + VIEW * views


def _length_of_range(own: tuple[int, ...], space: tuple[int, ...]) -> int:
    """Elements from the first to the last of a part of an array."""
    return 1 + sum((n - 1) * step for n, step in zip(own, row_major_strides(space), strict=True))


def _may_be_ranges(nest: MapNest) -> bool:
    """Whether all arrays are of one shape, or scalars, and read in the order of memory."""
    touched = nest_reads(nest) | nest_writes(nest)
    if any(buffer.type.shape not in ((), nest.space) for buffer in touched):
        return False
    axes_of = Evaluator(nest.space).axes_of
    for load in nest_loads(nest):
        pieces = pieces_of(load, nest.space, axes_of)
        if pieces is not None and any(map(backwards, pieces.sources)):
            return False
        if pieces is None:
            where = access_map(load.buffer, load.indices, nest.space, axes_of)
            if min(where.strides.values(), default=0) < 0:
                return False
    return True


def _moves(buffer: Buffer) -> bool:
    """Whether it is an array that a call brings or makes."""
    return buffer.space in ("input", "output")


def _time_of_rows(own: tuple[int, ...], space: tuple[int, ...], size: int) -> float:
    """What a call takes longer on a part of an array than on the same number of neighbours, of so
    many bytes each.
    """
    last = max((axis for axis, n in enumerate(space) if own[axis] < n), default=0)
    rows = prod(own[:last])
    if rows == 1:
        return 0.0
    if prod(own[last:]) == 1:
        return APART + STRIDED * rows
    return APART + ROW * rows + ROW_BYTE * prod(own) * size
