"""Lockstep: loops around collectives, whose steps all devices of a mesh take together."""

from __future__ import annotations

from collections.abc import Iterator

from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import Graph, LibraryNode, Node, walk


def in_lockstep(node: Node) -> bool:
    """Whether a node is a loop with collectives: a device that left it would be waited for."""
    return isinstance(node, WhileNode) and any(collectives(node.body))


def collectives(graph: Graph) -> Iterator[CollectiveCall]:
    """Those of a graph and of the bodies inside."""
    yield from filter(None, map(collective_of, walk(graph)))


def at_once(call: CollectiveCall, before: CollectiveCall | None) -> bool:
    """Whether collectives are carried out at once with others, directly in front of them."""
    if before is None or before.axes != call.axes:
        return False
    return {array.buffer for array in call.inputs}.isdisjoint([a.buffer for a in before.outputs])


def collective_of(node: Node) -> CollectiveCall | None:
    """The collectives that a node carries out at once, if it does."""
    if isinstance(node, LibraryNode) and isinstance(node.call, CollectiveCall):
        return node.call
    return None
