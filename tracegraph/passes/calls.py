"""Inlining of calls: functions with rules for their derivatives, in place of their equations.

It is the last pass: until then such a call is closed, so that what is computed again on purpose is
not merged with what it repeats.
"""

from __future__ import annotations

from tracegraph.ir.op import Call
from tracegraph.ir.program import Eqn, Program
from tracegraph.passes.rewrite import Defs, Replacement, inlined, rewrite


def inline_calls(program: Program) -> Program:
    """The program with the first region of each call in its place."""
    return rewrite(program, lambda: _rule, only_regions=True)


def _rule(eqn: Eqn, defs: Defs) -> Replacement | None:
    if not isinstance(eqn.op.form, Call):
        return None
    return inlined(eqn.regions[0], eqn.operands, eqn.outputs)
