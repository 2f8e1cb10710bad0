"""Unrolling: the body of a loop several times over, in one iteration or without a loop.

    copy 0   the body; it stores to flag 0 whether the loop goes on
    copy j   the body, predicated on flag j - 1; it stores flag j, and clears it if it is skipped

A copy reads the flag of the one before and stores its own, so that no kernel reads a flag that it
stores: its blocks start at different times. Where the number of steps is known, there are no flags.

Carries that are not updated in place go round (see `lowering.rotation`). What is left to move then
moves once, at the end: where copies may be skipped, from the place that the last one run has noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lowering.buffer import Buffer
from lowering.counters import counted, counting, without
from lowering.facts import nest_stores
from lowering.guards import Settings, guarded_node, with_nests, with_settings
from lowering.kernel import MapNest, Nest, Predicate, ReduceNest, RowNest, Store
from lowering.plan import Graph, KernelNode, LibraryNode, Node, Part
from lowering.rotation import Rotation
from lowering.splice import EMPTY, in_order, single, splice
from tracegraph.scalar import const

PLACE = np.dtype(np.int32)
"""Of the buffer that holds how far carries have gone round."""


@dataclass(frozen=True)
class Steps:
    """What an iteration of so many steps is made of.

    Each step is a copy of the body of `rotation`; but where none may be skipped, they have only
    what is in `each`, and the last one counts for all in its `counters`.
    """

    rotation: Rotation
    condition: int
    skipping: bool
    each: Graph
    counters: frozenset[Node]
    count: int = 1

    @cached_property
    def once(self) -> Graph:
        """What the steps have together."""
        rotation = self.rotation
        counters = [single(node) for node in rotation.body.nodes if node in self.counters]
        return in_order([*counters, rotation.closing(rotation.moves(self.count))])

    @cached_property
    def idle(self) -> Graph:
        """What has something to do only where steps are skipped."""
        rotation = self.rotation
        some = self.skipping and rotation.carries and self.count % rotation.order == 0
        return rotation.closing(rotation.moves(1)) if some else EMPTY


def steps_of(rotation: Rotation, condition: int, skipping: bool) -> Steps:
    """An iteration of one step, which may be skipped or not."""
    counters = frozenset[Node]() if skipping else counted(rotation.body, condition)
    return Steps(rotation, condition, skipping, without(rotation.body, counters), counters)


def predicated_copies(steps: Steps, flags: Sequence[Buffer], place: Buffer | None) -> Graph:
    """One copy for each flag; each that runs sets the condition.

    If the carries go round, the last one that runs leaves in `place` how far they have got.
    """
    rotation, condition = steps.rotation, steps.condition
    order = rotation.order
    copies = []
    for step, flag in enumerate(flags):
        copy = rotation.copy(settle(rotation.body, Settings({condition: flag})), step)
        if place is not None:
            copy = _noting(copy, flag, Store(place, (), const((step + 1) % order, PLACE)))
        copies.append(_following(copy, flags[step - 1], flag) if step else copy)
    if place is None:
        return in_order(copies)
    ends = range(1, min(order, len(flags) + 1))
    moves = [nest for end in ends for nest in rotation.moves(end, (Predicate(place, end),))]
    return in_order([*copies, rotation.closing(moves)])


def counted_copies(steps: Steps) -> Graph:
    """Copies that all run, of which the last sets the condition."""
    rotation = steps.rotation
    last = counting(rotation.body, steps.counters, steps.count)
    return _in_turn(steps, rotation.copy(last, steps.count - 1))


def all_steps(steps: Steps, part: Part) -> Graph:
    """A copy for each step of the loop."""
    rotation = steps.rotation
    if steps.count == 0:
        return EMPTY
    last = counting(rotation.body, steps.counters, steps.count)
    silent = without_condition(last, steps.condition)
    copies = _in_turn(steps, rotation.copy(silent, steps.count - 1))
    return Graph(tuple(_within(node, part) for node in copies.nodes), copies.edges)


def _in_turn(steps: Steps, last: Graph) -> Graph:
    """Copies of what each step has, the last one, and the moves that are left."""
    rotation, silent = steps.rotation, without_condition(steps.each, steps.condition)
    turns = [rotation.copy(silent, n) for n in range(min(rotation.order, steps.count - 1))]
    copies = [_copy(turns[n % rotation.order]) for n in range(steps.count - 1)]
    return in_order([*copies, last, rotation.closing(rotation.moves(steps.count))])


def without_condition(body: Graph, condition: int) -> Graph:
    """The body, which leaves the condition as it is."""
    return settle(body, Settings(dropped=frozenset((condition,))))


def settle(graph: Graph, settings: Settings) -> Graph:
    """The graph with its conditions stored or dropped, those of bodies left out."""

    def settled(node: Node) -> Graph:
        if not isinstance(node, KernelNode):
            return single(node)
        kept = with_settings(node, settings)
        return single(kept) if kept is not None else EMPTY

    return splice(graph, settled)


def _noting(body: Graph, flag: Buffer, note: Store) -> Graph:
    """The body, of which what stores `flag` makes a further store."""

    def noting(nest: Nest) -> Nest:
        if not isinstance(nest, MapNest | ReduceNest | RowNest):
            return nest
        stores = any(store.buffer is flag for store in nest.stores)
        return replace(nest, stores=(*nest.stores, note)) if stores else nest

    def node_of(node: Node) -> Node:
        if not isinstance(node, KernelNode):
            return node
        return with_nests(node, tuple(map(noting, node.kernel.nests)))

    return Graph(tuple(map(node_of, body.nodes)), body.edges)


def _following(body: Graph, before: Buffer, flag: Buffer) -> Graph:
    """A copy of a body that stores `flag`, run if the flag of the copy before is set."""
    goes_on, is_over = Predicate(before, True), Predicate(before, False)
    cleared = Store(flag, (), const(False, flag.type.dtype))

    def following(node: Node) -> Node:
        if not isinstance(node, KernelNode):
            return node
        nests = guarded_node(node, goes_on).kernel.nests
        if any(store.buffer is flag for nest in node.kernel.nests for store in nest_stores(nest)):
            nests = (*nests, MapNest((), (cleared,), (), (is_over,)))
        return with_nests(node, nests)

    return Graph(tuple(map(following, body.nodes)), body.edges)


def _copy(graph: Graph) -> Graph:
    """The same, of nodes of its own: a node is one launch."""
    return Graph(tuple(replace(node) for node in graph.nodes), graph.edges)


def _within(node: Node, part: Part) -> Node:
    assert isinstance(node, KernelNode | LibraryNode)
    return replace(node, within=(part, *node.within))
