"""Unrolling: the body of a loop several times over, in one iteration or without a loop.

    copy 0   the body; it stores to flag 0 whether the loop goes on
    copy j   the body, predicated on flag j - 1; it stores flag j, and clears it if it is skipped

A copy reads the flag of the one before and stores its own, so that no kernel reads a flag that it
stores: its blocks start at different times. Where the number of steps is known, there are no flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from lowering.buffer import Buffer
from lowering.facts import nest_stores
from lowering.guards import Settings, guarded_node, with_nests, with_settings
from lowering.kernel import MapNest, Predicate, Store
from lowering.plan import Graph, KernelNode, LibraryNode, Node, Part
from lowering.splice import in_order, single, splice
from tracegraph.scalar import const


def predicated_copies(body: Graph, condition: int, flags: Sequence[Buffer]) -> Graph:
    """One copy for each flag; each that runs sets the condition."""
    copies = [_storing(body, condition, flags[0])]
    for before, flag in pairwise(flags):
        copies.append(_following(_storing(body, condition, flag), before, flag))
    return in_order(copies)


def counted_copies(body: Graph, condition: int, count: int) -> Graph:
    """Copies that all run, of which the last sets the condition."""
    silent = without_condition(body, condition)
    return in_order([*(_copy(silent) for _ in range(count - 1)), body])


def all_steps(body: Graph, condition: int, count: int, part: Part) -> Graph:
    """A copy for each step of the loop."""
    silent = without_condition(body, condition)
    marked = Graph(tuple(_within(node, part) for node in silent.nodes), silent.edges)
    return in_order([_copy(marked) for _ in range(count)])


def without_condition(body: Graph, condition: int) -> Graph:
    """The body, which leaves the condition as it is."""
    return settle(body, Settings(dropped=frozenset((condition,))))


def settle(graph: Graph, settings: Settings) -> Graph:
    """The graph with its conditions stored or dropped, those of bodies left out."""

    def settled(node: Node) -> Graph:
        if not isinstance(node, KernelNode):
            return single(node)
        kept = with_settings(node, settings)
        return single(kept) if kept is not None else Graph((), frozenset())

    return splice(graph, settled)


def _storing(body: Graph, condition: int, flag: Buffer) -> Graph:
    return settle(body, Settings({condition: flag}))


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
