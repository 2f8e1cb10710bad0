"""Legalization: the same program by other nodes, where a device or the user rules some out.

Each rewrite serves a situation in which a supported driver (CUDA 13) needs it:

no body updates        inputs and outputs are read through a pointer table in bodies. CUDA's
                       documentation does not say whether an exec parameter update reaches nodes in
                       a body; a probe decides
no memory nodes        scratch is kept between launches. Devices without memory pools, such as some
                       virtual GPUs, refuse allocation nodes
no programmatic edges  the same nodes, with plain edges: before compute capability 9.0
no conditional nodes   the same nodes, driven by the host. The user asks for it: to debug a loop, or
                       where other processes run WHILE nodes on the GPU at the same time, which
                       then fail now and then
"""

from __future__ import annotations

from lowering.legalization.features import Feature, Features
from lowering.legalization.pointer_table import bound_in_bodies, with_pointer_table
from lowering.plan.conditional_nodes import ConditionalNode
from lowering.plan.construct import Construct
from lowering.plan.nodes import Graph, KernelNode, Node, walk
from lowering.plan.plan import Plan
from tracegraph.ir.record import replace


def needed_features(plan: Plan) -> tuple[Feature, ...]:
    """The features that a Plan uses, conditional nodes first."""
    nodes = tuple(walk(plan.graph))
    uses: dict[Feature, bool] = {
        "conditional_nodes": any(node.bodies for node in nodes),
        "body_updates": bool(bound_in_bodies(plan)) and not plan.indirect,
        "memory_nodes": plan.per_launch,
        "programmatic_edges": any(isinstance(node, KernelNode) for node in nodes),
    }
    return tuple(feature for feature, used in uses.items() if used)


def legalize(plan: Plan, features: Features) -> Plan:
    """The Plan for a device that has these features."""
    if not features.conditional_nodes:
        plan = _kept(plan, "the host drives the loops")
        return _explained(plan, "host-driven", "no conditional nodes here")
    if not features.memory_nodes:
        plan = _kept(plan, "no memory nodes here")
    if not features.body_updates and bound_in_bodies(plan):
        plan = _explained(
            with_pointer_table(plan), None, "pointer table: no updates in bodies here"
        )
    return plan


def _kept(plan: Plan, why: str) -> Plan:
    """The Plan with scratch kept between launches, and why, if each launch was to allocate it."""
    return replace(plan, per_launch=False, kept_because=why) if plan.per_launch else plan


def _explained(plan: Plan, schedule: str | None, why: str) -> Plan:
    """The Plan with another schedule, if one is given, and its reason at each conditional node."""

    def graph(old: Graph) -> Graph:
        return Graph(tuple(map(node, old.nodes)), old.edges)

    def node(old: Node) -> Node:
        if not isinstance(old, ConditionalNode):
            return old
        new = old.with_bodies([graph(body) for body in old.bodies])
        return replace(new, construct=_scheduled(old, schedule, why))

    return replace(plan, graph=graph(plan.graph))


def _scheduled(node: ConditionalNode, schedule: str | None, why: str) -> Construct | None:
    """The construct of a node, under another schedule."""
    known = node.construct
    if known is None:
        return None
    if schedule is not None and known.schedule.startswith("unrolled"):
        schedule = f"{schedule}, {known.schedule}"
    return replace(known, schedule=schedule or known.schedule, why=why)
