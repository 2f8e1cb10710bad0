"""Graph composition: one graph of several."""

from __future__ import annotations

from collections.abc import Sequence, Set

from lowering.plan.nodes import Graph, Node

_NONE: frozenset[int] = frozenset()


def chain(graphs: Sequence[Graph]) -> Graph:
    """Graphs one after the other."""
    return composed(graphs, {(i, i + 1) for i in range(len(graphs) - 1)})


def composed(graphs: Sequence[Graph], order: Set[tuple[int, int]]) -> Graph:
    """One graph, where for (i, j) in `order` the j-th of the graphs waits for the i-th.

    A graph without nodes passes on what it waits for.
    """
    before: list[list[int]] = [[] for _ in graphs]
    for i, j in order:
        before[j].append(i)
    nodes: list[Node] = []
    edges: set[tuple[int, int]] = set()
    ends: list[Set[int]] = []  # for each graph, the nodes that must be over when it is
    for part, earlier in zip(graphs, before, strict=True):
        first = len(nodes)
        over = [ends[i] for i in earlier]
        awaited = over[0] if len(over) == 1 else _NONE.union(*over)
        nodes += part.nodes
        if len(part.nodes) < 2:  # most
            if part.nodes:
                edges.update([(end, first) for end in awaited])
            ends.append({first} if part.nodes else awaited)
            continue
        inside = [(i + first, j + first) for i, j in part.edges]
        positions = range(first, len(nodes))
        roots = set(positions).difference([j for _, j in inside])
        edges.update(inside)
        edges.update([(end, root) for end in awaited for root in roots])
        ends.append(set(positions).difference([i for i, _ in inside]))
    return Graph(tuple(nodes), frozenset(edges))
