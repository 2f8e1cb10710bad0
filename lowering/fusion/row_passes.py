"""Merging along rows: maps and reductions over the same elements become passes of one nest.

A `ReduceNest` and what is computed from it, element by element, read the same rows: softmax, layer
normalisation, an update followed by the norm of the result. As passes of one `RowNest` they read
memory once, and cost one node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType

from lowering.fusion.access_patterns import crossed, loop_is_contiguous
from lowering.plan.buffer import Buffer
from lowering.plan.hardware import SECTOR_BYTES
from lowering.plan.kernel import MapNest, Nest, Pass, ReduceNest, RowNest, space_index
from lowering.plan.nest_analysis import (
    as_rows,
    loads,
    nest_accumulated,
    nest_loads,
    nest_stores,
    share_analysis,
)
from lowering.plan.nest_rewriting import map_nest
from lowering.plan.target import FusionPolicy
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import subexpressions, substitution

MANY_ROWS = 512
"""Rows that keep a device busy when each is one block's: several passes need a row in one block."""

MOST_CLUSTER = 8
"""Blocks that may share a row: as many as every device that has clusters can run together."""

LEAST_SHARE = 4096
"""Elements of a row that each of several blocks should have at least."""

KEPT_ROW = 1 << 17
"""Elements of a row that the registers of a cluster hold of any dtype, so that it is read once."""

FEWEST_BLOCKS = 128
"""Blocks of such rows that are quicker together than separate kernels, which read rows anew."""

KEPT_COLUMN = 512
"""The same of a column, of which a block has the neighbours too, so that there are fewer blocks."""

MANY_COLUMNS = 8192
"""Columns that keep a device busy though they are read once a pass."""

SHORT = 1 << 14
"""Elements in all up to which a few blocks are quick enough, whatever the number of rows."""

SHORT_BLOCK = 1 << 13
"""Elements of one block then. It moves about 80 GB/s, a kernel more takes 0.7 µs and makes, where
all blocks share the work, a fold that takes half a microsecond longer: in that time a block moves
96 KB, three accesses to 8,000 elements of four bytes.
"""

FEWEST_ACROSS = 1 << 13
"""Points below which a dozen accesses across memory cost less than a kernel."""

BLOCK_COLUMNS = 32
"""Neighbouring columns that a block has, where rows run across memory."""


def join_rows(
    first: Nest, second: Nest, policy: FusionPolicy, kept: Collection[Buffer] = ()
) -> RowNest | ReduceNest | None:
    """Both as passes of one nest, `second` computed from what `first` stores; None if impossible.

    What is stored in a buffer of `kept` is read back by later passes; else it is computed again.
    """
    rows = _joined(first, second, kept)
    if rows is not None and _crosses_more(rows, first, second, policy):
        return None
    if rows is None or len(rows.passes) != 1 or rows.passes[0].stores:
        return rows
    # nothing but a fold, which blocks may share whatever its shape
    (only,) = rows.passes
    return ReduceNest(rows.space, rows.loop, only.accumulators, rows.stores, rows.signals)


def _joined(first: Nest, second: Nest, kept: Collection[Buffer]) -> RowNest | None:
    match first, second:
        case MapNest(signals=()), ReduceNest():
            return _reduce_what_is_mapped(first, second, kept)
        case ((ReduceNest() | RowNest()), ReduceNest()):
            return _rows_after(as_rows(first), as_rows(second), kept)
        case ((ReduceNest() | RowNest()), MapNest()):
            return _map_after(as_rows(first), second, kept)
    return None


def _crosses_more(rows: RowNest, first: Nest, second: Nest, policy: FusionPolicy) -> bool:
    """Whether both together access memory across so much that a kernel more takes less time.

    A map by itself turns tiles in shared memory. Rows move a sector for each element: that is
    `SECTOR_BYTES` / size as many bytes, where the kernel, besides being one, writes and reads them
    once more.
    """
    if prod((*rows.space, *rows.loop)) < FEWEST_ACROSS:
        return False
    nbytes = _crossing(rows)
    if nbytes <= policy.strided_bytes:
        return False
    apart = [_crossing(as_rows(n)) for n in (first, second) if isinstance(n, ReduceNest | RowNest)]
    return nbytes - sum(apart) > policy.strided_bytes


def _crossing(rows: RowNest) -> float:
    """Bytes that rows move more than a kernel of tiles for what they access across memory."""
    total = 0.0
    for access, nbytes in crossed(rows).items():
        times = SECTOR_BYTES / access.buffer.type.dtype.itemsize - 1 - 2
        total += nbytes * max(times, 0)
    return total


def _reduce_what_is_mapped(
    first: MapNest, second: ReduceNest, kept: Collection[Buffer]
) -> RowNest | None:
    """An update, then a fold of its results: one pass that stores and folds."""
    if prod(first.space) != prod((*second.space, *second.loop)):
        return None
    axes = _alignment_by_reads(first, second)
    if axes is None:
        return None
    stores = nest_stores(map_nest(first, axes))
    rows = RowNest(second.space, second.loop, (Pass((), stores),), ())
    return _append(rows, as_rows(second), kept)


