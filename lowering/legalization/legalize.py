"""Legalization: the same program by other nodes, where a device or the user rules some out.

Each rewrite serves a situation in which a supported driver (CUDA 13) needs it:

no body updates        inputs and outputs are read through a pointer table in bodies, and those of
                       users' kernels are copied to scratch. CUDA's documentation does not say
                       whether an exec parameter update reaches nodes in a body; a probe decides
no memory nodes        scratch is kept between launches. Devices without memory pools, such as some
                       virtual GPUs, refuse allocation nodes
no library updates     arguments and results of Fourier transforms are copied to scratch. A call is
                       checked when it is captured: at other addresses it must be the same kernels,
                       in a chain. cuFFT's documentation does not promise it
no programmatic edges  the same nodes, with plain edges: before compute capability 9.0
no conditional nodes   the same nodes, driven by the host. The user asks for it: to debug a loop, or
                       where other processes run WHILE nodes on the GPU at the same time, which
                       then fail now and then
"""

from __future__ import annotations

from lowering.legalization.pointer_table import bound_in_bodies, with_pointer_table
from lowering.legalization.scratch_copies import bound_by_custom_kernels, with_scratch_copies
from lowering.plan.conditional_nodes import ConditionalNode
from lowering.plan.fallback import Fallback
from lowering.plan.launch_graph import moving_buffers, recaptured_calls
from lowering.plan.nodes import Graph, Node, launched
from lowering.plan.plan import Plan
from lowering.plan.target.features import Feature, Features
from tracegraph.ir.record import replace


def needed_features(plan: Plan) -> tuple[Feature, ...]:
    """The features that a Plan uses, conditional nodes first."""
    nodes = tuple(launched(plan.graph))
    uses: dict[Feature, bool] = {
        "conditional_nodes": any(isinstance(node, ConditionalNode) for node in nodes),
        "body_updates": bool(bound_in_bodies(plan)) and not plan.indirect,
        "memory_nodes": plan.per_launch,
        "library_updates": bool(recaptured_calls(plan.graph)),
        "programmatic_edges": any(node.is_kernel for node in nodes),
    }
    return tuple(feature for feature, used in uses.items() if used)


def legalize(plan: Plan, features: Features) -> Plan:
    """The Plan for a device that has these features; its `fallbacks` say what was replaced."""
    if not features.library_updates:
        plan = _without_recaptures(plan)
    if not features.conditional_nodes:
        plan = _kept(plan, "the host drives the loops")
        plan = _noted(plan, "the host drives {}", "no conditional nodes here")
        return _explained(plan, "no conditional nodes here", host_driven=True)
    if not features.memory_nodes:
        plan = _kept(plan, "no memory nodes here")
    if not features.body_updates and bound_in_bodies(plan):
        why = "no updates in bodies here"
        bound = bound_by_custom_kernels(plan)
        if bound:
            plan = with_scratch_copies(plan, bound)
            plan = _noted(plan, f"each launch copies {plan.copied_bytes:,} B for {{}}", why)
        elif not plan.indirect:
            plan = _noted(plan, "kernels of {} read addresses from a table", why)
        plan = _explained(with_pointer_table(plan), f"pointer table: {why}")
    return plan


def _without_recaptures(plan: Plan) -> Plan:
    """The Plan with scratch in place of the arguments and results of recaptured calls."""
    why = "no updates of library calls here"
    calls = recaptured_calls(plan.graph)
    moving = dict.fromkeys([buffer for node in calls for buffer in moving_buffers(node)])
    found = []
    for node in calls:
        nbytes = sum(buffer.type.nbytes for buffer in moving_buffers(node))
        found.append(
            Fallback(f"each launch copies {nbytes:,} B for {node.noun}", why, node.sources)
        )
    if not calls:
        return plan
    return replace(with_scratch_copies(plan, moving), fallbacks=(*plan.fallbacks, *found))


def _kept(plan: Plan, why: str) -> Plan:
    """The Plan with scratch kept between launches, and why, if each launch was to allocate it."""
    if not plan.per_launch:
        return plan
    fallback = Fallback("scratch is kept between launches", why)
    fallbacks = (*plan.fallbacks, fallback)
    return replace(plan, per_launch=False, kept_because=why, fallbacks=fallbacks)


def _noted(plan: Plan, what: str, why: str) -> Plan:
    """The Plan with a fallback for each outermost loop or branch, which `what` has a place for."""
    nodes = [node for node in plan.graph.nodes if isinstance(node, ConditionalNode)]
    names = [node.kind if node.construct is None else node.construct.name for node in nodes]
    found = [
        Fallback(what.format(name), why, node.sources)
        for name, node in zip(names, nodes, strict=True)
    ]
    return replace(plan, fallbacks=(*plan.fallbacks, *found))


def _explained(plan: Plan, why: str, host_driven: bool = False) -> Plan:
    """The Plan whose conditional nodes, or the host in their place, have another reason."""

    def graph(old: Graph) -> Graph:
        return Graph(tuple(map(node, old.nodes)), old.edges)

    def node(old: Node) -> Node:
        if not isinstance(old, ConditionalNode):
            return old
        new = old.with_bodies([graph(body) for body in old.bodies])
        known = old.construct
        if known is None:
            return new
        return replace(new, construct=replace(known, why=why, host_driven=host_driven))

    return replace(plan, graph=graph(plan.graph))
