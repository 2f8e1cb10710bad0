"""Composition of views: two reshapes, broadcasts, transposes or slices in a row become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracegraph.ir.program import Atom, Eqn, Program, Value
from tracegraph.ir.record import replace
from tracegraph.passes.rewrite import Defs, Replacement, Rule, by_name, producer, rewrite


def compose_views(program: Program) -> Program:
    """The program with chains of views of one kind replaced by a single view."""
    return rewrite(program, lambda: by_name(compose_rules))


def _last_link(eqn: Eqn, defs: Defs) -> Replacement | None:
    """A chain of reshapes, or of broadcasts, is its last link, applied to the chain's operand."""
    x = eqn.operands[0]
    inner = producer(eqn, defs)
    if x.type == eqn.outputs[0].type:
        return Replacement((x,))
    if inner is None:
        return _empty(eqn, defs)
    return _composed(eqn, defs, inner.operands[0], eqn.attrs)


def _empty(eqn: Eqn, defs: Defs) -> Replacement | None:
    """Of an array without values, an array without values."""
    x, out = eqn.operands[0], eqn.outputs[0]
    maker = defs.get(x) if isinstance(x, Value) else None
    if maker is None or maker.op.name != "empty":
        return None
    attrs = {"shape": out.type.shape, "dtype": out.type.dtype}
    return Replacement(eqn.outputs, (replace(eqn, op=maker.op, operands=(), attrs=attrs),))


def _transpose(eqn: Eqn, defs: Defs) -> Replacement | None:
    x, axes = eqn.operands[0], tuple(eqn.attrs["axes"])
    if axes == tuple(range(x.type.ndim)):
        return Replacement((x,))
    inner = producer(eqn, defs)
    if inner is None:
        return None
    first = tuple(inner.attrs["axes"])
    return _composed(eqn, defs, inner.operands[0], {"axes": tuple(first[a] for a in axes)})


def _slice(eqn: Eqn, defs: Defs) -> Replacement | None:
    x = eqn.operands[0]
    starts, steps, sizes = [tuple(eqn.attrs[k]) for k in ("starts", "steps", "sizes")]
    if sizes == x.type.shape and _is_whole(starts, steps, sizes):
        return Replacement((x,))
    inner = producer(eqn, defs)
    if inner is None or 0 in sizes:
        return None
    pairs = list(zip(inner.attrs["starts"], inner.attrs["steps"], strict=True))
    attrs = {
        "starts": tuple(s + t * start for (s, t), start in zip(pairs, starts, strict=True)),
        "steps": tuple(t * step for (_, t), step in zip(pairs, steps, strict=True)),
        "sizes": sizes,
    }
    return _composed(eqn, defs, inner.operands[0], attrs)


def _is_whole(starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a slice takes all elements in order. The step of an axis of extent 1 is arbitrary."""
    return all(s == 0 and (t == 1 or n <= 1) for s, t, n in zip(starts, steps, sizes, strict=True))


def _composed(eqn: Eqn, defs: Defs, operand: Atom, attrs: Mapping[str, Any]) -> Replacement:
    """Two views in one, which may be the identity."""
    eqn = replace(eqn, operands=(operand,), attrs=attrs)
    return compose_rules[eqn.op.name](eqn, defs) or Replacement(eqn.outputs, (eqn,))


compose_rules: dict[str, Rule] = {
    "reshape": _last_link,
    "broadcast_to": _last_link,
    "transpose": _transpose,
    "slice": _slice,
}
"""By name of an op: views of views."""
