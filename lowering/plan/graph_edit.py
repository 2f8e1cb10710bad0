"""Graph edits: nodes replaced by graphs, and graphs composed in sequence or in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from lowering.plan.nodes import Graph, Node

EMPTY = Graph((), frozenset())
"""The graph of no nodes."""


_NONE: frozenset[int] = frozenset()


def single(node: Node) -> Graph:
    """The graph of one node."""
    return Graph((node,), frozenset())


def splice(graph: Graph, replacement: Callable[[Node], Graph]) -> Graph:
    """The graph with each node replaced by a graph, which takes over its edges."""
    return _spliced(graph, [replacement(node) for node in graph.nodes])


def with_nodes(graph: Graph, nodes: Sequence[Node | None]) -> Graph:
    """The graph with each node replaced by another one, or dropped (None)."""
    if None in nodes:
        return _spliced(graph, [EMPTY if node is None else single(node) for node in nodes])
    return Graph(tuple(filter(None, nodes)), graph.edges)


def _spliced(graph: Graph, parts: Sequence[Graph]) -> Graph:
    before: list[set[int]] = [set() for _ in graph.nodes]
    for i, j in graph.edges:
        before[j].add(i)
    return _joined(parts, before)


def chain(graphs: Sequence[Graph]) -> Graph:
    """Sequential composition: each graph waits for the one before it."""
    return _joined(graphs, [{i - 1} if i else set() for i in range(len(graphs))])


def parallel(graphs: Sequence[Graph]) -> Graph:
    """Parallel composition: no graph waits for another."""
    return _joined(graphs, [set() for _ in graphs])


def _joined(graphs: Sequence[Graph], before: Sequence[set[int]]) -> Graph:
    """One graph of several; each waits for those `before` it, through empty ones."""
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
