"""Staging: scratch in place of inputs and outputs whose addresses a node cannot be given.

On drivers whose updates do not reach nodes in bodies, our kernels there read addresses from the
pointer table. A user's kernel takes pointers: it gets scratch. So does a library's call that cannot
be captured again. Inputs are copied there before all that accesses them, and outputs from there
behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lowering.plan.buffer import Buffer
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.hardware import ALIGNMENT
from lowering.plan.nodes import Graph, MemcpyNode, Node, body_graphs, walk
from lowering.plan.plan import Plan
from lowering.plan.rounding import round_up


def bound_by_custom_kernels(plan: Plan) -> tuple[Buffer, ...]:
    """The inputs and outputs that users' kernels in bodies access, in order."""
    graphs = [body for node in plan.graph.nodes for body in body_graphs(node)]
    custom = [n for body in graphs for n in walk(body) if isinstance(n, CustomKernelNode)]
    found = {buffer for node in custom for buffer in node.accessed_buffers}
    return tuple(b for b in dict.fromkeys((*plan.inputs, *plan.outputs)) if b in found)


def with_staging(plan: Plan, buffers: Iterable[Buffer]) -> Plan:
    """The Plan with scratch in place of these inputs and outputs, and copies."""
    first = 1 + max([b.number for b in plan.offsets if b.space == "scratch"], default=-1)
    offsets, size = dict(plan.offsets), plan.arena_bytes
    scratch: dict[Buffer, Buffer] = {}
    for number, buffer in enumerate(buffers, first):
        scratch[buffer] = Buffer("scratch", number, buffer.type)
        start = round_up(size, ALIGNMENT)
        offsets[scratch[buffer]], size = start, start + buffer.type.nbytes
    nodes = [_renamed(node, scratch) for node in plan.graph.nodes]
    accessed = [_accessed(node) for node in nodes]
    before = [MemcpyNode(scratch[b], b, staging=True) for b in plan.inputs if b in scratch]
    behind = [
        MemcpyNode(b, scratch[b], staging=True)
        for b in dict.fromkeys(plan.outputs)
        if b in scratch and any(scratch[b] in _written(node) for node in nodes)
    ]
    shift, end = len(before), len(before) + len(nodes)
    edges = {(i + shift, j + shift) for i, j in plan.graph.edges}
    for position, used in enumerate(accessed):
        edges |= {(k, position + shift) for k, copy in enumerate(before) if copy.target in used}
        edges |= {
            (position + shift, end + k)
            for k, copy in enumerate(behind)
            if copy.source_buffer in used
        }
    graph = Graph((*before, *nodes, *behind), frozenset(edges))
    copied = (*(copy.source_buffer for copy in before), *(copy.target for copy in behind))
    return replace(
        plan,
        graph=graph,
        offsets=offsets,
        arena_bytes=round_up(size, ALIGNMENT),
        staged=(*plan.staged, *copied),
    )


def _renamed(node: Node, names: Mapping[Buffer, Buffer]) -> Node:
    bodies = [
        Graph(tuple([_renamed(inner, names) for inner in body.nodes]), body.edges)
        for body in node.bodies
    ]
    new = node.with_buffers(names)
    return new.with_bodies(bodies) if bodies else new


def _accessed(node: Node) -> frozenset[Buffer]:
    inside = [_accessed(inner) for body in node.bodies for inner in body.nodes]
    return node.accessed_buffers.union(*inside)


def _written(node: Node) -> frozenset[Buffer]:
    inside = [_written(inner) for body in node.bodies for inner in body.nodes]
    return node.writes.union(*inside)
