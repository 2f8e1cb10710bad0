"""Inlining: a branch selected by a literal moves into the region around it; empty loops go."""

from __future__ import annotations

from tracegraph.ir.control_forms import branch_parts, loop_parts
from tracegraph.ir.program import Eqn, Literal, Program, Region
from tracegraph.passes.rewrite import Defs, Replacement, Rule, by_name, inlined, rewrite


def inline(program: Program, settled: set[Region] | None = None) -> Program:
    """The program without branches selected by a literal, and without loops of no iterations.

    `settled` is as in `rewrite`.
    """
    return rewrite(program, lambda: by_name(_RULES), only_regions=True, settled=settled)


def _cond(eqn: Eqn, defs: Defs) -> Replacement | None:
    parts = branch_parts(eqn)
    if not isinstance(parts.selector, Literal):
        return None
    branch = parts.branches[0 if parts.selector.value else 1]
    return inlined(branch, parts.captures, eqn.outputs)


def _switch(eqn: Eqn, defs: Defs) -> Replacement | None:
    parts = branch_parts(eqn)
    if not isinstance(parts.selector, Literal):
        return None
    index = min(max(int(parts.selector.value), 0), len(parts.branches) - 1)
    return inlined(parts.branches[index], parts.captures, eqn.outputs)


def _while_loop(eqn: Eqn, defs: Defs) -> Replacement | None:
    if eqn.attrs.get("trip_count") == 0:
        return Replacement(loop_parts(eqn).init)
    return None


_RULES: dict[str, Rule] = {"cond": _cond, "switch": _switch, "while_loop": _while_loop}
