"""Batching of effects: what each live lane prints, checks, reports and calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Effect, get
from tracegraph.ir.program import Atom, Eqn, walk
from tracegraph.transforms.batching.lanes import Batch, Lanes

_OF_EACH_LANE = frozenset({"debug_print", "debug_callback", "embedded_graph", "cond", "scan"})


def is_effect(eqn: Eqn) -> bool:
    """Whether an equation is an effect, or a scan of nothing but those of lanes inside."""
    if isinstance(eqn.op.form, Effect):
        return True
    if eqn.op.name != "scan" or [value.type for value in eqn.outputs] != [TOKEN]:
        return False
    return all(each.op.name in _OF_EACH_LANE for each in walk(eqn.regions[0]))


def batch_effect(lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]) -> Atom:
    """Record an effect for the live lanes; the token after it."""
    token, *values = operands
    return _RULES.get(eqn.op.name, _for_each_lane)(lanes, eqn, token.atom, values)


def _for_each_lane(lanes: Lanes, eqn: Eqn, token: Atom, values: Sequence[Batch]) -> Atom:
    """The prints or callbacks of each live lane, in order: a scan over the lanes."""
    sliced = [x.atom for x in values if x.is_batched]
    shared = [x.atom for x in values if not x.is_batched]
    xs = [*sliced, *lanes.masks]

    def step(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        before, *rest = params
        own = iter(rest[: len(sliced)])
        common = iter(rest[len(xs) :])
        given = [next(own if x.is_batched else common) for x in values]
        if lanes.mask is None:
            return [_perform(inner, eqn, (before, *given))]
        operands = (before, *given)
        types = [atom.type for atom in operands]
        branches = (
            inner.region(types, lambda at, atoms: [_perform(at, eqn, atoms)]),
            inner.region(types, lambda at, atoms: atoms[:1]),
        )
        selector = rest[len(sliced)]
        (after,) = inner.trace.record(get("cond"), (selector, *operands), {}, branches)
        return [after.atom]

    slices = [x.type.with_shape(x.type.shape[1:]) for x in xs]
    types = [token.type, *slices, *[x.type for x in shared]]
    attrs = {"carry": 1, "xs": len(xs), "length": lanes.count, "reverse": False}
    region = lanes.masked(None).region(types, step)
    (after,) = lanes.trace.record(get("scan"), (token, *xs, *shared), attrs, (region,))
    return after.atom


def _require(lanes: Lanes, eqn: Eqn, token: Atom, values: Sequence[Batch]) -> Atom:
    """One check of all live lanes."""
    ((ok, is_batched),) = values
    if lanes.mask is not None:
        ok = lanes.emit("logical_or", ok, lanes.emit("logical_not", lanes.mask))
        is_batched = True
    if is_batched:
        ok = lanes.emit("all", ok, axes=(0,))
    return _perform(lanes, eqn, (token, ok))


def _report(lanes: Lanes, eqn: Eqn, token: Atom, values: Sequence[Batch]) -> Atom:
    """One report, of the live lane with the most steps."""
    ((step, is_batched),) = values
    if not is_batched:
        return _perform(lanes, eqn, (token, step))
    if lanes.count == 0:
        return token
    if lanes.mask is not None:
        step = lanes.select(lanes.mask, step, lanes.zeros(step.type))
    return _perform(lanes, eqn, (token, lanes.emit("max", step, axes=(0,))))


def _once(lanes: Lanes, eqn: Eqn, token: Atom, values: Sequence[Batch]) -> Atom:
    """One call of a C function, which gets nothing of the lanes."""
    return _perform(lanes, eqn, (token,))


def _once_behind(lanes: Lanes, eqn: Eqn, token: Atom, values: Sequence[Batch]) -> Atom:
    """One use of an event, behind the values of all lanes."""
    return _perform(lanes, eqn, (token, *[value.atom for value in values]))


def _perform(lanes: Lanes, eqn: Eqn, operands: Sequence[Atom]) -> Atom:
    (after,) = lanes.trace.record(eqn.op, operands, eqn.attrs, eqn.regions, eqn.hints)
    return after.atom


_RULES: Mapping[str, Callable[[Lanes, Eqn, Atom, Sequence[Batch]], Atom]] = {
    "require": _require,
    "report_step": _report,
    "host_call": _once,
    "use_event": _once_behind,
    "mark_time": _once_behind,
}
