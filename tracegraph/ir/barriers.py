"""Barriers: equations at which others write to memory that arguments are in.

A C function that a program calls may write to memory of `tracegraph.owned`, and so may other code
before an event that a program waits for. What an equation reads of an argument, it reads in program
order: before a barrier or behind it. Results are values, which stay what they are; but the views of
an argument are in its memory, as NumPy's are.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Call
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Value, walk


def is_barrier(eqn: Eqn) -> bool:
    """Whether arguments may have other values behind an equation than before."""
    name = eqn.op.name
    if name == "use_event":
        return bool(eqn.attrs["event"].action == "wait")
    if isinstance(eqn.op.form, Call):
        has_effects = any(atom.type == TOKEN for atom in eqn.operands)
        return has_effects and any(map(is_barrier, walk(eqn.regions[0])))
    return name == "host_call"


def has_barriers(program: Program) -> bool:
    """Whether a program has a barrier, which is an effect, at its top level."""
    return program.effects and any(map(is_barrier, program.body.eqns))


def is_in_argument(atom: Atom, *defs: Mapping[Value, Eqn]) -> bool:
    """Whether a value is in the memory of a parameter of its region: it is one, or a view of one.

    `defs` have the equations that make the values of the region. An element is a copy, as it is of
    NumPy's arrays.
    """
    while not isinstance(atom, Literal):
        eqn = next((known[atom] for known in defs if atom in known), None)
        if eqn is None:
            return True
        if not eqn.op.is_view:
            return False
        of = eqn.operands[0]
        if of.type.shape and not atom.type.shape:
            return False
        atom = of
    return False
