"""Carries that take turns: the copies of a body read one buffer and write another, without moves.

A carry that is not updated in place moves at the end of each step. Where the body stands several
times in a row, the next copy may read it where the last one left it:

    a step     n = f(c); c = n
    copy 0     n = f(c)
    copy 1     c = f(n)

Moves chain buffers, and the last of a chain goes where the first was, which nobody needs any more:
so the buffers go round, and lie where they did after as many copies as there are in the round.
Where the copies end elsewhere, one move brings all carries home.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from operator import is_

from lowering.allocation.in_place import is_own_point
from lowering.plan.buffer import Buffer
from lowering.plan.graph_edit import EMPTY, single, splice
from lowering.plan.kernel import Kernel, MapNest, Nest, Predicate, Store
from lowering.plan.nest_analysis import nest_reads, nest_stores
from lowering.plan.nest_rewriting import rename_in_nest
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.planning.stage import space_index
from lowering.scheduling.predication import with_nests
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True)
class Rotation:
    """A body without moves, and the rounds in which its buffers go.

    What a copy has in a buffer, the next one has in that which is `following`. The `carries` are
    the buffers to which the rest of the graph looks. Those that are `crowded` need memory that no
    other buffer of the body has: a round through it takes more than one step. Moves that are left
    have the name and the lines of the node `moving`.
    """

    body: Graph
    following: Mapping[Buffer, Buffer]
    carries: tuple[Buffer, ...] = ()
    crowded: tuple[Buffer, ...] = ()
    moving: KernelNode | None = None

    @cached_property
    def order(self) -> int:
        """After how many steps all buffers lie where they did."""
        return lcm(*map(len, self._rings))

    @cached_property
    def _rings(self) -> list[list[Buffer]]:
        return _rounds(self.following)

    def names(self, steps: int) -> dict[Buffer, Buffer]:
        """Where a copy after so many steps has what the first one has in a buffer, if elsewhere."""
        names = {}
        for ring in self._rings:
            for place, buffer in enumerate(ring):
                other = ring[(place + steps) % len(ring)]
                if other is not buffer:
                    names[buffer] = other
        return names

    def copy(self, graph: Graph, steps: int) -> Graph:
        """A graph as it is after so many steps, of nodes of its own: a node is one launch."""
        names, known = self._renaming(steps % self.order)
        return Graph(tuple([_renamed(node, names, known) for node in graph.nodes]), graph.edges)

    def _renaming(self, place: int) -> tuple[dict[Buffer, Buffer], dict[Nest, Nest]]:
        """The names after so many steps of a round, and the nests that have got them so far."""
        if place not in self._renamings:
            self._renamings[place] = (self.names(place), {})
        return self._renamings[place]

    @cached_property
    def _renamings(self) -> dict[int, tuple[dict[Buffer, Buffer], dict[Nest, Nest]]]:
        return {}

    def moves(self, steps: int, predicates: tuple[Predicate, ...] = ()) -> tuple[Nest, ...]:
        """What brings the carries home after so many steps: it reads all before it writes."""
        names = self.names(steps)
        by_shape: dict[tuple[int, ...], list[Store]] = {}
        for carry in self.carries:
            if carry in names:
                index = space_index(carry.type.shape)
                store = Store(carry, index, Load.make(names[carry], index))
                by_shape.setdefault(carry.type.shape, []).append(store)
        return tuple(MapNest(s, tuple(stores), (), predicates) for s, stores in by_shape.items())

    def closing(self, nests: Sequence[Nest]) -> Graph:
        """The node of these moves, if there are any."""
        if not nests:
            return EMPTY
        assert self.moving is not None
        kernel = Kernel(self.moving.kernel.name, tuple(nests))
        return single(KernelNode(kernel, self.moving.sources))

    def relocated(self, places: Mapping[Buffer, Buffer]) -> Rotation:
        """The same, with other buffers for those that are crowded."""
        if not places:
            return self
        known: dict[Nest, Nest] = {}
        nodes = tuple([_renamed(node, places, known) for node in self.body.nodes])
        body = Graph(nodes, self.body.edges)
        of = {b: places.get(b, b) for b in self.following}
        following = {of[b]: of[other] for b, other in self.following.items()}
        return replace(self, body=body, following=following, crowded=())


def rotation_of(
    body: Graph, local: Collection[Buffer], offsets: Mapping[Buffer, int], skipping: bool
) -> Rotation:
    """How the carries of a body of kernels and products go round.

    Args:
        body: of a loop, no conditional nodes in it.
        local: the scratch that nothing but the body touches.
        offsets: where scratch lies.
        skipping: whether some copies may be skipped. A product is made all the same, and must not
            write where a carry is then.
    """
    moves = _moves(body, local)
    if not moves:
        return Rotation(body, {})
    calls = [node for node in body.nodes if node.if_skipped == "runs"]
    called = {b for node in calls for b in node.accessed_buffers}
    made = {b for node in calls for b in node.writes}
    crowded = _crowded(body, offsets)
    following: dict[Buffer, Buffer] = {}
    sources = {target: source for target, (source, _) in moves.items()}
    for ring in _rounds(_closed(sources)):
        one_type = len({buffer.type for buffer in ring}) == 1
        fixed = called.isdisjoint(ring) or all(b.space == "scratch" for b in ring)
        kept = not skipping or made.isdisjoint(ring)
        alone = all(b not in crowded or b not in moves for b in ring)
        if one_type and fixed and kept and alone:
            following.update(zip(ring, (*ring[1:], ring[0]), strict=True))
    carries = tuple(buffer for buffer in following if buffer in moves)
    dropped = {moves[carry][1] for carry in carries}
    moving = [n for n in body.nodes if isinstance(n, KernelNode) and _moves_in(n, dropped)]
    return Rotation(
        _without(body, dropped),
        following,
        carries,
        tuple(b for b in following if b in crowded),
        moving[-1] if moving else None,
    )


def _moves(body: Graph, local: Collection[Buffer]) -> dict[Buffer, tuple[Buffer, Store]]:
    """The buffers that a body does nothing with but move something there when all have read them.

    Each with what moves there, and the store that does. That is another one of these, or made in
    the same step and not after the move; and no two get the same.
    """
    copies = [list(_copies(node)) for node in body.nodes]
    if not any(copies):
        return {}
    stores: Counter[Buffer] = Counter()
    last_write: dict[Buffer, int] = {}
    last_read: dict[Buffer, int] = {}
    for position, node in enumerate(body.nodes):
        reads, writes = _touched(node)
        stores.update(writes)
        last_write.update(dict.fromkeys(writes, position))
        last_read.update(dict.fromkeys(reads, position))

    found: dict[Buffer, tuple[Buffer, Store]] = {}
    made: set[Buffer] = set()  # what moves, and is whole by then
    for position, node in enumerate(body.nodes):
        for nest, store, source in copies[position]:
            target = store.buffer
            beside = any(target in nest_reads(n) for n in _nests(node) if n is not nest)
            if stores[target] == 1 and last_read.get(target, -1) <= position and not beside:
                found[target] = (source, store)
                if source in local and last_write.get(source, position) < position:
                    made.add(source)

    while True:
        kept: dict[Buffer, tuple[Buffer, Store]] = {}
        taken: set[Buffer] = set()
        for target, (source, store) in found.items():
            if source not in taken and (source in found or source in made):
                kept[target] = (source, store)
                taken.add(source)
        if len(kept) == len(found):
            return found
        found = kept


def _copies(node: Node) -> Iterator[tuple[MapNest, Store, Buffer]]:
    """The stores of a node that copy a whole buffer to another one, and from which."""
    for nest in _nests(node):
        if not isinstance(nest, MapNest) or nest.predicates:
            continue
        for store in nest.stores:
            target, value = store.buffer, store.value
            if not isinstance(value, Load) or value.buffer is target or store.guard is not None:
                continue
            same = value.buffer.type == target.type and target.type.shape == nest.space
            own = store.indices == space_index(nest.space) and is_own_point(value, nest.space)
            if same and own and target.space != "const":
                yield nest, store, value.buffer


def _nests(node: Node) -> tuple[Nest, ...]:
    return node.kernel.nests if isinstance(node, KernelNode) else ()


def _touched(node: Node) -> tuple[Set[Buffer], list[Buffer]]:
    """What a node reads, and what it writes, once for each store."""
    if not isinstance(node, KernelNode):
        return node.reads, [*node.writes]
    return node.reads, [s.buffer for nest in node.kernel.nests for s in nest_stores(nest)]


def _rounds(following: Mapping[Buffer, Buffer]) -> list[list[Buffer]]:
    """The rounds of a mapping that has one for each of its keys."""
    rounds: list[list[Buffer]] = []
    seen: set[Buffer] = set()
    for first in following:
        ring = []
        buffer = first
        while buffer not in seen:
            seen.add(buffer)
            ring.append(buffer)
            buffer = following[buffer]
        if ring:
            rounds.append(ring)
    return rounds


def _closed(sources: Mapping[Buffer, Buffer]) -> dict[Buffer, Buffer]:
    """A mapping of which no two keys have one value, the end of each chain led to its start."""
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


def _crowded(body: Graph, offsets: Mapping[Buffer, int]) -> set[Buffer]:
    """The scratch whose memory has others of a body's buffers in it."""
    touched = {b for node in body.nodes for b in node.accessed_buffers if b in offsets}
    found: set[Buffer] = set()
    furthest, end = None, 0
    for buffer in sorted(touched, key=offsets.__getitem__):
        if furthest is not None and offsets[buffer] < end:
            found |= {buffer, furthest}
        last = offsets[buffer] + max(buffer.type.nbytes, 1)
        if last > end:
            furthest, end = buffer, last
    return found


