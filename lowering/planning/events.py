"""Events of other code and ends of timed sections: barriers at the top of the graph."""

from __future__ import annotations

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.event_node import EventNode
from lowering.planning.barriers import keep
from lowering.planning.expansion.top_level import in_bodies
from lowering.planning.library_operands import in_memory
from lowering.planning.region_builder import RegionBuilder
from tracegraph.errors import EventInBodyError
from tracegraph.ir.barriers import is_barrier
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.program import Atom, Eqn, Program
from tracegraph.ir.record import replace


def use_event(builder: RegionBuilder, eqn: Eqn) -> None:
    """Add the node, behind the values. The new token has no elements: it is bound as if inlined."""
    (token,) = eqn.outputs
    builder.bindings[token] = eqn
    event, atoms = eqn.attrs["event"], eqn.operands[1:]
    if is_barrier(eqn):
        for atom in atoms:
            keep(builder, atom)
        builder.add(FinishedNode(EventNode(event, (), builder.sources)))
        builder.context.pass_barrier()
    else:
        values = tuple([in_memory(builder, atom, lambda array: array) for atom in atoms])
        builder.add(FinishedNode(EventNode(event, values, builder.sources)))


def compute_in_sections(program: Program) -> Program:
    """The program in which the end of a section reads what is computed inside and used behind it.

    Otherwise it might be computed where it is used, after the section.
    """
    eqns = program.body.eqns
    starts = {e.attrs["event"].section: i for i, e in enumerate(eqns) if _is_mark(e, "start")}
    if not starts:
        return program
    last_use: dict[Atom, int] = dict.fromkeys(program.body.results, len(eqns))
    for i, eqn in reversed(list(enumerate(eqns))):
        for atom in eqn.operands:
            last_use.setdefault(atom, i)
    changed = list(eqns)
    for i, eqn in enumerate(eqns):
        if _is_mark(eqn, "end"):
            inside = eqns[starts[eqn.attrs["event"].section] + 1 : i]
            outputs = [out for each in inside for out in each.outputs if out.type != TOKEN]
            used = [out for out in outputs if last_use.get(out, -1) > i]
            changed[i] = replace(eqn, operands=(*eqn.operands, *used))
    return replace(program, body=replace(program.body, eqns=tuple(changed)))


def _is_mark(eqn: Eqn, action: str) -> bool:
    return eqn.op.name == "mark_time" and eqn.attrs["event"].action == action


def refuse_events_in_bodies(program: Program) -> None:
    """Check that no branch or loop uses an event.

    Raises:
        EventInBodyError: one does.
    """
    for eqn, construct in in_bodies(program, ["use_event", "mark_time"]):
        is_mark = eqn.op.name == "mark_time"
        function = "debug.timed" if is_mark else f"event.{eqn.attrs['event'].action}"
        raise EventInBodyError(function, construct, eqn.source)
