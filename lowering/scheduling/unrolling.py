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
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lowering.plan.buffer import Buffer
from lowering.plan.construct import Part
from lowering.plan.graph_edit import EMPTY, chain, single, with_nodes
from lowering.plan.kernel import MapNest, Nest, Predicate, ReduceNest, RowNest, Store
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.scheduling.buffer_rotation import Rotation
from lowering.scheduling.induction import counted, counting, without
from lowering.scheduling.predication import (
    Settings,
    guarded,
    set_in_nest,
    with_nests,
    with_settings,
)
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import const

PLACE = np.dtype(np.int32)
"""Of the buffer that holds how far carries have gone round."""


_NO_NODES: frozenset[Node] = frozenset()


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
        closing = rotation.closing(rotation.moves(self.count))
        if not self.counters:
            return closing
        counters = [single(node) for node in rotation.body.nodes if node in self.counters]
        return chain([*counters, closing])

    @cached_property
    def idle(self) -> Graph:
        """What has something to do only where steps are skipped."""
        rotation = self.rotation
        some = self.skipping and rotation.carries and self.count % rotation.order == 0
        return rotation.closing(rotation.moves(1)) if some else EMPTY


def steps_of(rotation: Rotation, condition: int, skipping: bool) -> Steps:
    """An iteration of one step, which may be skipped or not."""
    counters = _NO_NODES if skipping else counted(rotation.body, condition)
    return Steps(rotation, condition, skipping, without(rotation.body, counters), counters)


def predicated_copies(steps: Steps, flags: Sequence[Buffer], place: Buffer | None) -> Graph:
    """One copy for each flag; each that runs sets the condition.

    If the carries go round, the last one that runs leaves in `place` how far they have got.
    """
    rotation = steps.rotation
    order = rotation.order
    turns = [rotation.copy(rotation.body, n) for n in range(min(order, len(flags)))]
    copies = []
    for step, flag in enumerate(flags):
        note = None if place is None else Store(place, (), const((step + 1) % order, PLACE))
        before = flags[step - 1] if step else None
        copies.append(_checked(turns[step % order], steps.condition, flag, note, before))
    if place is None:
        return chain(copies)
    ends = range(1, min(order, len(flags) + 1))
    moves = [nest for end in ends for nest in rotation.moves(end, (Predicate(place, end),))]
    return chain([*copies, rotation.closing(moves)])


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
    return Graph(tuple([_within(node, part) for node in copies.nodes]), copies.edges)


def _in_turn(steps: Steps, last: Graph) -> Graph:
    """Copies of what each step has, the last one, and the moves that are left."""
    rotation, silent = steps.rotation, without_condition(steps.each, steps.condition)
    order = rotation.order
    turns = [rotation.copy(silent, n) for n in range(min(order, steps.count - 1))]
    copies = [_copy(turns[n % order]) for n in range(steps.count - 1)]
    return chain([*copies, last, rotation.closing(rotation.moves(steps.count))])


def without_condition(body: Graph, condition: int) -> Graph:
    """The body, which leaves the condition as it is."""
    return settle(body, Settings(dropped=frozenset((condition,))))


def settle(graph: Graph, settings: Settings) -> Graph:
    """The graph with its conditions stored or dropped, those of bodies left out."""
    kept = [with_settings(n, settings) if type(n) is KernelNode else n for n in graph.nodes]
    return with_nodes(graph, kept)


def _checked(
    body: Graph, condition: int, flag: Buffer, note: Store | None, before: Buffer | None
) -> Graph:
    """A copy of a body: what sets the condition stores the `flag`, and makes the store `note`.

    Unless it is the first one, it runs if the flag `before` is set, and else clears its own.
    """
    settings = Settings({condition: flag})
    goes_on = None if before is None else Predicate(before, True)

    def node_of(node: Node) -> Node:
        if not isinstance(node, KernelNode):
            return _again(node)
        nests: list[Nest] = []
        stored = False
        for nest in node.kernel.nests:
            settled = set_in_nest(nest, settings)
            assert settled is not None  # nothing is dropped
            if settled is not nest:
                stored = True
                assert isinstance(settled, (MapNest, ReduceNest, RowNest))
                if note is not None:
                    settled = replace(settled, stores=(*settled.stores, note))
            nests.append(settled if goes_on is None else guarded(settled, goes_on))
        if stored and before is not None:
            cleared = Store(flag, (), const(False, flag.type.dtype))
            nests.append(MapNest((), (cleared,), (), (Predicate(before, False),)))
        return with_nests(node, tuple(nests))

    return Graph(tuple(map(node_of, body.nodes)), body.edges)


def _copy(graph: Graph) -> Graph:
    """The same, of nodes of its own: a node is one launch."""
    return Graph(tuple([_again(node) for node in graph.nodes]), graph.edges)


def _again(node: Node) -> Node:
    if type(node) is KernelNode:  # most are
        return KernelNode(node.kernel, node.sources, node.within)
    return replace(node)


def _within(node: Node, part: Part) -> Node:
    assert node.if_skipped != "stays"
    return replace(node, within=(part, *node.within))
