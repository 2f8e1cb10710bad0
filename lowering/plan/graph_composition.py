"""Graph composition: one graph of several."""

from __future__ import annotations

from collections.abc import Sequence, Set

from lowering.plan.nodes import Graph, Node

Edges = Set[tuple[int, int]]


def chain(graphs: Sequence[Graph]) -> Graph:
    """Graphs one after the other."""
    nodes: list[Node] = []
    edges: list[tuple[int, int]] = []
    ends: list[int] = []  # the nodes that must be over when the next graph begins
    borders: dict[tuple[int, Edges], tuple[list[int], list[int]]] = {}  # copies have the same
    for graph in graphs:
        first, size = len(nodes), len(graph.nodes)
        if not size:
            continue
        nodes += graph.nodes
        key = (size, graph.edges)
        if key not in borders:
            borders[key] = _border(size, graph.edges)
        roots, leaves = borders[key]
        edges += [(i + first, j + first) for i, j in graph.edges]
        edges += [(end, root + first) for end in ends for root in roots]
        ends = [leaf + first for leaf in leaves]
    return Graph(tuple(nodes), frozenset(edges))


def composed(graphs: Sequence[Graph], order: Edges) -> Graph:
    """One graph, where for (i, j) in `order` the j-th of the graphs waits for the i-th.

    A graph without nodes passes on what it waits for.
    """
    before: list[list[int]] = [[] for _ in graphs]
    for i, j in order:
        before[j].append(i)
    nodes: list[Node] = []
    edges: set[tuple[int, int]] = set()
    ends: list[set[int]] = []  # for each graph, the nodes that must be over when it is
    for graph, earlier in zip(graphs, before, strict=True):
        first, size = len(nodes), len(graph.nodes)
        awaited = set().union(*[ends[i] for i in earlier])
        if not size:
            ends.append(awaited)
            continue
        nodes += graph.nodes
        roots, leaves = _border(size, graph.edges)
        edges.update([(i + first, j + first) for i, j in graph.edges])
        edges.update([(end, root + first) for end in awaited for root in roots])
        ends.append({leaf + first for leaf in leaves})
    return Graph(tuple(nodes), frozenset(edges))


def _border(size: int, edges: Edges) -> tuple[list[int], list[int]]:
    """The nodes that wait for no other, and those that no other waits for."""
    inner, outer = {j for _, j in edges}, {i for i, _ in edges}
    positions = range(size)
    return [n for n in positions if n not in inner], [n for n in positions if n not in outer]
