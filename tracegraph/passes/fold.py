"""Constant folding: scalars computed from literals alone."""

from __future__ import annotations

import numpy as np

from tracegraph.ir.op import Opaque
from tracegraph.ir.program import Eqn, Literal, Program
from tracegraph.passes.rewrite import Defs, Replacement, rewrite


def fold(program: Program) -> Program:
    """The program with a literal for each scalar that an op computes from literals."""
    return rewrite(program, lambda: fold_rule)


def fold_rule(eqn: Eqn, defs: Defs) -> Replacement | None:
    """Literals for scalars computed from literals."""
    values = []
    for atom in eqn.operands:
        if not isinstance(atom, Literal):
            return None
        values.append(atom.value)
    if not values or eqn.regions or any(out.type.shape for out in eqn.outputs):
        return None
    if isinstance(eqn.op.form, Opaque):
        return None  # what a host function answers is known when the program runs
    with np.errstate(all="ignore"):
        found = eqn.op.reference(*map(np.asarray, values), **eqn.attrs)
    results = found if isinstance(found, tuple) else (found,)
    literals = (
        Literal(np.asarray(value)[()], out.type)
        for value, out in zip(results, eqn.outputs, strict=True)
    )
    return Replacement(tuple(literals))
