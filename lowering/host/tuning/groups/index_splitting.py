"""Index-set splitting: more loads and stores become strided views.

Remainders and quotients of an axis (reshapes, tiles) disappear when the axis is split in two
(strip-mining). Guards, clamps and wrap-arounds (concatenations, pads, rolls) disappear when the
space is split at their breakpoints. Both are substitutions; the folding of index expressions does
the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod

from lowering.host.evaluation.access_maps import access_map
from lowering.host.evaluation.axis_dependence import AxisDependence
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.nest_program import NestGroup
from lowering.host.tuning.expressions.wrapped_loads import pieces_of, wraps
from lowering.host.tuning.groups.index_breakpoints import breakpoints
from lowering.host.tuning.instructions.contiguous_ranges import WASTE, overwritten_whole
from lowering.host.tuning.instructions.memory_orders import negative_dims
from lowering.plan.nests.analysis import (
    nest_expressions,
    nest_loads,
    nest_reads,
    nest_roots,
    nest_writes,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest
from lowering.plan.nests.rewriting import map_nest
from tracegraph.ir.scalar import Axis, Expr, FloorDiv, Mod, Select
from tracegraph.ir.scalar_values import Apply, Load
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ir.types import row_major_strides

FEW_PARTS = 4
"""Most parts of a nest of any size: masks would need about as many calls."""

CALL, SCATTERED, ROW, ROW_BYTE, STRIDED = 0.4, 0.5, 0.015, 0.00007, 0.0007
"""Microseconds, fitted to timings of `add` on windows of 100 and 500 rows of float32: a call; more
if its array is not contiguous; more for each row of that; for each byte of such rows, few of which
start at a cache line; and for each row of one element."""

COPY, VIEW = 0.2, 0.1
"""Microseconds of a copy of 2 KiB and of a slice or reshape."""

CACHED_BYTES, CACHED, UNCACHED = 1 << 18, 0.00003, 0.0001
"""Bytes that stay in the second-level cache, and microseconds to copy a byte there and beyond."""

MANY_PARTS, PART_ELEMENTS = 32, 1 << 12
"""Most parts of a large nest, and the elements of an average part from which the calls on it cost
less than masks: an `add` of 4096 float32 takes 0.7 µs, of 100 it takes 0.3."""


def split_groups(groups: list[NestGroup], overlaps: Overlaps) -> list[NestGroup]:
    """The groups, one for each part of a nest.

    If a nest overwrites whole buffers, its largest part comes first and may write more than its own
    elements: the other parts overwrite those.
    """
    first: list[NestGroup] = []
    others: list[NestGroup] = []
    for group in groups:
        for nest in group.nests:
            parts = split_index_sets(nest)
            if len(parts) > 1 and (overwritten := overwritten_whole(nest, overlaps)):
                largest = max(parts, key=lambda part: prod(part.space))
                first.append(NestGroup((largest,), overwritten=overwritten))
                parts.remove(largest)
            others += [NestGroup((part,)) for part in parts]
    return [*first, *others]


def split_index_sets(nest: Nest) -> list[Nest]:
    """The parts of a nest."""
    if 0 in nest.space or not isinstance(nest, MapNest | ReduceNest | RowNest):
        return [nest]
    split = _split_axes(nest)
    return [*_split_space(split)] if isinstance(split, MapNest) else [split]


# -- strip-mining ----------------------------------------------------------------------------


def _split_axes(nest: Nest) -> Nest:
    while (found := _divided_axis(nest)) is not None:
        nest = _split(nest, *found)
    return nest


def _divided_axis(nest: Nest) -> tuple[Axis, int] | None:
    """An axis that is divided by a proper divisor of its extent, and the divisor."""
    for expr in nest_expressions(nest):
        if isinstance(expr, FloorDiv | Mod) and isinstance(expr.operand, Axis):
            axis, divisor = expr.operand, expr.divisor
            if 1 < divisor < axis.extent and axis.extent % divisor == 0:
                return axis, divisor
    return None


def _split(nest: Nest, axis: Axis, divisor: int) -> Nest:
    parts = (axis.extent // divisor, divisor)
    replacement: dict[Expr, Expr] = {}
    for later in _axes(nest):
        if later.number > axis.number:
            replacement[later] = Axis.make(later.number + 1, later.extent)
    outer, inner = (Axis.make(axis.number + i, extent) for i, extent in enumerate(parts))
    replacement[axis] = outer * divisor + inner
    rank, at = len(nest.space), axis.number
    nest = map_nest(nest, replacement)
    if at < rank:
        return replace(nest, space=(*nest.space[:at], *parts, *nest.space[at + 1 :]))
    assert isinstance(nest, ReduceNest | RowNest)
    at -= rank
    return replace(nest, loop=(*nest.loop[:at], *parts, *nest.loop[at + 1 :]))


# -- splitting the space -----------------------------------------------------------------------


def _split_space(nest: MapNest) -> Iterator[Nest]:
    ends = breakpoints(nest_expressions(nest), nest.space)
    axes_of = AxisDependence(nest.space)
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
        replacement: dict[Expr, Expr] = {}
        for axis in _axes(nest):
            start, stop = box[axis.number]
            replacement[axis] = Axis.make(axis.number, stop - start) + start
        part = map_nest(nest, replacement)
        yield replace(part, space=tuple(stop - start for start, stop in box))


def _axes(nest: Nest) -> list[Axis]:
    return [e for e in nest_expressions(nest) if isinstance(e, Axis)]


# -- or copying what wraps around ---------------------------------------------------------------


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
    """Microseconds of the calls on the parts of a nest, without the time per element."""
    calls = sum(isinstance(e, Apply | Select) for e in nest_expressions(nest))
    calls += sum(isinstance(store.value, Load) for store in nest.stores)
    boxes = [tuple(b - a for a, b in box) for box in product(*map(pairwise, ends))]
    size = max(store.buffer.type.dtype.itemsize for store in nest.stores)
    times = [CALL + _time_of_rows(own, nest.space, size) for own in boxes]
    touched = nest_reads(nest) | nest_writes(nest)
    if len(boxes) > 1 and _may_be_ranges(nest):
        largest = max(range(len(boxes)), key=lambda k: prod(boxes[k]))
        if _length_of_range(boxes[largest], nest.space) <= WASTE * prod(boxes[largest]):
            times[largest] = CALL  # it will be one contiguous range
    views = len(boxes) * sum(map(_moves, touched)) if len(boxes) > 1 else 0
    return calls * sum(times) + VIEW * views


def _length_of_range(own: tuple[int, ...], space: tuple[int, ...]) -> int:
    """Elements from the first to the last of a part of an array, both included."""
    return 1 + sum((n - 1) * step for n, step in zip(own, row_major_strides(space), strict=True))


def _may_be_ranges(nest: MapNest) -> bool:
    """Whether all arrays are scalars or have the nest's shape, with positive strides."""
    touched = nest_reads(nest) | nest_writes(nest)
    if any(buffer.type.shape not in ((), nest.space) for buffer in touched):
        return False
    axes_of = AxisDependence(nest.space)
    for load in nest_loads(nest):
        pieces = pieces_of(load, nest.space, axes_of)
        if pieces is not None and any(map(negative_dims, pieces.sources)):
            return False
        if pieces is None:
            where = access_map(load.buffer, load.indices, nest.space, axes_of)
            if min(where.strides.values(), default=0) < 0:
                return False
    return True


def _moves(buffer: Buffer) -> bool:
    """Whether its address changes from call to call."""
    return buffer.space in ("input", "output")


def _time_of_rows(own: tuple[int, ...], space: tuple[int, ...], size: int) -> float:
    """Microseconds that a call on a part of an array takes beyond one on a contiguous array.

    Elements have `size` bytes.
    """
    last = max((axis for axis, n in enumerate(space) if own[axis] < n), default=0)
    rows = prod(own[:last])
    if rows == 1:
        return 0.0
    if prod(own[last:]) == 1:
        return SCATTERED + STRIDED * rows
    return SCATTERED + ROW * rows + ROW_BYTE * prod(own) * size
