"""Memory-bound nodes: those that each keep the memory of a device busy run one after the other.

Side by side they take as long as one after the other at best, as the memory is what they wait for;
at worst each drives out of the caches what the other reads there. On an H100, the columns of a
256 MB matrix were summed in 95 µs and multiplied by cuBLAS in 230, but in 1,350 side by side.
"""

from __future__ import annotations

from itertools import pairwise
from operator import is_

from lowering.plan.nests.work import least_seconds
from lowering.plan.nodes import Graph, Node, with_rewritten_bodies
from lowering.plan.target.rates import Rates

LONG = 10e-6
"""Seconds from which memory decides what runs beside what: a node that begins when another ends
waits for a µs or two."""


def memory_bound_in_sequence(graph: Graph, rates: Rates | None) -> Graph:
    """The graph, and its bodies, with edges between nodes that wait for memory, in their order.

    Where one computes for longer than it waits, both units work side by side.
    """
    if rates is None:
        return graph
    nodes = [
        with_rewritten_bodies(node, lambda body: memory_bound_in_sequence(body, rates))
        for node in graph.nodes
    ]
    bound = [at for at, node in enumerate(nodes) if _is_memory_bound(node, rates)]
    edges = graph.edges | set(pairwise(bound))
    same = edges == graph.edges and all(map(is_, nodes, graph.nodes))
    return graph if same else Graph(tuple(nodes), frozenset(edges))


def _is_memory_bound(node: Node, rates: Rates) -> bool:
    most = sum([buffer.type.nbytes for buffer in node.accessed_buffers])
    if node.bodies or most < LONG * rates.copy:
        return False  # most nodes, without a look at what they compute
    seconds = node.work.required / rates.copy
    return seconds >= LONG and least_seconds(node.work, rates) == seconds
