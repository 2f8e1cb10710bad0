"""Serialization: edges between nodes of a CUDA graph that must not run at the same time.

The order is that of the Plan. A loop or branch counts as all that is in its bodies.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from operator import is_

from lowering.plan.nodes import Graph, launched_by, with_rewritten_bodies


def serialized(graph: Graph) -> Graph:
    """The graph, and its bodies, with edges between nodes that need the same thing for themselves.

    It is the same graph if there are none.
    """
    nodes = tuple([with_rewritten_bodies(node, serialized) for node in graph.nodes])
    chains: dict[Hashable, list[int]] = {}
    for position, node in enumerate(nodes):
        for needed in {each.exclusive for each in launched_by(node)} - {None}:
            chains.setdefault(needed, []).append(position)
    edges = graph.edges.union(*map(pairwise, chains.values()))
    same = edges == graph.edges and all(map(is_, nodes, graph.nodes))
    return graph if same else Graph(nodes, edges)
