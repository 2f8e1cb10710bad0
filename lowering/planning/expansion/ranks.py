"""Elements at places of the order, where sorting finds them faster."""

from __future__ import annotations

from functools import partial
from math import prod

from lowering.plan.sort import MOST_IN_BLOCK
from lowering.plan.target.target import Target
from tracegraph.ir.program import Atom, Eqn, Program, application, walk
from tracegraph.ops.ranked import runs
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite

_ROWS = 128
"""Rows that blocks of a GPU work on side by side; fewer are sorted by all blocks together, if long.
Rows that a block sorts are read once for that, and twice to find elements."""


def expand_ranks(program: Program, target: Target) -> Program:
    """The program with sorts in place of those `ranked` whose rows are short or few; on a host, of
    all.
    """
    if not any(eqn.op.name == "ranked" for eqn in walk(program.body)):
        return program
    return rewrite(program, lambda: by_name({"ranked": partial(_sorted, target.sort_scratch)}))


def _sorted(may_rank: bool, eqn: Eqn, defs: Defs) -> Replacement | None:
    (x,) = eqn.operands
    *batch, length = x.type.shape
    if may_rank and length > MOST_IN_BLOCK and prod(batch) >= _ROWS:
        return None
    eqns = [application("sort", (x,), {}, eqn.source)]
    (rows,) = eqns[0].outputs
    parts: list[Atom] = []
    for start, count in runs(eqn.attrs["places"]):
        attrs = {
            "starts": (*[0] * len(batch), start),
            "steps": (1,) * (len(batch) + 1),
            "sizes": (*batch, count),
        }
        eqns.append(application("slice", (rows,), attrs, eqn.source))
        parts += eqns[-1].outputs
    if len(parts) > 1:
        eqns.append(application("concatenate", tuple(parts), {"axis": len(batch)}, eqn.source))
    return Replacement(eqns[-1].outputs, tuple(eqns))
