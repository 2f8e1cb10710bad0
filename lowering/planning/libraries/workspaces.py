"""Workspaces: independent products of a graph get one each, so that they run side by side.

A library uses its workspace until a call is over. Calls that share one run one after the other, in
the order that `lowering.plan.serialization` gives them; but few products fill a GPU alone.
"""

from __future__ import annotations

from collections.abc import Set
from operator import is_
from typing import TypeGuard

from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import Graph, LibraryNode, Node, launched_by, with_rewritten_bodies
from tracegraph.ir.record import replace

MOST_WORKSPACES = 4
"""Workspaces of a graph. The library needs some tens of megabytes for each."""

FILLING_RESULTS = 1 << 20
"""Results of a product that fills a GPU alone: 256 tiles of 64 by 64."""


def with_workspaces(graph: Graph) -> Graph:
    """The graph, and its bodies, with the workspaces of library calls chosen.

    A call takes the workspace of one that it waits for in any case, or else a free one. If all are
    in use, it waits for the call that began first.
    """
    nodes = [with_rewritten_bodies(node, with_workspaces) for node in graph.nodes]
    used = list(map(_used, nodes))
    if sum(map(bool, used)) > 1:
        _choose(nodes, used, graph.edges)
    return graph if all(map(is_, nodes, graph.nodes)) else Graph(tuple(nodes), graph.edges)


def _choose(nodes: list[Node], used: list[set[int]], edges: Set[tuple[int, int]]) -> None:
    """Replace products by the same ones with other workspaces than those `used`."""
    before: list[list[int]] = [[] for _ in nodes]
    for i, j in edges:
        before[j].append(i)
    calls = 0
    behind: list[int] = []  # a bit for each call that is over when the node is
    users = [0] * MOST_WORKSPACES  # the bit of the call that uses each workspace last
    over = [0] * MOST_WORKSPACES  # and what is over when that is
    for at, node in enumerate(nodes):
        waited = 0
        for i in before[at]:
            waited |= behind[i]
        own = used[at]
        if _may_choose(node):
            chosen = min(range(MOST_WORKSPACES), key=lambda each: _rank(users[each], waited))
            own = {chosen}
            nodes[at] = replace(node, workspace=chosen) if chosen else node
        if own:
            calls += 1
            waited |= 1 << calls
            for workspace in own:
                waited |= over[workspace]
            for workspace in own:
                users[workspace], over[workspace] = 1 << calls, waited
        behind.append(waited)


def _rank(user: int, waited: int) -> tuple[int, int]:
    """The least is the best workspace for a call, from its last user and the calls waited for."""
    if user & waited:
        return 0, 0
    return (2, user) if user else (1, 0)


def _used(node: Node) -> set[int]:
    """The workspaces of a call, or of those in a node's bodies."""
    return {each.workspace for each in launched_by(node) if isinstance(each, LibraryNode)}


def _may_choose(node: Node) -> TypeGuard[LibraryNode]:
    """Whether the node is a product that leaves a part of a GPU idle."""
    if not isinstance(node, LibraryNode) or not isinstance(node.call, MatrixProduct):
        return False
    return node.call.batch * node.call.m * node.call.n < FILLING_RESULTS
