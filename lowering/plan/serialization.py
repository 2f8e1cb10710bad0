"""Serialization: edges between nodes of a CUDA graph that must not run at the same time.

The order is that of the Plan. A loop or branch counts as all that is in its bodies.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise

from lowering.plan.nodes import Graph, Node, body_graphs, launched


def serialized(graph: Graph) -> Graph:
    """The graph, and its bodies, with edges between nodes that need the same thing for themselves.

    It is the same graph if there are none.
    """
    nodes = tuple(map(_with_serialized_bodies, graph.nodes))
    chains: dict[Hashable, list[int]] = {}
    for position, node in enumerate(nodes):
        for needed in _needed(node):
            chains.setdefault(needed, []).append(position)
    edges = graph.edges.union(*map(pairwise, chains.values()))
    if edges == graph.edges and _are_same(nodes, graph.nodes):
        return graph
    return Graph(nodes, edges)


def _with_serialized_bodies(node: Node) -> Node:
    old = body_graphs(node)
    new = tuple(map(serialized, old))
    return node if _are_same(new, old) else node.with_bodies(new)


def _needed(node: Node) -> set[Hashable]:
    """What a node, and those in its bodies, need for themselves."""
    inside = [inner for body in body_graphs(node) for inner in launched(body)]
    return {each.exclusive for each in (node, *inside)} - {None}


def _are_same(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
