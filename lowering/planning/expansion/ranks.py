"""Selections of elements of rows, where sorting finds them faster."""

from __future__ import annotations

from functools import partial
from math import prod

from lowering.plan.selection import SelectionShape
from lowering.plan.sort import MOST_IN_BLOCK
from lowering.plan.target.target import Target
from tracegraph.ir.program import Atom, Eqn, Literal, Program, application, walk
from tracegraph.ops.ranked import runs
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite

_ROWS = 128
"""Rows that blocks of a GPU work on side by side; fewer are sorted by all blocks together, if long.
Rows that a block sorts are read once for that, and twice to find elements."""

_PARTS, _KEYS = 64, 1 << 22
"""Rows in more parts, and of fewer keys, are sorted. On an H100, 20 and 200 of a row of 10⁶ float32
take 0.17 ms in 223 and 70 parts, and its sort 0.1; 10 of 10⁵ in 24 parts 0.02, and 0.05; 10 of 10⁷
0.06, and 0.52."""


def expand_ranks(program: Program, target: Target) -> Program:
    """The program with sorts in place of selections whose rows are short or few; on a host, of all
    that are `ranked`.
    """
    if not any(eqn.op.name in ("ranked", "largest") for eqn in walk(program.body)):
        return program
    on_gpu = target.sort_scratch
    rules = {"ranked": partial(_in_order, on_gpu), "largest": partial(_from_behind, on_gpu)}
    return rewrite(program, lambda: by_name(rules))


def _in_order(on_gpu: bool, eqn: Eqn, defs: Defs) -> Replacement | None:
    """Slices of the sorted rows."""
    (x,) = eqn.operands
    *batch, length = x.type.shape
    if on_gpu and length > MOST_IN_BLOCK and prod(batch) >= _ROWS:
        return None
    eqns = [application("sort", (x,), {}, eqn.source)]
    (rows,) = eqns[0].outputs
    parts: list[Atom] = []
    for start, count in runs(eqn.attrs["places"]):
        eqns.append(_sliced(rows, start, 1, count, eqn))
        parts += eqns[-1].outputs
    if len(parts) > 1:
        eqns.append(application("concatenate", tuple(parts), {"axis": len(batch)}, eqn.source))
    return Replacement(eqns[-1].outputs, tuple(eqns))


def _from_behind(on_gpu: bool, eqn: Eqn, defs: Defs) -> Replacement | None:
    """The last of the order of reversed rows, so that of equal elements the first come first."""
    (x,), (out,) = eqn.operands, eqn.outputs
    *batch, length = x.type.shape
    count = out.type.shape[-1]
    if not on_gpu or x.type.size >= _KEYS or not out.type.size:
        return None
    (_, parts), *_ = SelectionShape(x.type.dtype, prod(batch), length, count).levels
    if parts <= _PARTS:
        return None
    turned = _sliced(x, length - 1, -1, length, eqn)
    order = application("argsort", turned.outputs, {}, eqn.source)
    last = _sliced(order.outputs[0], length - 1, -1, count, eqn)
    end = Literal.of(length - 1, out.type)
    found = application("subtract", (end, *last.outputs), {}, eqn.source)
    return Replacement(found.outputs, (turned, order, last, found))


def _sliced(rows: Atom, start: int, step: int, count: int, eqn: Eqn) -> Eqn:
    """A part of each row."""
    *batch, _ = rows.type.shape
    attrs = {
        "starts": (*[0] * len(batch), start),
        "steps": (*[1] * len(batch), step),
        "sizes": (*batch, count),
    }
    return application("slice", (rows,), attrs, eqn.source)
