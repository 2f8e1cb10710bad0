"""Collectives as library calls, on contiguous arrays at fixed addresses; and groups of these."""

from __future__ import annotations

from collections.abc import Set
from operator import is_

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.calls.collectives import KINDS, CollectiveCall
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nodes import Graph, LibraryNode, Node
from lowering.planning.library_operands import contiguous, operand
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.program import Eqn


def collective(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the call of a collective, unless it has no elements."""
    (x,) = eqn.operands
    further = dict(eqn.attrs)
    axes, count = further.pop("axes"), further.pop("count")
    source = operand(builder, x, contiguous)
    target = StridedArray.whole(builder.result(eqn))
    if not target.buffer.type.size:
        return
    kind = KINDS[eqn.op.name](**further)
    call = CollectiveCall((kind,), (source,), (target,), axes, count, builder.sources)
    builder.add(FinishedNode(LibraryNode(call, builder.sources)))


def with_groups(graph: Graph) -> Graph:
    """The graph, and its bodies, in which collectives that follow one another are one call.

    They have the same devices, and none waits for another. A library needs one kernel for them,
    and a loop in one kernel one exchange.
    """
    nodes = [_with_groups_inside(node) for node in graph.nodes]
    runs: list[list[int]] = []
    for position, node in enumerate(nodes):
        if runs and _joins(nodes, runs[-1], node, position, graph.edges):
            runs[-1].append(position)
        else:
            runs.append([position])
    if len(runs) == len(nodes):
        return graph if all(map(is_, nodes, graph.nodes)) else Graph(tuple(nodes), graph.edges)
    merged = tuple([_merged([nodes[position] for position in run]) for run in runs])
    places = {position: place for place, run in enumerate(runs) for position in run}
    edges = {(places[i], places[j]) for i, j in graph.edges if places[i] != places[j]}
    return Graph(merged, frozenset(edges))


def _with_groups_inside(node: Node) -> Node:
    new = tuple(map(with_groups, node.bodies))
    return node if all(map(is_, node.bodies, new)) else node.with_bodies(new)


def _joins(
    nodes: list[Node], run: list[int], node: Node, position: int, edges: Set[tuple[int, int]]
) -> bool:
    """Whether a node is a collective that can be carried out at once with those before it."""
    before = nodes[run[-1]]
    if not (isinstance(node, LibraryNode) and isinstance(before, LibraryNode)):
        return False
    call, other = node.call, before.call
    if not (isinstance(call, CollectiveCall) and isinstance(other, CollectiveCall)):
        return False
    return call.axes == other.axes and not any((each, position) in edges for each in run)


def _merged(nodes: list[Node]) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    calls = [node.call for node in nodes if isinstance(node, LibraryNode)]
    members = [call for call in calls if isinstance(call, CollectiveCall)]
    sources = tuple(dict.fromkeys([source for node in nodes for source in node.sources]))
    call = CollectiveCall(
        tuple([kind for member in members for kind in member.kinds]),
        tuple([source for member in members for source in member.sources]),
        tuple([target for member in members for target in member.targets]),
        members[0].axes,
        members[0].count,
        sources,
    )
    return LibraryNode(call, sources, nodes[0].within)
