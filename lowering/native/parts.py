"""Parts of large plans: functions in modules of their own, so that the time to compile is linear.

LLVM takes time that grows with the square of a function's length, and optimises one module after
the other: what is compiled in the background can then stop between two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lowering.plan.nests.analysis import nest_accumulators, nest_size
from lowering.plan.nests.kernel import Nest
from lowering.plan.nodes import Graph, KernelNode, Node

LARGEST = 1200
"""The size of a part, and of a plan in one function: about 20 loops."""

LEAST = 100
"""The size from which a part is worth a call."""

NEST, ACCUMULATOR = 20, 60
"""The size of a nest and of a fold besides their expressions: a loop takes LLVM 6 ms."""


class SizedPart(NamedTuple):
    """Something that is written as a whole, and its size."""

    item: Any
    size: int


def size_of_nest(nest: Nest) -> int:
    """The size of a nest: the expressions that it evaluates, and what its loops count."""
    return NEST + nest_size(nest) + ACCUMULATOR * len(nest_accumulators(nest))


def size_of_node(node: Node) -> int:
    """The size of a node with its bodies."""
    if isinstance(node, KernelNode):
        return sum(map(size_of_nest, node.kernel.nests))
    return 5 + sum(map(size_of_graph, node.bodies))


def size_of_graph(graph: Graph) -> int:
    """The size of a graph."""
    return sum(map(size_of_node, graph.nodes))


def grouped(units: Sequence[SizedPart]) -> Iterator[tuple[bool, list[Any]]]:
    """The units in order, in groups, and whether a group is to be a part.

    One that is too large for a part is by itself, and no part.

    >>> sizes = {"a": 700, "b": 300, "c": 400, "d": 9000, "e": 5}
    >>> [*grouped([SizedPart(name, size) for name, size in sizes.items()])]
    [(True, ['a', 'b']), (True, ['c']), (False, ['d']), (False, ['e'])]
    """
    group: list[Any] = []
    size = 0
    for unit in units:
        if group and size + unit.size > LARGEST:
            yield size >= LEAST, group
            group, size = [], 0
        if unit.size > LARGEST:
            yield False, [unit.item]
        else:
            group.append(unit.item)
            size += unit.size
    if group:
        yield size >= LEAST, group
