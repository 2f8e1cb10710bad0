"""Fusion along rows: maps and reductions over the same elements become passes of one nest.

A `ReduceNest` and what is computed from it, element by element, read the same rows: softmax, layer
normalisation, an update followed by the norm of the result. As passes of one `RowNest` they read
memory once, and cost one node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType

from lowering.fusion.row_profitability import adds_uncoalesced, occupies_device
from lowering.plan.nests.analysis import (
    as_rows,
    loads,
    nest_accumulated,
    nest_loads,
    nest_stores,
    share_analysis,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Pass, ReduceNest, RowNest, space_index
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.target.target import FusionPolicy
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import subexpressions, substitution


def fuse_rows(
    first: Nest, second: Nest, policy: FusionPolicy, kept: Collection[Buffer] = ()
) -> RowNest | ReduceNest | None:
    """Both as passes of one nest, `second` computed from what `first` stores; None if impossible.

    Later passes read back what is stored in a buffer of `kept`, and recompute other values.
    """
    rows = _joined(first, second, kept)
    if rows is not None and len(rows.passes) > policy.row_passes:
        return None
    if rows is not None and adds_uncoalesced(rows, (first, second), policy):
        return None
    if rows is None or len(rows.passes) != 1 or rows.passes[0].stores:
        return rows
    # one fold: a reduction, whose loop any number of blocks may share
    (only,) = rows.passes
    return ReduceNest(rows.space, rows.loop, only.accumulators, rows.stores, rows.signals)


def _joined(first: Nest, second: Nest, kept: Collection[Buffer]) -> RowNest | None:
    match first, second:
        case MapNest(signals=()), ReduceNest():
            return _reduction_after_map(first, second, kept)
        case ((ReduceNest() | RowNest()), ReduceNest()):
            return _rows_after(as_rows(first), as_rows(second), kept)
        case ((ReduceNest() | RowNest()), MapNest()):
            return _map_after_rows(as_rows(first), second, kept)
    return None


def _reduction_after_map(
    first: MapNest, second: ReduceNest, kept: Collection[Buffer]
) -> RowNest | None:
    """A map, then a fold of its results: one pass that stores and folds."""
    if prod(first.space) != prod((*second.space, *second.loop)):
        return None
    axes = _alignment_by_reads(first, second)
    if axes is None:
        return None
    stores = nest_stores(map_nest(first, axes))
    rows = RowNest(second.space, second.loop, (Pass((), stores),), ())
    return _append(rows, as_rows(second), kept)


def _alignment_by_reads(first: MapNest, second: ReduceNest) -> dict[Expr, Expr] | None:
    """The axes of a map in terms of those of a reduction that reads the map's results."""
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


def _map_after_rows(rows: RowNest, second: MapNest, kept: Collection[Buffer]) -> RowNest | None:
    """Rows, then a map over their results; or over their elements, as another pass."""
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
    """The axes of `second` that differ from those of `rows`; None if the extents do."""
    if not (same_extents(second.space, rows.space) and same_extents(second.loop, rows.loop)):
        return None
    own, places = _long_axes((*second.space, *second.loop)), _long_axes((*rows.space, *rows.loop))
    return {here: there for here, there in zip(own, places, strict=True) if here is not there}


