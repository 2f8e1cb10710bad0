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
from functools import cached_property
from math import lcm

from lowering.allocation.in_place import copied_whole
from lowering.draft.draft_nodes import DraftKernel, DraftNode, FinishedNode, node_reads, node_writes
from lowering.plan.nests.analysis import nest_reads, nest_stores, stored_buffers
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Predicate, Store, space_index
from lowering.plan.nests.rewriting import rename_in_nest
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True)
class Rotation:
    """A body without moves, and the cycles of its buffers.

    What one copy has in a buffer, the next has in `following[buffer]`. The `carries` are the
    buffers that are read outside of the body. Moves that are left have the lines of the node
    `moving`.
    """

    body: Sequence[DraftNode]
    following: Mapping[Buffer, Buffer]
    carries: tuple[Buffer, ...] = ()
    moving: DraftKernel | None = None

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

    def copy(self, nodes: Iterable[DraftNode | None], steps: int) -> list[DraftNode | None]:
        """New nodes: those given, as they are after a number of steps."""
        names, known = self._renaming(steps % self.order)
        return [node and _renamed(node, names, known) for node in nodes]

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
                store = Store(carry, index, Load.make(names[carry], index, None))
                by_shape.setdefault(carry.type.shape, []).append(store)
        return [MapNest(s, tuple(stores), (), predicates) for s, stores in by_shape.items()]

    def closing(self, nests: list[Nest]) -> list[DraftNode]:
        """The node of these moves, if there are any."""
        if not nests:
            return []
        assert self.moving is not None
        return [DraftKernel(nests, self.moving.sources, self.moving.within)]


def rotation_of(nodes: Sequence[DraftNode], local: Collection[Buffer], skipping: bool) -> Rotation:
    """How the carries of a body of kernels and library calls rotate.

    Args:
        nodes: the body, without loops and branches.
        local: the scratch that only the body accesses.
        skipping: whether copies may be skipped. A library call runs all the same, and must not
            write to a buffer that holds a carry then.

    Buffers of library calls rotate only in scratch: others have new addresses in each call.
    """
    moves = _moves(nodes, local)
    if not moves:
        return Rotation(nodes, {})
    calls = [node for node in nodes if isinstance(node, FinishedNode)]
    written_by_calls = {b for node in calls for b in node_writes(node)}
    used_by_calls = {b for node in calls for b in node_reads(node)} | written_by_calls
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
    moving = [s for s in nodes if isinstance(s, DraftKernel) and _has_store(s, dropped)]
    return Rotation(_without(nodes, dropped), following, carries, moving[-1] if moving else None)


def _moves(
    nodes: Sequence[DraftNode], local: Collection[Buffer]
) -> dict[Buffer, tuple[Buffer, Store]]:
    """The buffers whose only write in a body is a move, after their last read.

    Each with the source of the move, and its store. The source is another such buffer, or a local
    one that is complete before the move; no two buffers have the same source.
    """
    copies = [list(_copies(node)) for node in nodes]
    if not any(copies):
        return {}
    stores: Counter[Buffer] = Counter()
    last_write: dict[Buffer, int] = {}
    last_read: dict[Buffer, int] = {}
    for position, node in enumerate(nodes):
        writes = _writes(node)
        stores.update(writes)
        last_write.update(dict.fromkeys(writes, position))
        last_read.update(dict.fromkeys(node_reads(node), position))

    moves: dict[Buffer, tuple[Buffer, Store]] = {}
    complete: set[Buffer] = set()  # sources whose last write precedes the move
    for position, node in enumerate(nodes):
        for nest, store, source in copies[position]:
            target = store.buffer
            beside = any(target in nest_reads(n) for n in _nests(node) if n is not nest)
            if stores[target] == 1 and last_read.get(target, -1) <= position and not beside:
                moves[target] = (source, store)
                if source in local and last_write.get(source, position) < position:
                    complete.add(source)

    while True:
        kept: dict[Buffer, tuple[Buffer, Store]] = {}
        taken: set[Buffer] = set()
        for target, (source, store) in moves.items():
            if source not in taken and (source in moves or source in complete):
                kept[target] = (source, store)
                taken.add(source)
        if len(kept) == len(moves):
            return moves
        moves = kept


def _copies(node: DraftNode) -> Iterator[tuple[MapNest, Store, Buffer]]:
    """The stores of a node that copy a whole buffer to another one, and from which."""
    for nest in _nests(node):
        if not isinstance(nest, MapNest) or nest.predicates:
            continue
        for store in nest.stores:
            source = copied_whole(store, nest.space)
            if source is None or source is store.buffer or store.buffer.space == "const":
                continue
            yield nest, store, source


def _nests(node: DraftNode) -> Sequence[Nest]:
    return node.nests if isinstance(node, DraftKernel) else ()


def _writes(node: DraftNode) -> list[Buffer]:
    """The buffers that a node writes, once for each store."""
    if not isinstance(node, DraftKernel):
        return list(node_writes(node))
    return [buffer for nest in node.nests for buffer in stored_buffers(nest)]


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


def _has_store(node: DraftKernel, stores: Set[Store]) -> bool:
    return any(store in stores for nest in node.nests for store in nest_stores(nest))


def _without(nodes: Sequence[DraftNode], stores: Set[Store]) -> list[DraftNode]:
    """The nodes without some stores, and without nests and nodes that are empty then."""
    kept: list[DraftNode] = []
    for node in nodes:
        if not isinstance(node, DraftKernel) or not _has_store(node, stores):
            kept.append(node)
        elif nests := [n for n in (_stripped(nest, stores) for nest in node.nests) if n]:
            kept.append(DraftKernel(nests, node.sources, node.within))
    return kept


def _stripped(nest: Nest, stores: Set[Store]) -> Nest | None:
    if not isinstance(nest, MapNest):
        return nest
    left = tuple(store for store in nest.stores if store not in stores)
    if len(left) == len(nest.stores):
        return nest
    return replace(nest, stores=left) if left or nest.signals else None


def _renamed(node: DraftNode, names: Mapping[Buffer, Buffer], known: dict[Nest, Nest]) -> DraftNode:
    """A new node with buffers replaced. What nests become is looked up in `known`, or added."""
    if isinstance(node, FinishedNode):
        return FinishedNode(node.plan_node.with_buffers(names))
    assert isinstance(node, DraftKernel)
    if not names:
        return DraftKernel(list(node.nests), node.sources, node.within)
    for nest in node.nests:
        if nest not in known:
            known[nest] = rename_in_nest(nest, names)
    return DraftKernel([known[nest] for nest in node.nests], node.sources, node.within)
