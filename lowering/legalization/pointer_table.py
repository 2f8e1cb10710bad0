"""Pointer table: addresses of inputs and outputs, read from device memory by nodes in bodies.

It serves drivers whose exec parameter updates do not reach nodes in bodies. The kernels that write
the table are root nodes, whose parameters can be updated.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, MapNest, Store, space_index
from lowering.plan.nodes import (
    Graph,
    KernelNode,
    LibraryNode,
    MemcpyNode,
    Node,
    body_graphs,
    walk,
)
from lowering.plan.plan import Plan
from tracegraph.ir.scalar_values import Load


def bound_in_bodies(plan: Plan) -> tuple[Buffer, ...]:
    """The inputs and outputs that bodies access, in order; library calls have pointer arrays."""
    graphs = [body for node in plan.graph.nodes for body in body_graphs(node)]
    nodes = [n for body in graphs for n in walk(body) if not isinstance(n, LibraryNode)]
    inside = {buffer for node in nodes for buffer in node.accessed_buffers}
    return tuple(b for b in dict.fromkeys((*plan.inputs, *plan.outputs)) if b in inside)


def with_pointer_table(plan: Plan) -> Plan:
    """The Plan with bodies that find inputs and outputs through the pointer table."""
    indirect = bound_in_bodies(plan)
    nodes = tuple(_with_copies(node, frozenset(indirect)) for node in plan.graph.nodes)
    return replace(plan, graph=Graph(nodes, plan.graph.edges), indirect=indirect)


def _with_copies(node: Node, indirect: Set[Buffer]) -> Node:
    """The node; copies in its bodies become kernels where an address is in the table."""
    if not body_graphs(node):
        return node
    return node.with_bodies(
        [
            Graph(
                tuple(_copy(_with_copies(inner, indirect), indirect) for inner in body.nodes),
                body.edges,
            )
            for body in node.bodies
        ]
    )


def _copy(node: Node, indirect: Set[Buffer]) -> Node:
    match node:
        case MemcpyNode(target=target, source_buffer=source, sources=sources):
            if target in indirect or source in indirect:
                at = space_index(target.type.shape)
                copy = MapNest(target.type.shape, (Store(target, at, Load(source, at)),))
                return KernelNode(Kernel("copy", (copy,)), sources)
    return node
