"""Copies to scratch: scratch in place of inputs and outputs whose addresses a node cannot be given.

On drivers whose updates do not reach nodes in bodies, our kernels there read addresses from the
pointer table. A user's kernel takes pointers: it gets scratch. So does a library's call that cannot
be captured again. Inputs are copied there before all that accesses them, and again behind nodes at
which others may write to them; outputs are copied from there behind all that accesses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import Graph, MemcpyNode, Node, body_graphs, launched
from lowering.plan.plan import Plan
from lowering.plan.target.hardware import ALIGNMENT


def bound_by_custom_kernels(plan: Plan) -> tuple[Buffer, ...]:
    """The inputs and outputs that users' kernels in bodies access, in order."""
    graphs = [body for node in plan.graph.nodes for body in body_graphs(node)]
    custom = [n for body in graphs for n in launched(body) if isinstance(n, CustomKernelNode)]
    found = {buffer for node in custom for buffer in node.accessed_buffers}
    return tuple(b for b in dict.fromkeys((*plan.inputs, *plan.outputs)) if b in found)


def with_scratch_copies(plan: Plan, buffers: Iterable[Buffer]) -> Plan:
    """The Plan with scratch in place of these inputs and outputs, and copies."""
    first = 1 + max([b.number for b in plan.offsets if b.space == "scratch"], default=-1)
    offsets, size = dict(plan.offsets), plan.arena_bytes
    scratch: dict[Buffer, Buffer] = {}
    for number, buffer in enumerate(buffers, first):
        scratch[buffer] = Buffer("scratch", number, buffer.type)
        start = round_up(size, ALIGNMENT)
        offsets[scratch[buffer]], size = start, start + buffer.type.nbytes
    graph, copied = _with_copies(plan, scratch)
    return replace(
        plan,
        graph=graph,
        offsets=offsets,
        arena_bytes=round_up(size, ALIGNMENT),
        copied=(*plan.copied, *copied),
    )


def _with_copies(plan: Plan, names: Mapping[Buffer, Buffer]) -> tuple[Graph, tuple[Buffer, ...]]:
    """The graph on scratch, with the copies; and the inputs and outputs that these copy."""
    work = [_renamed(node, names) for node in plan.graph.nodes]
    accessed, written = list(map(_accessed, work)), set().union(*map(_written, work))
    inputs = [(b, names[b]) for b in plan.inputs if b in names]
    outputs = [(b, names[b]) for b in dict.fromkeys(plan.outputs) if b in names]
    nodes: list[Node] = [
        MemcpyNode(scratch, buffer, is_scratch_copy=True) for buffer, scratch in inputs
    ]
    copied = [buffer for buffer, _ in inputs]
    last_copy = {scratch: position for position, (_, scratch) in enumerate(inputs)}
    edges: set[tuple[int, int]] = set()
    place: list[int] = []  # of each node of the work
    barriers: list[int] = []
    for node, used in zip(work, accessed, strict=True):
        place.append(len(nodes))
        edges |= {(last_copy[scratch], len(nodes)) for scratch in used if scratch in last_copy}
        if node.is_barrier:
            edges |= {(copy, len(nodes)) for copy in last_copy.values()}
            barriers.append(len(nodes))
        nodes.append(node)
        if node.is_rewriting:
            rest = set().union(*accessed[len(place) :])
            for buffer, scratch in inputs:
                if scratch in rest and scratch not in written:
                    edges.add((place[-1], len(nodes)))
                    last_copy[scratch] = len(nodes)
                    nodes.append(MemcpyNode(scratch, buffer, is_scratch_copy=True))
                    copied.append(buffer)
    edges |= {(place[i], place[j]) for i, j in plan.graph.edges}
    for buffer, scratch in outputs:
        if scratch in written:
            users = [at for at, used in zip(place, accessed, strict=True) if scratch in used]
            edges |= {(before, len(nodes)) for before in (*users, *barriers)}
            nodes.append(MemcpyNode(buffer, scratch, is_scratch_copy=True))
            copied.append(buffer)
    return Graph(tuple(nodes), frozenset(edges)), tuple(copied)


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
