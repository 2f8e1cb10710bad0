"""Where the dtype of a carry changes: the operation at which it meets a value of another dtype."""

from __future__ import annotations

import numpy as np

from tracegraph.dtypes import type_text
from tracegraph.ir.program import Atom, Eqn, Literal, Region


def meeting(region: Region, result: Atom) -> str | None:
    """The operation that gives a result its dtype by a cast of another operand, for a message.

    It is the last before the result, whose line is known: `add at step.py:3 met f32[4] and
    f64[], computed at step.py:2`.
    """
    definitions: dict[Atom, Eqn] = {out: eqn for eqn in region.eqns for out in eqn.outputs}
    rest, seen = [result], set[Atom]()
    while rest:
        atom = rest.pop(0)
        eqn = None if isinstance(atom, Literal) else definitions.get(atom)
        if eqn is None or atom in seen:
            continue
        seen.add(atom)
        dtype = atom.type.dtype
        casts = [_cast_from(operand, definitions) for operand in eqn.operands]
        narrow = [source for source in casts if source is not None]
        wide = [
            operand
            for operand, source in zip(eqn.operands, casts, strict=True)
            if source is None and operand.type.dtype == dtype
        ]
        if narrow and wide and eqn.source is not None:
            met = f"{narrow[0].type} and {_described(wide[0], definitions)}"
            return f"{eqn.op.name} at {eqn.source} met {met}"
        rest += [operand for operand in eqn.operands if operand.type.dtype == dtype]
    return None


def _cast_from(atom: Atom, definitions: dict[Atom, Eqn]) -> Atom | None:
    """What an operand is cast from, of another dtype, if it is; a number in the program is not."""
    eqn = None if isinstance(atom, Literal) else definitions.get(atom)
    if eqn is None or eqn.op.name != "cast":
        return None
    source = eqn.operands[0]
    return None if source.type.dtype == atom.type.dtype else source


def _described(atom: Atom, definitions: dict[Atom, Eqn]) -> str:
    if isinstance(atom, Literal):
        number = np.asarray(atom.value).item()
        kind = "the number" if atom.type.weak else f"the {type_text(atom.type.dtype, ())} number"
        return f"{kind} {number!r}"
    eqn = definitions.get(atom)
    if eqn is None:
        return f"a value of type {atom.type} from outside"
    return str(atom.type) if eqn.source is None else f"{atom.type}, computed at {eqn.source}"
