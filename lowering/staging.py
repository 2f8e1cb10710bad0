"""Bodies that touch fixed memory only: for executables whose bodies take no new addresses.

Inputs that a body reads are copied to scratch before, and outputs that a body touches are made in
scratch and copied out after; so the addresses that differ from call to call stand at the top only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from lowering.buffer import Buffer
from lowering.facts import nest_reads, nest_writes
from lowering.kernel import Kernel
from lowering.memory import ALIGNMENT
from lowering.plan import (
    Graph,
    KernelNode,
    LibraryNode,
    MemcpyNode,
    Node,
    Plan,
    bodies,
    walk,
    with_bodies,
)
from lowering.rounding import round_up
from lowering.stage import rename_in_nest

Names = Mapping[Buffer, Buffer]


def bound_in_bodies(plan: Plan) -> tuple[Buffer, ...]:
    """The inputs and outputs that bodies touch, in order."""
    inside = {buffer for node in plan.graph.nodes for buffer in _inner(node)}
    return tuple(b for b in dict.fromkeys((*plan.inputs, *plan.outputs)) if b in inside)


def stage_bodies(plan: Plan) -> Plan:
    """The Plan with copies around its conditional nodes, whose bodies then touch no argument."""
    moved = bound_in_bodies(plan)
    if not moved:
        return plan
    numbers = count(1 + max((b.number for b in plan.offsets), default=-1))
    names = {b: Buffer("scratch", next(numbers), b.type) for b in moved}
    offsets, arena_bytes = dict(plan.offsets), plan.arena_bytes
    for copy in names.values():
        offsets[copy] = arena_bytes = round_up(arena_bytes, ALIGNMENT)
        arena_bytes += round_up(max(copy.type.nbytes, 1), ALIGNMENT)
    inputs = {b: copy for b, copy in names.items() if b.space == "input"}
    outputs = {b: names[b] for b in plan.outputs if b in names}
    graph = _staged(plan.graph, inputs, outputs)
    return replace(plan, graph=graph, offsets=offsets, arena_bytes=arena_bytes)


def _staged(graph: Graph, inputs: Names, outputs: Names) -> Graph:
    """The top graph: copies of inputs, its nodes with what bodies touch renamed, copies out.

    An output that is written over an input is copied both in and out.
    """
    names = {**inputs, **outputs}
    first, last = len(inputs), len(inputs) + len(graph.nodes)
    nodes: list[Node] = [MemcpyNode(copy, b) for b, copy in inputs.items()]
    nodes += [_renamed(node, names if bodies(node) else outputs) for node in graph.nodes]
    nodes += [MemcpyNode(b, copy) for b, copy in outputs.items()]
    edges = {(before + first, after + first) for before, after in graph.edges}
    for position, node in enumerate(graph.nodes, first):
        inner, touched = set(_inner(node)), set(_touched(node))
        copied = inner | (touched & outputs.keys())
        edges |= {(i, position) for i, b in enumerate(inputs) if b in copied}
        edges |= {(position, i) for i, b in enumerate(outputs, last) if b in touched}
    return Graph(tuple(nodes), frozenset(edges))


def _renamed(node: Node, names: Names) -> Node:
    match node:
        case KernelNode(kernel=kernel):
            nests = tuple(rename_in_nest(nest, names) for nest in kernel.nests)
            return replace(node, kernel=Kernel(kernel.name, nests))
        case MemcpyNode(target=target, source_buffer=source):
            target, source = names.get(target, target), names.get(source, source)
            return replace(node, target=target, source_buffer=source)
        case LibraryNode():
            return node  # works on fixed memory in any case
    inner = [
        Graph(tuple(_renamed(each, names) for each in body.nodes), body.edges)
        for body in bodies(node)
    ]
    return with_bodies(node, inner)


def _inner(node: Node) -> Iterator[Buffer]:
    """The buffers that the bodies of a node touch."""
    for body in bodies(node):
        for inner in walk(body):
            yield from own_buffers(inner)


def _touched(node: Node) -> Iterator[Buffer]:
    """The buffers that a node touches, its bodies included."""
    yield from own_buffers(node)
    yield from _inner(node)


def own_buffers(node: Node) -> Iterable[Buffer]:
    """The buffers that a node touches, those of its bodies left out."""
    match node:
        case KernelNode(kernel=kernel):
            return set().union(*(nest_reads(n) | nest_writes(n) for n in kernel.nests))
        case MemcpyNode(target=target, source_buffer=source):
            return (target, source)
        case LibraryNode(left=left, right=right, target=result):
            return (left.buffer, right.buffer, result.buffer)
    return ()
