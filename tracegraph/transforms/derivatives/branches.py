"""Derivatives of cond and switch: the same choice between branches with tangents.

Backwards, what a branch needs of its own values is kept in slots, which the branches share by type,
and by the axes of devices over which values differ: what decides about a collective in one branch
must be the same on all, whatever the other branches keep.
Elementwise values are computed again of the operands instead. Only the branch taken runs, backwards
too: a NaN of the other one reaches no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph import errors
from tracegraph.ir.control_forms import branch_parts
from tracegraph.ir.program import Eqn, Value
from tracegraph.ir.types import ArrayType
from tracegraph.ir.varying import EQUAL, Axes
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import BodyParts, dense, region_of, take_apart, with_tangents
from tracegraph.transforms.cotangent_axes import inside
from tracegraph.transforms.derivatives import linearize, transpose
from tracegraph.transforms.derivatives.activity import Activity
from tracegraph.transforms.derivatives.linearize import Linearizer, Tangents, relevant_atoms
from tracegraph.transforms.derivatives.transpose import Cotangents, Transposer


def _rule(
    self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents
) -> tuple[Sequence[Any], Sequence[Any]]:
    branches, activity = branch_parts(eqn).branches, Activity()
    relevant = [relevant_atoms(branch) for branch in branches]
    params = zip(*(branch.params for branch in branches), strict=True)
    matters = [any(map(set.__contains__, relevant, param)) for param in params]
    ts = [ts[0], *(t if flag else None for t, flag in zip(ts[1:], matters, strict=True))]
    active = [t is not None for t in ts[1:]]
    columns = [activity.results(branch, active) for branch in branches]
    live = [any(column) for column in zip(*columns, strict=True)]
    if not any(live):
        return self.copied(eqn, xs), ()
    given = [t for t in ts if t is not None]
    if self.is_forward:
        return _forward(self, eqn, xs, given, active, live)
    return _apart(self, eqn, xs, given, active, live)


def _spread(found: Sequence[Any], live: Sequence[bool]) -> list[Any]:
    each = iter(found)
    return [next(each) if flag else None for flag in live]


def _forward(
    self: Linearizer,
    eqn: Eqn,
    xs: Sequence[Tracer],
    given: Sequence[Tracer],
    active: Sequence[bool],
    live: Sequence[bool],
) -> tuple[Sequence[Any], Sequence[Any]]:
    regions = tuple(
        with_tangents(self.primal, branch, active, live) for branch in branch_parts(eqn).branches
    )
    atoms = [self.primal.read(x) for x in (*xs, *given)]
    outs = self.primal.record(eqn.op, atoms, eqn.attrs, regions, eqn.hints)
    count = len(eqn.outputs)
    return outs[:count], _spread(outs[count:], live)


def _apart(
    self: Linearizer,
    eqn: Eqn,
    xs: Sequence[Tracer],
    given: Sequence[Tracer],
    active: Sequence[bool],
    live: Sequence[bool],
) -> tuple[Sequence[Any], Sequence[Any]]:
    every = [True] * len(active)
    parts = [
        take_apart(self.primal, branch, active, live, every)
        for branch in branch_parts(eqn).branches
    ]
    given_sets = [self.primal.varying_axes(x) for x in xs[1:]]
    slots, places = _slots(parts, given_sets if self.primal.axes else ())
    regions = []
    for part, place in zip(parts, places, strict=True):
        kept: list[Any] = [None] * len(slots)
        for value, slot in place.items():
            kept[slot] = Tracer(part.primal, value)
        regions.append(part.primal_region(dense(part.primal, slots, kept)))
    atoms = [self.primal.read(x) for x in xs]
    outs = self.primal.record(eqn.op, atoms, eqn.attrs, tuple(regions), eqn.hints)
    count = len(eqn.outputs)
    used = sorted({i for part in parts for i in part.free_needed()})
    captures = [xs[1 + i] for i in used]
    types = [*(t.type for t in given), *slots, *(x.type for x in captures)]

    def recorded(part: BodyParts, place: dict[Value, int]) -> Any:
        def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
            tangents, rest = params[: len(given)], params[len(given) :]
            known: dict[Value, Any] = {value: rest[slot] for value, slot in place.items()}
            known |= {part.params[i]: rest[len(slots) + at] for at, i in enumerate(used)}
            return part.record_linear(trace, tangents, known)

        return region_of(self.linear, types, record)

    linear = tuple(recorded(part, place) for part, place in zip(parts, places, strict=True))
    operands = [self.linear.read(x) for x in (xs[0], *given, *outs[count:], *captures)]
    found = self.linear.record(eqn.op, operands, {}, linear, eqn.hints)
    return outs[:count], _spread(found, live)


def _slots(
    parts: Sequence[BodyParts], sets: Sequence[Axes]
) -> tuple[list[ArrayType], list[dict[Value, int]]]:
    """The types of the slots, and for each branch the slot of each value that it keeps.

    `sets` are the axes over which operands of the branches vary, if axes of devices have names.
    """
    slots: list[tuple[ArrayType, Axes]] = []
    places = []
    for part in parts:
        varying = part.varying(sets) if sets else {}
        place: dict[Value, int] = {}
        for value in part.cut.kept:
            slot = value.type.strong(), varying.get(value, EQUAL)
            free = [i for i, s in enumerate(slots) if s == slot and i not in place.values()]
            if not free:
                free = [len(slots)]
                slots.append(slot)
            place[value] = free[0]
        places.append(place)
    return [type_ for type_, _ in slots], places


def _transpose(self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents) -> Cotangents:
    if flags[0]:
        raise errors.NonlinearError(eqn.op.name, eqn.source)
    parts = branch_parts(eqn)
    linear = flags[1:]
    live = [ct is not None for ct in cts]
    varying, returned = inside(eqn, self.varying)
    captured = list(zip(parts.captures, linear, strict=True))
    residuals = [self.value(a) for a, flag in captured if not flag]
    so_far = [self.pop_cotangent(a) for a, flag in captured if flag]
    wanted = [a.type for a, flag in captured if flag]
    live_cts = [ct for ct in cts if ct is not None]
    operands = [*residuals, *live_cts, *(acc for acc in so_far if acc is not None)]
    types = [x.type for x in operands]

    def backwards(branch: Any) -> Any:
        def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
            rest = params[: len(residuals)]
            rest_of_params = iter(params[len(residuals) :])
            own = [next(rest_of_params) if flag else None for flag in live]
            before = [None if acc is None else next(rest_of_params) for acc in so_far]
            cotangents = Transposer(trace).run(branch, linear, rest, own, before, varying, returned)
            return dense(trace, wanted, cotangents)

        return region_of(self.trace, types, record)

    regions = tuple(map(backwards, parts.branches))
    atoms = [self.trace.read(x) for x in (self.value(parts.selector), *operands)]
    cotangents = iter(self.trace.record(eqn.op, atoms, {}, regions, eqn.hints))
    return [None, *(next(cotangents) if flag else None for flag in linear)]


for _name in ("cond", "switch"):
    linearize.STRUCTURAL[_name] = _rule
    transpose.STRUCTURAL[_name] = _transpose
