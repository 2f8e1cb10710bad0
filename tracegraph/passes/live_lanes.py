"""Marks that only derivatives need: they go before lowering.

    with_derivative x …   ->   x                   what is lowered
    stop_gradient x       ->   x                   what is lowered
    eigh[order=k] x       ->   eigh x              what is lowered; svd as well
    live_lanes mask x     ->   x                   what is lowered
                          ->   where mask x 1      what is differentiated

The latter marks lanes that run for nothing, and isolates them before derivatives are taken: their
tangents and cotangents are zero, and the values that these are multiplied with are finite: no NaN
of such a lane reaches what all lanes share.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracegraph.ir.program import Eqn, Literal, Program, application, walk
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.passes.rewrite import Defs, Replacement, Rule, by_name, rewrite


def without_marks(program: Program) -> Program:
    """The program without marks."""
    plain = dict.fromkeys(("with_derivative", "stop_gradient"), _plain)
    ordered = dict.fromkeys(("eigh", "svd"), _without_order)
    return _replaced(program, {"live_lanes": _unmarked, **plain, **ordered})


def with_dead_lanes_isolated(program: Program) -> Program:
    """The program with ones in the lanes that are not live, wherever they are marked."""
    return _replaced(program, {"live_lanes": _isolated})


def _replaced(program: Program, rules: Mapping[str, Rule]) -> Program:
    if not any(eqn.op.name in rules for eqn in walk(program.body)):
        return program
    return rewrite(program, lambda: by_name(rules))


def _without_order(eqn: Eqn, defs: Defs) -> Replacement | None:
    if "order" not in eqn.attrs:
        return None
    attrs = {name: value for name, value in eqn.attrs.items() if name != "order"}
    return Replacement(eqn.outputs, (replace(eqn, attrs=attrs),))


def _plain(eqn: Eqn, defs: Defs) -> Replacement:
    return Replacement(eqn.operands[:1])


def _unmarked(eqn: Eqn, defs: Defs) -> Replacement:
    x, (out,) = eqn.operands[1], eqn.outputs
    if x.type == out.type:
        return Replacement((x,))
    spread = application("broadcast_to", (x,), {"shape": out.type.shape}, eqn.source)
    return Replacement(spread.outputs, (spread,))


def _isolated(eqn: Eqn, defs: Defs) -> Replacement:
    mask, x = eqn.operands
    one = Literal.of(1, ArrayType(x.type.dtype))
    chosen = application("where", (mask, x, one), {}, eqn.source)
    return Replacement(chosen.outputs, (chosen,))
