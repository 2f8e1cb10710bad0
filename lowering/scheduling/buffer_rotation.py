"""Multi-buffering: copies of a body that read one buffer and write another, without moves.

A carry that is not updated in place moves at the end of each step. Where the body stands several
times in a row, the next copy can read the new value where the last copy wrote it:

    a step     n = f(c); c = n
    copy 0     n = f(c)
    copy 1     c = f(n)

Moves form chains of buffers. The old value at the start of a chain is dead, so its buffer takes the
new value at the end: each chain closes to a cycle. After as many copies as the cycle is long, every
value is back in its buffer. Where the copies end elsewhere, one move restores all carries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import lcm

from lowering.allocation.in_place import copied_whole
from lowering.draft.stage import KernelStage, NodeStage, Stage, stage_reads, stage_writes
from lowering.plan.nests.analysis import nest_reads, nest_stores, stored_buffers
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Predicate, Store, space_index
from lowering.plan.nests.rewriting import rename_in_nest
from tracegraph.ir.record import replace
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True)
class Rotation:
    """A body without moves, and the cycles of its buffers.

    What one copy has in a buffer, the next has in `following[buffer]`. The `carries` are the
    buffers that are read outside of the body. Moves that are left have the lines of the stage
    `moving`.
    """

    body: Sequence[Stage]
    following: Mapping[Buffer, Buffer]
    carries: tuple[Buffer, ...] = ()
    moving: KernelStage | None = None

    @cached_property
    def order(self) -> int:
        """The number of steps after which every value is in its first buffer again."""
        return lcm(*map(len, self._cycles))

    @cached_property
    def _cycles(self) -> list[list[Buffer]]:
        return _cycles(self.following)

    def names(self, steps: int) -> dict[Buffer, Buffer]:
        """The buffers that differ after a number of steps, each with the one in its place."""
        names = {}
        for cycle in self._cycles:
            for place, buffer in enumerate(cycle):
                other = cycle[(place + steps) % len(cycle)]
                if other is not buffer:
                    names[buffer] = other
        return names

    def copy(self, stages: Iterable[Stage | None], steps: int) -> list[Stage | None]:
        """New stages: those given, as they are after a number of steps."""
        names, known = self._renaming(steps % self.order)
        return [stage and _renamed(stage, names, known) for stage in stages]

    def _renaming(self, place: int) -> tuple[dict[Buffer, Buffer], dict[Nest, Nest]]:
        """The names at a place of the cycles, and the nests that have been renamed for it."""
        if place not in self._renamings:
            self._renamings[place] = (self.names(place), {})
        return self._renamings[place]

    @cached_property
    def _renamings(self) -> dict[int, tuple[dict[Buffer, Buffer], dict[Nest, Nest]]]:
        return {}

    def moves(self, steps: int, predicates: tuple[Predicate, ...] = ()) -> list[Nest]:
        """The nests that restore the carries after a number of steps; all read before they write.

        A nest has all carries of one shape.
        """
        names = self.names(steps)
        by_shape: dict[tuple[int, ...], list[Store]] = {}
        for carry in self.carries:
            if carry in names:
                index = space_index(carry.type.shape)
                store = Store(carry, index, Load.make(names[carry], index))
                by_shape.setdefault(carry.type.shape, []).append(store)
        return [MapNest(s, tuple(stores), (), predicates) for s, stores in by_shape.items()]

    def closing(self, nests: list[Nest]) -> list[Stage]:
        """The stage of these moves, if there are any."""
        if not nests:
            return []
        assert self.moving is not None
        return [KernelStage(nests, self.moving.sources, self.moving.within)]


def rotation_of(stages: Sequence[Stage], local: Collection[Buffer], skipping: bool) -> Rotation:
    """How the carries of a body of kernels and library calls rotate.

    Args:
        stages: the body, without loops and branches.
        local: the scratch that only the body accesses.
        skipping: whether copies may be skipped. A library call runs all the same, and must not
            write to a buffer that holds a carry then.

    Buffers of library calls rotate only in scratch: others have new addresses in each call.
    """
    moves = _moves(stages, local)
    if not moves:
        return Rotation(stages, {})
    calls = [stage for stage in stages if isinstance(stage, NodeStage)]
    written_by_calls = {b for stage in calls for b in stage_writes(stage)}
    used_by_calls = {b for stage in calls for b in stage_reads(stage)} | written_by_calls
    following: dict[Buffer, Buffer] = {}
    sources = {target: source for target, (source, _) in moves.items()}
    for cycle in _cycles(_closed(sources)):
        one_type = len({buffer.type for buffer in cycle}) == 1
        fixed = used_by_calls.isdisjoint(cycle) or all(b.space == "scratch" for b in cycle)
        kept = not skipping or written_by_calls.isdisjoint(cycle)
        if one_type and fixed and kept:
            following.update(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    carries = tuple(buffer for buffer in following if buffer in moves)
    dropped = {moves[carry][1] for carry in carries}
    moving = [s for s in stages if isinstance(s, KernelStage) and _has_store(s, dropped)]
    return Rotation(_without(stages, dropped), following, carries, moving[-1] if moving else None)


def _moves(
    stages: Sequence[Stage], local: Collection[Buffer]
) -> dict[Buffer, tuple[Buffer, Store]]:
    """The buffers whose only write in a body is a move, after their last read.

    Each with the source of the move, and its store. The source is another such buffer, or a local
    one that is complete before the move; no two buffers have the same source.
    """
    copies = [list(_copies(stage)) for stage in stages]
    if not any(copies):
        return {}
    stores: Counter[Buffer] = Counter()
    last_write: dict[Buffer, int] = {}
    last_read: dict[Buffer, int] = {}
    for position, stage in enumerate(stages):
        writes = _writes(stage)
        stores.update(writes)
        last_write.update(dict.fromkeys(writes, position))
        last_read.update(dict.fromkeys(stage_reads(stage), position))

    found: dict[Buffer, tuple[Buffer, Store]] = {}
    complete: set[Buffer] = set()  # sources whose last write precedes the move
    for position, stage in enumerate(stages):
        for nest, store, source in copies[position]:
            target = store.buffer
            beside = any(target in nest_reads(n) for n in _nests(stage) if n is not nest)
            if stores[target] == 1 and last_read.get(target, -1) <= position and not beside:
                found[target] = (source, store)
                if source in local and last_write.get(source, position) < position:
                    complete.add(source)

    while True:
        kept: dict[Buffer, tuple[Buffer, Store]] = {}
        taken: set[Buffer] = set()
        for target, (source, store) in found.items():
            if source not in taken and (source in found or source in complete):
                kept[target] = (source, store)
                taken.add(source)
        if len(kept) == len(found):
            return found
        found = kept


def _copies(stage: Stage) -> Iterator[tuple[MapNest, Store, Buffer]]:
    """The stores of a stage that copy a whole buffer to another one, and from which."""
    for nest in _nests(stage):
        if not isinstance(nest, MapNest) or nest.predicates:
            continue
        for store in nest.stores:
            source = copied_whole(store, nest.space)
            if source is None or source is store.buffer or store.buffer.space == "const":
                continue
            yield nest, store, source


def _nests(stage: Stage) -> Sequence[Nest]:
    return stage.nests if isinstance(stage, KernelStage) else ()


def _writes(stage: Stage) -> list[Buffer]:
    """The buffers that a stage writes, once for each store."""
    if not isinstance(stage, KernelStage):
        return list(stage_writes(stage))
    return [buffer for nest in stage.nests for buffer in stored_buffers(nest)]


def _cycles(following: Mapping[Buffer, Buffer]) -> list[list[Buffer]]:
    """The cycles of a permutation."""
    cycles: list[list[Buffer]] = []
    seen: set[Buffer] = set()
    for first in following:
        cycle = []
        buffer = first
        while buffer not in seen:
            seen.add(buffer)
            cycle.append(buffer)
            buffer = following[buffer]
        if cycle:
            cycles.append(cycle)
    return cycles


def _closed(sources: Mapping[Buffer, Buffer]) -> dict[Buffer, Buffer]:
    """An injective mapping as a permutation: the end of each chain leads to its start."""
    following = dict(sources)
    ends = set(sources.values())
    for start in sources:
        if start in ends:
            continue
        end = start
        while end in sources:
            end = sources[end]
        following[end] = start
    return following


def _has_store(stage: KernelStage, stores: Set[Store]) -> bool:
    return any(store in stores for nest in stage.nests for store in nest_stores(nest))


def _without(stages: Sequence[Stage], stores: Set[Store]) -> list[Stage]:
    """The stages without some stores, and without nests and stages that are empty then."""
    kept: list[Stage] = []
    for stage in stages:
        if not isinstance(stage, KernelStage) or not _has_store(stage, stores):
            kept.append(stage)
        elif nests := [n for n in (_stripped(nest, stores) for nest in stage.nests) if n]:
            kept.append(KernelStage(nests, stage.sources, stage.within))
    return kept


def _stripped(nest: Nest, stores: Set[Store]) -> Nest | None:
    if not isinstance(nest, MapNest):
        return nest
    left = tuple(store for store in nest.stores if store not in stores)
    if len(left) == len(nest.stores):
        return nest
    return replace(nest, stores=left) if left or nest.signals else None


def _renamed(stage: Stage, names: Mapping[Buffer, Buffer], known: dict[Nest, Nest]) -> Stage:
    """A new stage with buffers replaced. What nests become is looked up in `known`, or added."""
    if isinstance(stage, NodeStage):
        return NodeStage(stage.node.with_buffers(names))
    assert isinstance(stage, KernelStage)
    if not names:
        return KernelStage(list(stage.nests), stage.sources, stage.within)
    for nest in stage.nests:
        if nest not in known:
            known[nest] = rename_in_nest(nest, names)
    return KernelStage([known[nest] for nest in stage.nests], stage.sources, stage.within)
