"""Events of other code: barriers at the top of the graph."""

from __future__ import annotations

from lowering.draft.stage import NodeStage
from lowering.plan.event_node import EventNode
from lowering.planning.library_operands import in_memory
from lowering.planning.region_builder import RegionBuilder
from tracegraph.errors import EventInBodyError
from tracegraph.ir.program import Eqn, Program, walk


def use_event(builder: RegionBuilder, eqn: Eqn) -> None:
    """Add the node, behind the values. The new token has no elements: it is bound as if inlined."""
    (token,) = eqn.outputs
    builder.bindings[token] = eqn
    values = tuple([in_memory(builder, atom, lambda array: array) for atom in eqn.operands[1:]])
    builder.add(NodeStage(EventNode(eqn.attrs["event"], values, builder.sources)))


def refuse_events_in_bodies(program: Program) -> None:
    """Check that no branch or loop uses an event.

    Raises:
        EventInBodyError: one does.
    """
    for outer in program.body.eqns:
        for region in outer.regions:
            for eqn in walk(region):
                if eqn.op.name == "use_event":
                    function = f"event.{eqn.attrs['event'].action}"
                    name = outer.hints.construct or outer.op.name
                    raise EventInBodyError(function, name, eqn.source)
