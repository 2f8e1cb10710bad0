"""Constant folding: scalars that follow from literals alone."""

from __future__ import annotations

import numpy as np

from tracegraph.ir import Eqn, Literal, Program
from tracegraph.passes.rewrite import Defs, Replacement, rewrite


def fold(program: Program) -> Program:
    """The program with a literal for each scalar that an op computes from literals."""
    return rewrite(program, lambda: _fold)


def _fold(eqn: Eqn, defs: Defs) -> Replacement | None:
    values = [a.value for a in eqn.operands if isinstance(a, Literal)]
    scalars = all(out.type.shape == () for out in eqn.outputs)
    if not values or len(values) < len(eqn.operands) or eqn.regions or not scalars:
        return None
    with np.errstate(all="ignore"):
        found = eqn.op.reference(*map(np.asarray, values), **eqn.attrs)
    results = found if isinstance(found, tuple) else (found,)
    literals = (
        Literal(np.asarray(value)[()], out.type)
        for value, out in zip(results, eqn.outputs, strict=True)
    )
    return Replacement(tuple(literals))