def _alignment_by_reads(first: MapNest, second: ReduceNest) -> dict[Expr, Expr] | None:
    """Where each axis of a map lies in a reduction that reads the map's results at one point."""
    own = space_index(first.space)
    stored = {s.buffer for s in first.stores if s.indices == own and s.guard is None}
    found: set[tuple[Expr, ...]] = {
        load.indices
        for load in loads([a.value for a in second.accumulators])
        if load.buffer in stored and load.guard is None
    }
    if len(found) != 1:
        return None
    (indices,) = found
    axes = dict(zip(own, indices, strict=True))
    return _bijection(axes, (*second.space, *second.loop))


def _rows_after(rows: RowNest, second: RowNest, kept: Collection[Buffer]) -> RowNest | None:
    """Rows, then rows of the same extents."""
    axes = _alignment_by_extents(rows, second)
    return None if axes is None else _append(rows, second, kept, axes)


def _map_after(rows: RowNest, second: MapNest, kept: Collection[Buffer]) -> RowNest | None:
    """Rows, then a map over what they leave, or over their elements, which is a pass more."""
    last = RowNest(second.space, rows.loop, (), second.stores, second.signals)
    axes = _alignment_by_extents(rows, last)
    if axes is not None:
        return _append(rows, share_analysis(last, second), kept, axes)
    if second.signals or prod(second.space) != prod((*rows.space, *rows.loop)):
        return None
    axes = _alignment_by_rows(rows, second)
    if axes is None:
        return None
    along = RowNest(rows.space, rows.loop, (Pass((), second.stores),), ())
    return _append(rows, share_analysis(along, second), kept, axes)


def _alignment_by_extents(rows: RowNest, second: RowNest) -> dict[Expr, Expr] | None:
    """Where the axes of other rows lie, as far as not at their own place, if the extents agree."""
    if not (agree(second.space, rows.space) and agree(second.loop, rows.loop)):
        return None
    own, places = _wide((*second.space, *second.loop)), _wide((*rows.space, *rows.loop))
    return {here: there for here, there in zip(own, places, strict=True) if here is not there}


