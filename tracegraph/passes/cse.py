"""Common subexpression elimination: the first of equal equations is kept."""

from __future__ import annotations

from collections.abc import Hashable

from tracegraph.ir.barriers import is_barrier
from tracegraph.ir.op import Effect
from tracegraph.ir.program import Eqn, Literal, Program
from tracegraph.passes.rewrite import Defs, Replacement, Rule, rewrite


def cse(program: Program) -> Program:
    """The program in which each region applies an op once to the same operands and attributes.

    Equations with regions are kept, and so are effects. Of the hints, only the order of a scatter
    takes part: the others are of equations with regions. Behind a barrier arguments are read again.
    """
    return rewrite(program, new_cse_rule)


def new_cse_rule() -> Rule:
    """The rule for one region: it remembers the equations seen so far."""
    seen: dict[Hashable, Eqn] = {}

    def rule(eqn: Eqn, defs: Defs) -> Replacement | None:
        key = equation_key(eqn)
        if key is None:
            if is_barrier(eqn):
                seen.clear()
            return None
        first = seen.setdefault(key, eqn)
        return None if first is eqn else Replacement(first.outputs)

    return rule


def equation_key(eqn: Eqn) -> Hashable | None:
    """What is equal for equations of equal results; None for one that equals no other."""
    if eqn.regions or isinstance(eqn.op.form, Effect):
        return None
    operands = [_key(a) if isinstance(a, Literal) else a for a in eqn.operands]
    attrs = frozenset(eqn.attrs.items()) if eqn.attrs else None
    return (eqn.op, attrs, eqn.hints.in_order, *operands)


def _key(literal: Literal) -> Hashable:
    """Literals are equal if their bits are: 0.0 differs from -0.0, and a NaN equals itself."""
    return (literal.type, literal.value.tobytes())
