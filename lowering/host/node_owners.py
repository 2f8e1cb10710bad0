"""Node owners: the memory of each node of a plan that the host holds between calls."""

from __future__ import annotations

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Node, walk
from lowering.plan.owners import NodeSlots, Slot, SlotReport
from lowering.plan.plan import Plan
from tracegraph.user_source import lines_of


def slots(plan: Plan) -> SlotReport:
    """The arena and the constants of a Plan, by node."""
    nodes = tuple(_node_slots(plan, node) for node in walk(plan.graph))
    constants = sum(buffer.type.nbytes for buffer, _ in plan.constants)
    return SlotReport(plan.name, nodes, constants + (0 if plan.per_launch else plan.arena_bytes))


def _node_slots(plan: Plan, node: Node) -> NodeSlots:
    order = sorted(node.accessed_buffers, key=lambda buffer: (buffer.space, buffer.number))
    spaces = ("const",) if plan.per_launch else ("const", "scratch")
    kept = dict.fromkeys(_slot(plan, b) for b in order if b.space in spaces)
    return NodeSlots(node.kind, node.name, lines_of(node.sources), tuple(kept))


def _slot(plan: Plan, buffer: Buffer) -> Slot:
    if buffer.space == "scratch":
        return Slot("arena", plan.arena_bytes)
    return Slot(f"constant {buffer.number} {buffer.type}", buffer.type.nbytes)
