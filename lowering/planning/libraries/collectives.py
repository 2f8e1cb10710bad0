"""Collectives as library calls, on contiguous arrays at fixed addresses; and groups of these."""

from __future__ import annotations

from collections.abc import Sequence, Set
from heapq import heapify, heappop, heappush
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
    """The graph, and its bodies, in which collectives that can be carried out at once are one call.

    They have the same devices, and none waits for another. A library needs one kernel for them,
    and a loop in one kernel one exchange. What only the later ones wait for comes before the call.
    """
    nodes = [_with_groups_inside(node) for node in graph.nodes]
    groups = _groups(nodes, graph.edges)
    if len(groups) == len(nodes):
        return graph if all(map(is_, nodes, graph.nodes)) else Graph(tuple(nodes), graph.edges)
    group_of = {position: number for number, group in enumerate(groups) for position in group}
    pairs = {(group_of[i], group_of[j]) for i, j in graph.edges if group_of[i] != group_of[j]}
    order = _sorted([group[-1] for group in groups], pairs)
    places = {number: place for place, number in enumerate(order)}
    merged = tuple([_merged([nodes[position] for position in groups[number]]) for number in order])
    return Graph(merged, frozenset([(places[i], places[j]) for i, j in pairs]))


def _with_groups_inside(node: Node) -> Node:
    new = tuple(map(with_groups, node.bodies))
    return node if all(map(is_, node.bodies, new)) else node.with_bodies(new)


def _groups(nodes: Sequence[Node], edges: Set[tuple[int, int]]) -> list[list[int]]:
    """The positions of nodes, of collectives in groups."""
    runs: list[list[int]] = []
    for position, node in enumerate(nodes):
        if runs and _joins(nodes, runs[-1], node, position, edges):
            runs[-1].append(position)
        else:
            runs.append([position])
    return _joined(nodes, runs, edges)


def _joins(
    nodes: Sequence[Node], run: list[int], node: Node, position: int, edges: Set[tuple[int, int]]
) -> bool:
    """Whether a node is a collective that can be carried out at once with those right before it."""
    call, other = _collective(node), _collective(nodes[run[-1]])
    if call is None or other is None:
        return False
    return call.axes == other.axes and not any((each, position) in edges for each in run)


def _joined(
    nodes: Sequence[Node], runs: Sequence[list[int]], edges: Set[tuple[int, int]]
) -> list[list[int]]:
    """The runs, with those of collectives joined to the one before that they do not wait for.

    A run is joined only if it can begin as early as that one, which would wait for it otherwise,
    and not run beside what the run needs.
    """
    needs: list[list[int]] = [[] for _ in nodes]
    for first, second in edges:
        needs[second].append(first)
    depths: list[int] = []
    groups: list[list[int]] = []
    latest: list[int] = []  # the last group of collectives
    behind: set[int] = set()  # these, and all nodes that wait for them
    for run in runs:
        for position in run:
            depths.append(1 + max([depths[each] for each in needs[position]], default=0))
        waits = not all(behind.isdisjoint(needs[position]) for position in run)
        call = _collective(nodes[run[0]])
        if call is None:
            groups.append(run)
            behind.update(run if waits else ())
            continue
        last = _collective(nodes[latest[0]]) if latest else None
        if last is not None and last.axes == call.axes and not waits:
            early, late = (max([depths[each] for each in group]) for group in (latest, run))
            if late <= early:
                latest += run
                behind.update(run)
                continue
        latest, behind = [*run], set(run)
        groups.append(latest)
    return groups


def _sorted(places: Sequence[int], pairs: Set[tuple[int, int]]) -> list[int]:
    """Numbers in the order of their places, but each after those that it waits for."""
    waiting, followers = [0] * len(places), [list[int]() for _ in places]
    for first, second in pairs:
        waiting[second] += 1
        followers[first].append(second)
    ready = [(place, number) for number, place in enumerate(places) if not waiting[number]]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, number = heappop(ready)
        order.append(number)
        for other in followers[number]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (places[other], other))
    return order


def _collective(node: Node) -> CollectiveCall | None:
    if isinstance(node, LibraryNode) and isinstance(node.call, CollectiveCall):
        return node.call
    return None


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