def _moves_in(node: KernelNode, moves: Set[Store]) -> bool:
    return any(store in moves for nest in node.kernel.nests for store in nest_stores(nest))


def _without(body: Graph, moves: Set[Store]) -> Graph:
    """The body without some stores, and what is empty then."""

    def stripped(node: Node) -> Graph:
        if not isinstance(node, KernelNode) or not _moves_in(node, moves):
            return single(node)
        nests = tuple(n for n in (_stripped(nest, moves) for nest in node.kernel.nests) if n)
        return single(with_nests(node, nests)) if nests else EMPTY

    return splice(body, stripped)


def _stripped(nest: Nest, moves: Set[Store]) -> Nest | None:
    if not isinstance(nest, MapNest):
        return nest
    stores = tuple(store for store in nest.stores if store not in moves)
    if len(stores) == len(nest.stores):
        return nest
    return replace(nest, stores=stores) if stores or nest.signals else None


def _renamed(node: Node, names: Mapping[Buffer, Buffer], known: dict[Nest, Nest]) -> Node:
    """The node, anew, with buffers replaced. What nests become is looked up, or added."""
    if not isinstance(node, KernelNode):
        return node.with_buffers(names)
    kernel = node.kernel
    if names:
        for nest in kernel.nests:
            if nest not in known:
                known[nest] = rename_in_nest(nest, names)
        nests = tuple([known[nest] for nest in kernel.nests])
        if not all(map(is_, nests, kernel.nests)):
            kernel = Kernel(kernel.name, nests)
    return KernelNode(kernel, node.sources, node.within)