def agree(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether extents are the same but for those of one element, such as `keepdims` leaves.

    >>> agree((4, 1, 3), (4, 3))
    True
    """
    return first == second or [n for n in first if n != 1] == [n for n in second if n != 1]


def _wide(extents: tuple[int, ...], first: int = 0) -> list[Axis]:
    """The axes, numbered from `first`, that have more than one element."""
    return [a for a in space_index(extents, first) if isinstance(a, Axis)]


def _alignment_by_rows(rows: RowNest, second: MapNest) -> dict[Expr, Expr] | None:
    """Where each axis of a map that reads what rows store lies in the rows.

    Axes by which nothing is read are those of the loop, in order.
    """
    places = {s.buffer: s.indices for s in nest_stores(rows) if s.guard is None}
    axes: dict[Expr, Expr] = {}
    for load in nest_loads(second):
        if load.buffer not in places:
            continue
        for here, there in zip(load.indices, places[load.buffer], strict=True):
            if axes.setdefault(here, there) is not there:
                return None
    unplaced = [a for a in _wide(second.space) if a not in axes]
    rest = [a for a in _wide(rows.loop, len(rows.space)) if a not in axes.values()]
    if len(rest) != len(unplaced):
        return None
    axes.update(zip(unplaced, rest, strict=True))
    return _bijection(axes, (*rows.space, *rows.loop))


def _bijection(axes: Mapping[Expr, Expr], extents: tuple[int, ...]) -> dict[Expr, Expr] | None:
    """The map of axes to others, if with those that stay it is one to one, and extents equal."""
    pairs: dict[Expr, Expr] = {}
    for here, there in axes.items():
        if isinstance(here, Axis) and isinstance(there, Axis) and here.extent == there.extent:
            pairs[here] = there
        elif isinstance(here, Axis) or isinstance(there, Axis):
            return None
    wide = sum(extent != 1 for extent in extents)
    if not len(set(pairs.values())) == len(pairs) == wide:
        return None
    return {here: there for here, there in pairs.items() if here is not there}


def _append(
    rows: RowNest,
    second: RowNest,
    kept: Collection[Buffer],
    axes: Mapping[Expr, Expr] = MappingProxyType({}),
) -> RowNest | None:
    """Rows, then what `second` does; None if it reads other points than its own.

    The axes of `second` lie in the rows where `axes` says, or else are those of the rows. Each pass
    of `second` joins the first pass that follows all accumulators it uses.
    """
    values = _forwarded(rows, second, axes)
    if values is None:
        return None
    stored = {s.buffer: k for k, p in enumerate(rows.passes) for s in p.stores}
    numbers = _numbers(rows, 0)
    places = [_place(_read(second, new), values, stored, numbers) for new in second.passes]
    if (len(rows.passes) > 1 or any(places)) and not _fits_blocks(rows):
        return None
    first_use, ends = min(places, default=len(rows.passes)), (*second.stores, *second.signals)
    if reread := {b for b, k in stored.items() if b in kept and k < first_use}:
        # not at the end of a row, where nothing has waited for what its lanes have stored
        reread -= {load.buffer for load in loads([end.value for end in ends])}
        values = {load: value for load, value in values.items() if load.buffer not in reread}
    count = sum(map(len, numbers))
    moved = _moved(second, count, axes, values)
    passes = list(rows.passes)
    for at, new, own in zip(places, moved.passes, _numbers(moved, count), strict=True):
        if at == len(passes):
            passes.append(new)
            numbers.append(own)
        else:
            old = passes[at]
            passes[at] = Pass(old.accumulators + new.accumulators, old.stores + new.stores)
            numbers[at] = (*numbers[at], *own)
    joined = RowNest(
        rows.space,
        rows.loop,
        tuple(passes),
        rows.stores + moved.stores,
        rows.signals + moved.signals,
    )
    return _renumbered(joined, [number for own in numbers for number in own])


def _forwarded(
    rows: RowNest, second: RowNest, axes: Mapping[Expr, Expr]
) -> dict[Load, Expr] | None:
    """What stands for each load in `second` of what the rows store; None if one is elsewhere."""
    stores = {s.buffer: s for s in nest_stores(rows)}
    moved = substitution(axes)
    values: dict[Load, Expr] = {}
    for load in nest_loads(second):
        store = stores.get(load.buffer)
        if store is None:
            continue
        if load.guard is not None or store.guard is not None:
            return None
        indices = tuple(map(moved, load.indices)) if axes else load.indices
        if indices != store.indices:
            return None
        values[load] = store.value
    return values


def _numbers(rows: RowNest, first: int) -> list[Sequence[int]]:
    """The numbers of each pass's accumulators, which start at `first`."""
    numbers: list[Sequence[int]] = []
    for each in rows.passes:
        numbers.append(range(first, first + len(each.accumulators)))
        first += len(each.accumulators)
    return numbers


def _read(nest: RowNest, each: Pass) -> Sequence[Load]:
    """Every load of one pass of a nest."""
    if len(nest.passes) == 1 and not nest.stores and not nest.signals:
        return nest_loads(nest)
    return loads([a.value for a in each.accumulators] + [s.value for s in each.stores])


def _place(
    read: Sequence[Load],
    values: Mapping[Load, Expr],
    stored: Mapping[Buffer, int],
    numbers: Sequence[Sequence[int]],
) -> int:
    """The position of the first pass that may use all that a new one reads of the rows.

    What a pass stores uses accumulators of the pass before, or it would stand there, and no later
    ones; what is stored after all passes has to be looked at.
    """
    place = 0
    for load in read:
        if load in values:
            known = stored.get(load.buffer)
            place = max(place, _after(numbers, values[load]) if known is None else known)
    return place


def _after(numbers: Sequence[Sequence[int]], value: Expr) -> int:
    """The position of the first pass that follows all accumulators that a value uses."""
    used = [e.number for e in subexpressions((value,)) if isinstance(e, Accumulated)]
    last = max(used, default=None)
    return next((k + 1 for k, own in enumerate(numbers) if last in own), 0)


def _moved(
    second: RowNest, shift: int, axes: Mapping[Expr, Expr], values: Mapping[Load, Expr]
) -> RowNest:
    """`second` on other axes, its accumulators numbered from `shift`, and values for loads."""
    replacement: dict[Expr, Expr] = dict(axes)
    if shift:
        for e in nest_accumulated(second):
            replacement[e] = Accumulated.make(e.number + shift, e.dtype)
    replacement.update(values.items())
    if not replacement:
        return second
    result = map_nest(second, replacement)
    assert isinstance(result, RowNest)
    return result


def _renumbered(rows: RowNest, order: list[int]) -> RowNest:
    """The nest with accumulators numbered by position; `order` has their numbers so far."""
    if order == list(range(len(order))):
        return rows
    places = {number: place for place, number in enumerate(order)}
    replacement: dict[Expr, Expr] = {
        e: Accumulated.make(places[e.number], e.dtype) for e in nest_accumulated(rows)
    }
    result = map_nest(rows, replacement)
    assert isinstance(result, RowNest)
    return result


def _fits_blocks(rows: RowNest) -> bool:
    """Whether several passes over the rows at once are quicker than one kernel after the other."""
    outputs, steps = prod(rows.space), prod(rows.loop)
    together = steps * min(outputs, BLOCK_COLUMNS)
    if outputs * steps <= SHORT and together <= SHORT_BLOCK:
        return True
    adjacent = loop_is_contiguous(rows)
    if adjacent and outputs * steps <= SHORT and steps <= SHORT_BLOCK:
        return True
    if not adjacent:
        return outputs >= (MANY_ROWS if steps <= KEPT_COLUMN else MANY_COLUMNS)
    if steps > KEPT_ROW:
        return outputs >= MANY_ROWS
    return outputs * most_shares(steps) >= FEWEST_BLOCKS


def most_shares(steps: int) -> int:
    """The blocks that may share a row of so many elements.

    >>> [most_shares(steps) for steps in (4096, 10_000, 1_000_000)]
    [1, 2, 8]
    """
    return min(max(steps // LEAST_SHARE, 1), MOST_CLUSTER)
