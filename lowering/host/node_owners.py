"""What each node of a Plan works on that the host holds between calls."""

from __future__ import annotations

from collections.abc import Iterable

from lowering.plan.buffer import Buffer
from lowering.plan.nest_analysis import nest_reads, nest_writes
from lowering.plan.owners import NodeSlots, Slot, SlotReport
from lowering.plan.plan import (
    IfElseNode,
    KernelNode,
    LibraryNode,
    MemcpyNode,
    Node,
    Plan,
    SwitchNode,
    WhileNode,
    walk,
)
from tracegraph.ir.program import lines_of


def slots(plan: Plan) -> SlotReport:
    """The arena and the constants of a Plan, by node."""
    nodes = tuple(_node_slots(plan, node) for node in walk(plan.graph))
    constants = sum(buffer.type.nbytes for buffer, _ in plan.constants)
    return SlotReport(plan.name, nodes, constants + (0 if plan.per_launch else plan.arena_bytes))


def _node_slots(plan: Plan, node: Node) -> NodeSlots:
    kind, name, buffers = _described(node)
    order = sorted(buffers, key=lambda buffer: (buffer.space, buffer.number))
    spaces = ("const",) if plan.per_launch else ("const", "scratch")
    kept = dict.fromkeys(_slot(plan, b) for b in order if b.space in spaces)
    return NodeSlots(kind, name, lines_of(node.sources), tuple(kept))


def _described(node: Node) -> tuple[str, str, Iterable[Buffer]]:
    match node:
        case KernelNode(kernel=kernel):
            nests = kernel.nests
            touched = {b for nest in nests for b in nest_reads(nest) | nest_writes(nest)}
            return "kernel", kernel.name, touched
        case MemcpyNode():
            return "kernel", "copy", {node.target, node.source_buffer}
        case LibraryNode():
            name = f"product {node.m}x{node.k}x{node.n}"
            return "library", name, {node.left.buffer, node.right.buffer, node.target.buffer}
        case IfElseNode():
            return "if_else", "-", ()
        case SwitchNode():
            return "switch", "-", ()
        case WhileNode():
            return "while", "-", ()


def _slot(plan: Plan, buffer: Buffer) -> Slot:
    if buffer.space == "scratch":
        return Slot("arena", plan.arena_bytes)
    return Slot(f"constant {buffer.number} {buffer.type}", buffer.type.nbytes)