def same_extents(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether extents are equal without those of one element, which `keepdims` leaves.

    >>> same_extents((4, 1, 3), (4, 3))
    True
    """
    return first == second or [n for n in first if n != 1] == [n for n in second if n != 1]


def _long_axes(extents: tuple[int, ...], first: int = 0) -> list[Axis]:
    """The axes, numbered from `first`, that have more than one element."""
    return [a for a in space_index(extents, first) if isinstance(a, Axis)]


def _alignment_by_rows(rows: RowNest, second: MapNest) -> dict[Expr, Expr] | None:
    """The axes of a map in terms of those of rows whose stores it reads.

    Axes that index none of these loads are those of the loop, in order.
    """
    places = {s.buffer: s.indices for s in nest_stores(rows) if s.guard is None}
    axes: dict[Expr, Expr] = {}
    for load in nest_loads(second):
        if load.buffer not in places:
            continue
        for here, there in zip(load.indices, places[load.buffer], strict=True):
            if axes.setdefault(here, there) is not there:
                return None
    unplaced = [a for a in _long_axes(second.space) if a not in axes]
    rest = [a for a in _long_axes(rows.loop, len(rows.space)) if a not in axes.values()]
    if len(rest) != len(unplaced):
        return None
    axes.update(zip(unplaced, rest, strict=True))
    return _bijection(axes, (*rows.space, *rows.loop))


def _bijection(axes: Mapping[Expr, Expr], extents: tuple[int, ...]) -> dict[Expr, Expr] | None:
    """The renaming of axes without those that stay, if it is one to one and extents are equal."""
    pairs: dict[Expr, Expr] = {}
    for here, there in axes.items():
        if isinstance(here, Axis) and isinstance(there, Axis) and here.extent == there.extent:
            pairs[here] = there
        elif isinstance(here, Axis) or isinstance(there, Axis):
            return None
    long = sum(extent != 1 for extent in extents)
    if not len(set(pairs.values())) == len(pairs) == long:
        return None
    return {here: there for here, there in pairs.items() if here is not there}


def _append(
    rows: RowNest,
    second: RowNest,
    kept: Collection[Buffer],
    axes: Mapping[Expr, Expr] = MappingProxyType({}),
) -> RowNest | None:
    """Rows, then what `second` does; None if it reads other points than its own.

    `axes` renames axes of `second` to those of the rows. Each pass of `second` joins the first pass
    that follows all accumulators it uses.
    """
    values = _forwarded(rows, second, axes)
    if values is None:
        return None
    stored = {s.buffer: k for k, p in enumerate(rows.passes) for s in p.stores}
    numbers = _numbers(rows, 0)
    places = [
        _first_pass(_pass_loads(second, new), values, stored, numbers) for new in second.passes
    ]
    if (len(rows.passes) > 1 or any(places)) and not occupies_device(rows):
        return None
    first_use, ends = min(places, default=len(rows.passes)), (*second.stores, *second.signals)
    if reread := {b for b, k in stored.items() if b in kept and k < first_use}:
        # not at the end of a row, where lanes are not synchronized after the stores of the passes
        reread -= {load.buffer for load in loads([end.value for end in ends])}
        values = {load: value for load, value in values.items() if load.buffer not in reread}
    count = sum(map(len, numbers))
    last = _rewritten(second, count, axes, values)
    passes = list(rows.passes)
    for at, new, own in zip(places, last.passes, _numbers(last, count), strict=True):
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
        rows.stores + last.stores,
        rows.signals + last.signals,
    )
    return _renumbered(joined, [number for own in numbers for number in own])


def _forwarded(
    rows: RowNest, second: RowNest, axes: Mapping[Expr, Expr]
) -> dict[Load, Expr] | None:
    """The value of each load in `second` of what rows store; None if one reads another point."""
    stores = {s.buffer: s for s in nest_stores(rows)}
    rename = substitution(axes)
    values: dict[Load, Expr] = {}
    for load in nest_loads(second):
        store = stores.get(load.buffer)
        if store is None:
            continue
        if load.guard is not None or store.guard is not None:
            return None
        indices = tuple(map(rename, load.indices)) if axes else load.indices
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


def _pass_loads(nest: RowNest, each: Pass) -> Sequence[Load]:
    """Every load of one pass of a nest."""
    if len(nest.passes) == 1 and not nest.stores and not nest.signals:
        return nest_loads(nest)
    return loads([a.value for a in each.accumulators] + [s.value for s in each.stores])


def _first_pass(
    read: Sequence[Load],
    values: Mapping[Load, Expr],
    stored: Mapping[Buffer, int],
    numbers: Sequence[Sequence[int]],
) -> int:
    """The position of the first pass that may compute all that a new one reads of the rows.

    A value that a pass stores may be read in that pass. One that is stored after all passes may be
    read in the first pass that follows its accumulators.
    """
    first = 0
    for load in read:
        if load in values:
            known = stored.get(load.buffer)
            first = max(first, _pass_after(numbers, values[load]) if known is None else known)
    return first


def _pass_after(numbers: Sequence[Sequence[int]], value: Expr) -> int:
    """The position of the first pass that follows all accumulators that a value uses."""
    used = [e.number for e in subexpressions((value,)) if isinstance(e, Accumulated)]
    last = max(used, default=None)
    return next((k + 1 for k, own in enumerate(numbers) if last in own), 0)


def _rewritten(
    second: RowNest, shift: int, axes: Mapping[Expr, Expr], values: Mapping[Load, Expr]
) -> RowNest:
    """`second` with renamed axes, accumulators numbered from `shift`, and values for loads."""
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
    """The nest with accumulators numbered by position; `order` has their present numbers."""
    if order == list(range(len(order))):
        return rows
    places = {number: place for place, number in enumerate(order)}
    replacement: dict[Expr, Expr] = {
        e: Accumulated.make(places[e.number], e.dtype) for e in nest_accumulated(rows)
    }
    result = map_nest(rows, replacement)
    assert isinstance(result, RowNest)
    return result
