"""Inlining: a branch selected by a literal moves into the region around it; empty loops go."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.control_forms import branch_parts, loop_parts
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.record import replace
from tracegraph.passes.rewrite import (
    Defs,
    Replacement,
    Rule,
    by_name,
    map_atoms,
    rewrite,
    substitute,
)


def inline(program: Program, settled: set[Region] | None = None) -> Program:
    """The program without branches selected by a literal, and without loops of no iterations.

    `settled` is as in `rewrite`.
    """
    return rewrite(program, lambda: by_name(_RULES), only_regions=True, settled=settled)


def _cond(eqn: Eqn, defs: Defs) -> Replacement | None:
    parts = branch_parts(eqn)
    if not isinstance(parts.selector, Literal):
        return None
    return _inlined(parts.branches[0 if parts.selector.value else 1], parts.captures)


def _switch(eqn: Eqn, defs: Defs) -> Replacement | None:
    parts = branch_parts(eqn)
    if not isinstance(parts.selector, Literal):
        return None
    index = min(max(int(parts.selector.value), 0), len(parts.branches) - 1)
    return _inlined(parts.branches[index], parts.captures)


def _while_loop(eqn: Eqn, defs: Defs) -> Replacement | None:
    if eqn.attrs.get("trip_count") == 0:
        return Replacement(loop_parts(eqn).init)
    return None


def _inlined(region: Region, atoms: Sequence[Atom]) -> Replacement | None:
    """A copy of the region's equations, with `atoms` for its parameters and new values."""
    if [p.type for p in region.params] != [a.type for a in atoms]:
        return None
    env: dict[Value, Atom] = dict(zip(region.params, atoms, strict=True))
    eqns = []
    for eqn in region.eqns:
        outputs = tuple(Value(value.type) for value in eqn.outputs)
        eqns.append(replace(substitute(eqn, env), outputs=outputs))
        env.update(zip(eqn.outputs, outputs, strict=True))
    return Replacement(tuple(map_atoms(region.results, env)), tuple(eqns))


_RULES: dict[str, Rule] = {"cond": _cond, "switch": _switch, "while_loop": _while_loop}
