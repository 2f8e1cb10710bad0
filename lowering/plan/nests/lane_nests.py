"""Lane nests: points along some axes never meet, so that a thread may run those of one lane.

The lanes of a loop are the points of the outer axes of its nests. What its nests write has a place
for each lane: wherever such a buffer is accessed, the index of the lane stands at the same axes.
Then no lane reads what another one writes, and each can make all steps of the loop by itself.

    by lane    axes of the space are the lanes, none but those of one point in front: map, rows, …
    uniform    a few points without lanes, from values that all lanes share: each lane repeats them
    deciding   a fold over all lanes that says whether any goes on: each lane decides for itself
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from math import prod
from typing import Literal, NamedTuple

from lowering.plan.nests.analysis import (
    nest_accumulators,
    nest_loads,
    nest_signals,
    nest_stores,
    stored_buffers,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.guarded_indices import under
from lowering.plan.nests.kernel import (
    CallNest,
    Nest,
    PrintNest,
    Publish,
    ReduceNest,
    Require,
    RowNest,
    ScanNest,
    SetCondition,
    Store,
)
from tracegraph.ir.record import record
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Accumulated, Apply, AsIndex
from tracegraph.ir.subexpressions import subexpressions

Extents = tuple[int, ...]

Role = Literal["by lane", "uniform", "deciding"]

MOST_UNIFORM = 16
"""Points of a nest that every lane repeats, and elements of what it stores to."""

MOST_KEPT = 16
"""Elements of an array in registers: one thread writes out loops up to this length."""

_CONJUNCTIONS = ("logical_and", "bitwise_and")


class Decisions(NamedTuple):
    """What each lane may decide for itself: conditions of loops and branches, and their flags."""

    conditions: Set[int]
    flags: Set[Buffer]


@record
class LaneNests:
    """Nests as those of lanes: the role of each, and the axes of lanes of each buffer they write.

    Buffers that are the same for all lanes have no such axes.
    """

    extents: Extents
    roles: Mapping[Nest, Role]
    places: Mapping[Buffer, tuple[int, ...]]

    def inner_shape(self, buffer: Buffer) -> Extents:
        """The shape of what a lane has of a buffer that the nests write."""
        place = self.places[buffer]
        return tuple([extent for axis, extent in enumerate(buffer.type.shape) if axis not in place])


def lanes_of(nests: Sequence[Nest], extents: Extents, decisions: Decisions) -> LaneNests | str:
    """The nests as those of lanes, or why they cannot be."""
    flags = {p.flag for nest in nests for p in nest.predicates if p.lanes == extents}
    decisions = Decisions(decisions.conditions, decisions.flags | flags)
    roles: dict[Nest, Role] = {}
    for nest in nests:
        obstacle = _effect(nest)
        if obstacle is not None:
            return obstacle
        role = _role(nest, extents, decisions)
        if role is None:
            return f"values that {_text(extents)} lanes share"
        roles[nest] = role
    places: dict[Buffer, tuple[int, ...]] = {}
    for buffer, accesses in _accesses(roles, extents).items():
        place = _place(accesses)
        if place is None:
            return f"{_text(extents)} lanes read or write what belongs to others"
        places[buffer] = place
    return LaneNests(extents, roles, places)


def lane_axes(nest: Nest, role: Role, extents: Extents) -> tuple[Axis, ...]:
    """The axes of a nest that are lanes, but for those of one point."""
    if role == "uniform":
        return ()
    first = 0 if role == "deciding" else first_lane_axis(nest.space, extents)
    return tuple([Axis.make(first + n, e) for n, e in enumerate(extents) if e != 1])


def first_lane_axis(space: Extents, extents: Extents) -> int:
    """The axis at which lanes begin: the first one, or the first one of several points."""
    if space[: len(extents)] == extents:
        return 0
    return next((n for n, extent in enumerate(space) if extent != 1), len(space))


def inner_points(nest: Nest, lanes: LaneNests) -> int:
    """The points of a nest that each lane has, each step of a loop included."""
    role = lanes.roles[nest]
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    if role == "deciding":
        return 1
    count = prod(lanes.extents) if role == "by lane" else 1
    return prod(nest.space) // count * prod(loop)


def kept_by_lanes(lanes: LaneNests) -> list[Buffer]:
    """The buffers whose elements stay in registers, each in those of its lane.

    Those are few, and no index depends on data: registers have no addresses.
    """
    by_data: set[Buffer] = set()
    for nest in lanes.roles:
        accesses = [(store.buffer, store.indices) for store in nest_stores(nest)]
        accesses += [(load.buffer, load.indices) for load in nest_loads(nest)]
        for buffer, indices in accesses:
            if any(isinstance(part, AsIndex) for part in subexpressions(indices)):
                by_data.add(buffer)
    found = []
    for buffer, place in lanes.places.items():
        few = prod(lanes.inner_shape(buffer)) <= MOST_KEPT and buffer not in by_data
        if few or not place:
            found.append(buffer)
    return found


def _text(extents: Extents) -> str:
    return " x ".join(map(str, extents))


def _effect(nest: Nest) -> str | None:
    if isinstance(nest, CallNest):
        return "a callback inside"
    if isinstance(nest, PrintNest):
        return "a print inside"
    signals = nest_signals(nest)
    if any(isinstance(signal, Publish) for signal in signals):
        return "its progress counts the steps of all lanes"
    if any(isinstance(signal, Require) for signal in signals):
        return "a check inside"
    return None


def _role(nest: Nest, extents: Extents, decisions: Decisions) -> Role | None:
    first = first_lane_axis(nest.space, extents)
    last = first + len(extents)
    if nest.space[first:last] == extents:
        is_apart = not isinstance(nest, ScanNest) or nest.axis >= last
        return "by lane" if is_apart and not nest_signals(nest) else None
    if isinstance(nest, (ReduceNest, RowNest)) and prod(nest.space) == 1 and nest.loop == extents:
        return "deciding" if not nest.space and _decides(nest, decisions) else None
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    sizes = [buffer.type.size for buffer in stored_buffers(nest)]
    return "uniform" if max(prod(nest.space) * prod(loop), *sizes, 0) <= MOST_UNIFORM else None


def _decides(nest: ReduceNest | RowNest, decisions: Decisions) -> bool:
    """Whether its folds say whether any lane goes on, and nothing else."""
    if isinstance(nest, RowNest) and len(nest.passes) > 1:
        return False
    for signal in nest.signals:
        assert isinstance(signal, SetCondition)
        if _folds(signal.value) and signal.condition not in decisions.conditions:
            return False
    for store in nest.stores:
        used = [store.value] if store.guard is None else [store.value, store.guard]
        if any(map(_folds, used)) and (store.buffer not in decisions.flags or len(used) > 1):
            return False
    folds = nest_accumulators(nest)
    if not all(fold.combiner.name == "logical_or" and not fold.arg for fold in folds):
        return False
    return all(_is_conjunction(part.value) for part in (*nest.signals, *nest.stores))


def _folds(value: Expr) -> bool:
    """Whether a value depends on a fold."""
    return any(isinstance(part, Accumulated) for part in subexpressions((value,)))


def _is_conjunction(value: Expr) -> bool:
    """Whether it holds while a fold does and so do conditions that lanes share."""
    if isinstance(value, Apply) and value.op.name in _CONJUNCTIONS:
        return all(map(_is_conjunction, value.args))
    return isinstance(value, Accumulated) or not _folds(value)


class _Access(NamedTuple):
    """An access of a nest whose axes of lanes are `axes`; a uniform one has none."""

    indices: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    is_store: bool


def _accesses(roles: Mapping[Nest, Role], extents: Extents) -> dict[Buffer, list[_Access]]:
    """The accesses of each buffer that the nests write."""
    found: dict[Buffer, list[_Access]] = {}
    for nest, role in roles.items():
        for store, of_store in _stores(nest, role):
            access = _Access(
                under(store.guard, store.indices), lane_axes(nest, of_store, extents), True
            )
            found.setdefault(store.buffer, []).append(access)
    for nest, role in roles.items():
        axes = lane_axes(nest, role, extents)
        for load in nest_loads(nest):
            if load.buffer in found:
                found[load.buffer].append(_Access(under(load.guard, load.indices), axes, False))
        for predicate in nest.predicates:
            if predicate.flag in found:
                found[predicate.flag].append(_Access((), axes, False))
    return found


def _stores(nest: Nest, role: Role) -> Iterator[tuple[Store, Role]]:
    """The stores of a nest; what a deciding one stores in the end is a value for each lane."""
    if role != "deciding":
        yield from ((store, role) for store in nest_stores(nest))
        return
    assert isinstance(nest, (ReduceNest, RowNest))
    yield from ((store, "uniform") for store in nest.stores)
    if isinstance(nest, RowNest):
        yield from ((store, role) for each in nest.passes for store in each.stores)


def _place(accesses: Sequence[_Access]) -> tuple[int, ...] | None:
    """The axes of a buffer at which all its accesses have the index of the lane."""
    if not any(access.axes for access in accesses if access.is_store):
        return ()
    if not all(access.axes for access in accesses):
        return None
    found = []
    for axes in zip(*[access.axes for access in accesses], strict=True):
        common = set.intersection(
            *[
                {n for n, index in enumerate(access.indices) if index is axis}
                for access, axis in zip(accesses, axes, strict=True)
            ]
        )
        if not common:
            return None
        found.append(min(common))
    return tuple(found)
