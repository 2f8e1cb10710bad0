"""Barriers: what stands before one in the program is computed before it.

A C function, or other code before an event, may write to memory that arguments are in. So what is
computed from arguments before the barrier, and used behind it, is in memory by then. An argument,
or a view of one, that is used behind the barrier is read there.
"""

from __future__ import annotations

from lowering.plan.nests.analysis import loads
from lowering.plan.nests.kernel import space_index
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.barriers import has_barriers, is_barrier, is_in_argument
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.program import Atom, Eqn, Program, Value
from tracegraph.ir.record import replace


def compute_before_barriers(program: Program) -> Program:
    """The program in which each barrier takes the values that are computed from arguments before
    it, and used behind it.
    """
    if not has_barriers(program):
        return program
    eqns = list(program.body.eqns)
    last_use: dict[Atom, int] = dict.fromkeys(program.body.results, len(eqns))
    for i, eqn in reversed(list(enumerate(eqns))):
        for atom in eqn.operands:
            last_use.setdefault(atom, i)
    defs: dict[Value, Eqn] = {}
    computed: dict[Value, None] = {}  # from arguments, in order, as far as it is used later
    read = set(program.body.params)
    for i, eqn in enumerate(eqns):
        if is_barrier(eqn):
            used = [value for value in computed if last_use.get(value, -1) > i]
            computed = dict.fromkeys(used)
            eqns[i] = replace(eqn, operands=(*eqn.operands, *used))
        for out in eqn.outputs:
            defs[out] = eqn
            if not read.isdisjoint(eqn.operands) and out.type != TOKEN:
                read.add(out)
                if not is_in_argument(out, defs):
                    computed[out] = None
    return replace(program, body=replace(program.body, eqns=tuple(eqns)))


def keep(builder: RegionBuilder, atom: Atom) -> None:
    """Compute a value here, unless all that it is computed from is in scratch already."""
    if not isinstance(atom, Value):
        return
    index = space_index(atom.type.shape)
    value = builder.element(atom, index, None)
    if any(load.buffer.space != "scratch" for load in loads([value])):
        builder.bindings[atom] = builder.materialize(atom.type, value, index)
