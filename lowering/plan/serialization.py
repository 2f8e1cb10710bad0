"""Serialization: edges between nodes of a CUDA graph that must not run at the same time.

The order is that of the Plan. A loop or branch counts as all that is in its bodies.
"""

from __future__ import annotations

from itertools import pairwise

from lowering.plan.nodes import Graph, Node, body_graphs, launched


def serialized(graph: Graph) -> Graph:
    """The graph, and its bodies, with edges between nodes of a class that run `one_at_a_time`.

    It is the same graph if there are none.
    """
    nodes = tuple(map(_with_serialized_bodies, graph.nodes))
    chains: dict[type[Node], list[int]] = {}
    for position, node in enumerate(nodes):
        for kind in _kinds(node):
            chains.setdefault(kind, []).append(position)
    edges = graph.edges.union(*map(pairwise, chains.values()))
    if edges == graph.edges and _are_same(nodes, graph.nodes):
        return graph
    return Graph(nodes, edges)


def _with_serialized_bodies(node: Node) -> Node:
    old = body_graphs(node)
    new = tuple(map(serialized, old))
    return node if _are_same(new, old) else node.with_bodies(new)


def _kinds(node: Node) -> set[type[Node]]:
    """The classes of nodes that run one at a time, of a node and of those in its bodies."""
    inside = [inner for body in body_graphs(node) for inner in launched(body)]
    return {type(each) for each in (node, *inside) if each.one_at_a_time}


def _are_same(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
