"""Programs as parts of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph.ir.effects import TOKEN
from tracegraph.ir.program import Atom, Literal, Program
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer


def inlined(trace: Trace, program: Program, inputs: Sequence[Any]) -> list[Any]:
    """Record the equations of a program on these inputs, its effects behind those so far."""
    given = [*inputs, *program.constants]
    env: dict[Atom, Atom] = dict(zip(program.body.params, map(trace.read, given), strict=True))

    def read(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else env[atom]

    around = trace.source
    try:
        for eqn in program.body.eqns:
            trace.source = eqn.source or around
            makes_token = eqn.outputs[:1] and eqn.outputs[0].type == TOKEN
            if (
                makes_token
                and not any(a.type == TOKEN for a in eqn.operands[:1])
                and (eqn.op.name == "broadcast_to")
            ):
                env[eqn.outputs[0]] = trace.token()
                continue
            operands = [read(a) for a in eqn.operands]
            found = trace.record(eqn.op, operands, eqn.attrs, eqn.regions, eqn.hints)
            env.update(zip(eqn.outputs, (x.atom for x in found), strict=True))
    finally:
        trace.source = around
    if program.effects:
        trace.last_token = Tracer(trace, read(program.body.results[-1]))
    return [Tracer(trace, read(atom)) for atom in program.outputs]
