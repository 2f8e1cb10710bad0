"""Common spaces: two maps of different spaces over one space, each limited to its own part of it.

    map [n, n - 1]: x[i, j] += e[i, j + 1] - e[i, j]
    map [n - 1, n]: y[i, j] += e[i + 1, j] - e[i, j]

become

    map [n, n]: x[i, j] += … if j < n - 1;  y[i, j] += … if i < n - 1

They are placed so that an access of one map meets an access of the other one to the same array: a
point then reads, once for both, or writes the element that both access. If one map writes an array
that the other one accesses, no other place lets their points forward what they write. A map of
fewer axes, such as one that writes a row, is placed at that row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from math import prod
from typing import NamedTuple

from lowering.plan.nests.analysis import nest_expressions, nest_loads
from lowering.plan.nests.boxes import Limits, guard_of
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Store, without_ones
from tracegraph.ir.scalar import Axis, Compare, Const, Expr, Sum, both, bounds, const
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import Substitution

MAX_PAIRS = 64
"""Pairs of accesses that are compared: bounds the time of planning."""

MAX_PLACEMENTS = 3
"""Placements that are tried."""

MAX_TESTS = 8
"""Tests of the position along each axis of a space, at most: each point makes all of them."""

LEAST_SHARE = 2
"""Maps that only read the same array are placed together if the larger one has at most as many
times the points of the other one."""

WASTE = 1.25
"""Points of the common space for each point of the larger map, at most; as many as both maps have
together are no waste."""

Indices = tuple[Expr, ...]


class _Placement(NamedTuple):
    """Where a guest is in the space of a host: the host's axis of each axis of the guest, and the
    begin along each axis of the host.
    """

    axes: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]


def in_common_space(first: MapNest, second: MapNest) -> Iterator[tuple[MapNest, MapNest]]:
    """Both maps over a common space, in each way that is worth a try, the best one first.

    The caller tests whether their points disturb each other.
    """
    if first.signals or second.signals:
        return
    sizes = [(len(without_ones(nest.space)), prod(nest.space)) for nest in (first, second)]
    swapped = sizes[1] > sizes[0]
    host, guest = (second, first) if swapped else (first, second)
    for placement in islice(_placements(first, second, swapped), MAX_PLACEMENTS):
        made = _placed(host, guest, placement)
        if made is not None:
            yield made[::-1] if swapped else made


def _placements(first: MapNest, second: MapNest, swapped: bool) -> Iterator[_Placement]:
    """Placements that accesses to one array suggest, each once."""
    host, guest = (second, first) if swapped else (first, second)
    read, written = nest_loads(first), first.stores
    read_next, written_next = nest_loads(second), second.stores
    conflicts = chain(
        _meetings(written, read_next),
        _meetings(written, written_next),
        _meetings(read, written_next),
    )
    found = _distinct(conflicts, host, guest, swapped)
    if found:
        yield from found
        return
    points = sorted((prod(first.space), prod(second.space)))
    if points[0] * LEAST_SHARE >= points[1]:
        shared = _distinct(_meetings(read, read_next), host, guest, swapped)
        shared = [each for each in shared if len(each.axes) == len(without_ones(host.space))]
        yield from sorted(shared, key=lambda each: (_points(host, guest, each), _distance(each)))


def _meetings(
    first: Sequence[Load | Store], second: Sequence[Load | Store]
) -> Iterator[tuple[Indices, Indices]]:
    """The indices of accesses to one array by both maps."""
    by_buffer: dict[Buffer, dict[Indices, None]] = {}
    for access in first:
        by_buffer.setdefault(access.buffer, {})[access.indices] = None
    for access in second:
        for indices in by_buffer.get(access.buffer, ()):
            yield indices, access.indices


def _distinct(
    meetings: Iterator[tuple[Indices, Indices]], host: MapNest, guest: MapNest, swapped: bool
) -> list[_Placement]:
    found: dict[_Placement, None] = {}
    for one, other in islice(meetings, MAX_PAIRS):
        placement = _placement(*((other, one) if swapped else (one, other)), host, guest)
        if placement is not None:
            found[placement] = None
    return list(found)


def _placement(
    host_indices: Indices, guest_indices: Indices, host: MapNest, guest: MapNest
) -> _Placement | None:
    """Where the guest is if both indices are of one element; None if that is no one place."""
    axes: dict[int, int] = {}
    starts: dict[int, int] = {}
    for there, here in zip(host_indices, guest_indices, strict=True):
        theirs, ours = _axis_and_offset(there), _axis_and_offset(here)
        if theirs is None or ours is None:
            if there is not here:
                return None
            continue
        (axis, begin), (own, offset) = theirs, ours
        if axis is None:
            if own is not None:
                return None
            continue
        if axis in starts:
            return None
        starts[axis] = offset - begin
        if own is not None:
            axes[own] = axis
    long = [number for number, extent in enumerate(guest.space) if extent != 1]
    free = [n for n, extent in enumerate(host.space) if extent != 1 and n not in starts]
    if free or axes.keys() != set(long) or len(set(axes.values())) != len(axes):
        return None
    begins = tuple([starts.get(number, 0) for number in range(len(host.space))])
    return _Placement(tuple(sorted(axes.items())), begins)


def _axis_and_offset(index: Expr) -> tuple[int | None, int] | None:
    """The axis, if there is one, and the offset of an index that moves by one element a point."""
    if type(index) is Const:
        return None, int(index.value)  # type: ignore[arg-type]
    if type(index) is Axis:
        return index.number, 0
    if type(index) is Sum and len(index.terms) == 1:
        term, factor = index.terms[0]
        if type(term) is Axis and factor == 1:
            return term.number, index.offset
    return None


def _common(host: MapNest, guest: MapNest, placement: _Placement) -> list[tuple[Limits, Limits]]:
    """The limits of the host and of the guest along each axis, in coordinates of the host."""
    extents = {theirs: guest.space[own] for own, theirs in placement.axes}
    return [
        ((0, extent), (start, start + extents.get(number, 1)))
        for number, (extent, start) in enumerate(zip(host.space, placement.starts, strict=True))
    ]


def _points(host: MapNest, guest: MapNest, placement: _Placement) -> int:
    """Points of the common space."""
    limits = _common(host, guest, placement)
    return prod(max(a[1], b[1]) - min(a[0], b[0]) for a, b in limits)


def _distance(placement: _Placement) -> int:
    return sum(map(abs, placement.starts))


def _keeps_axes(placement: _Placement) -> bool:
    return all(own == theirs for own, theirs in placement.axes)


def _placed(host: MapNest, guest: MapNest, placement: _Placement) -> tuple[MapNest, MapNest] | None:
    """Both over the common space; None if it has too many points."""
    if host.space == guest.space and not any(placement.starts) and _keeps_axes(placement):
        return None  # its points are those of the host
    points = _points(host, guest, placement)
    alone = prod(host.space), prod(guest.space)
    if points > max(WASTE * max(alone), sum(alone)):
        return None
    limits = _common(host, guest, placement)
    begins = [min(theirs[0], ours[0]) for theirs, ours in limits]
    space = tuple(
        [max(theirs[1], ours[1]) - low for (theirs, ours), low in zip(limits, begins, strict=True)]
    )
    shifted = [
        tuple(
            [(low - begin, high - begin) for (low, high), begin in zip(each, begins, strict=True)]
        )
        for each in zip(*limits, strict=True)
    ]
    own = {number: number for number, extent in enumerate(host.space) if extent != 1}
    axes = {theirs: number for number, theirs in placement.axes}
    of_host = _Window(space, shifted[0], {theirs: n for n, theirs in own.items()}, {})
    of_guest = _Window(space, shifted[1], axes, _planes(host, axes))
    written = {store.buffer for nest in (host, guest) for store in nest.stores}
    shared = {
        (buffer, indices)
        for buffer, indices in of_host.read(host) & of_guest.read(guest)
        if buffer not in written and _are_in_range(buffer, indices)
    }
    moved = of_host.of(host, shared), of_guest.of(guest, shared)
    if sum(map(_tests, moved)) > MAX_TESTS * len(space):
        return None
    return moved


def _tests(nest: MapNest) -> int:
    """How often a map compares the position along an axis."""
    parts = nest_expressions(nest)
    return sum(type(part) is Compare and type(part.left) is Axis for part in parts)


def _planes(host: MapNest, axes: Mapping[int, int]) -> Mapping[Buffer, Mapping[int, int]]:
    """By array, and by axis of it that an axis of the host runs along: that axis of the host, if no
    axis of the guest runs along it.
    """
    found: dict[Buffer, dict[int, int]] = {}
    accesses: list[Load | Store] = [*host.stores, *nest_loads(host)]
    for access in accesses:
        known = found.setdefault(access.buffer, {})
        for dim, index in enumerate(access.indices):
            place = _axis_and_offset(index)
            if place is not None and place[0] is not None and place[0] not in axes:
                known.setdefault(dim, place[0])
    return found


class _Window(NamedTuple):
    """A part of a space, in which a map is rewritten.

    `axes` has the map's own axis for each axis of the space that it has. At a constant index, the
    map is at a plane: `planes` says along which axis of the space an axis of an array runs.
    """

    space: tuple[int, ...]
    limits: tuple[Limits, ...]
    axes: Mapping[int, int]
    planes: Mapping[Buffer, Mapping[int, int]]

    def read(self, nest: MapNest) -> Set[tuple[Buffer, Indices]]:
        """What the map reads, at which indices over the whole space."""
        of = Substitution(self._axes(nest)).__getitem__
        return {
            (load.buffer, self._indices(load, of))
            for load in nest_loads(nest)
            if load.guard is None
        }

    def of(self, nest: MapNest, shared: Set[tuple[Buffer, Indices]]) -> MapNest:
        """The map over the whole space, limited to this part of it. What is `shared` is read at all
        points: once for both maps.
        """
        guard = guard_of(
            {
                number: limits
                for number, (limits, extent) in enumerate(zip(self.limits, self.space, strict=True))
                if limits != (0, extent)
            },
            self.space,
        )
        if guard is None and self.space == nest.space and all(a == b for a, b in self.axes.items()):
            return nest
        new = Substitution(self._axes(nest))
        for expr in nest_expressions(nest):
            if type(expr) is Load:
                indices = self._indices(expr, new.__getitem__)
                own = None if expr.guard is None else new[expr.guard]
                if own is not None or (expr.buffer, indices) not in shared:
                    own = both(guard, own)
                new[expr] = Load.make(expr.buffer, indices, own)
        stores = [
            Store(
                store.buffer,
                self._indices(store, new.__getitem__),
                new[store.value],
                both(guard, None if store.guard is None else new[store.guard]),
            )
            for store in nest.stores
        ]
        return MapNest(self.space, tuple(stores), (), nest.predicates)

    def _axes(self, nest: MapNest) -> dict[Expr, Expr]:
        """The axes of the map in terms of those of the space."""
        found: dict[Expr, Expr] = {
            Axis.make(number, 1): const(0) for number, n in enumerate(nest.space) if n == 1
        }
        for number, own in self.axes.items():
            place = Axis.make(number, self.space[number]) - self.limits[number][0]
            found[Axis.make(own, nest.space[own])] = place
        return found

    def _indices(self, access: Load | Store, of: Callable[[Expr], Expr]) -> Indices:
        """The indices of an access. At a plane, they move along with the points of the space."""
        planes = self.planes.get(access.buffer, {})
        indices = []
        for dim, index in enumerate(access.indices):
            axis = planes.get(dim)
            if axis is not None and type(index) is Const:
                whole = Axis.make(axis, self.space[axis])
                index = whole + (int(index.value) - self.limits[axis][0])  # type: ignore[arg-type]
            else:
                index = of(index)
            indices.append(index)
        return tuple(indices)


def _are_in_range(buffer: Buffer, indices: Indices) -> bool:
    """Whether an access is known to stay inside of its array at all points of a space."""
    for index, extent in zip(indices, buffer.type.shape, strict=True):
        limits = bounds(index)
        if limits is None or limits[0] < 0 or limits[1] >= extent:
            return False
    return True
