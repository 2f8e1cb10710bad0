"""Estimates of work: a unit is a point or eight bytes, and takes a nanosecond or less."""

from __future__ import annotations

from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, MemcpyNode, Node, walk

CALL = 1 << 12
"""The work of a call of the host, at least."""


def work_of(graph: Graph) -> int:
    """The work of a graph, each loop taken to run once."""
    return sum(map(_work, walk(graph)))


def _work(node: Node) -> int:
    if isinstance(node, KernelNode | MemcpyNode):
        return node.weight.points + node.weight.nbytes // 8
    if isinstance(node, LibraryNode):
        return node.call.operations if isinstance(node.call, MatrixProduct) else CALL
    return 0 if node.bodies else CALL
