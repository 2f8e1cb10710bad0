"""Derivatives of scan, while_loop and fori_loop.

    forwards     tangents join the carry, the slices and the stacked results; conditions ignore them
    linearized   the loop stacks what its derivative keeps of each step; the derivative is a scan
                 over these stacks, or a counted loop if the number of steps depends on data. If it
                 has no bound, the loop runs again with its tangents: that has no transpose
    backwards    `reverse_loops`

Which carries have tangents is a fixed point (`activity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import LoopParts, loop_counts, loop_parts
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Literal, Region, Value
from tracegraph.ir.record import replace
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import BodyParts, region_of, take_apart, with_tangents
from tracegraph.transforms.derivatives import linearize
from tracegraph.transforms.derivatives.activity import Activity
from tracegraph.transforms.derivatives.linearize import (
    Linearizer,
    Results,
    Tangents,
    relevant_atoms,
)
from tracegraph.transforms.derivatives.reverse_loops import NUMBER, counted_loop, unbounded
from tracegraph.transforms.derivatives.two_level_checkpoints import needs_segments, segmented
from tracegraph.transforms.functions_with_rules import run_region, without_effects
from tracegraph.transforms.trace_emitter import Emit, plain


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop to differentiate: which operands are active, and which results.

    Operands are carries, slices of xs, and captures: `roles` are 0, 1 and 2.
    """

    eqn: Eqn
    parts: LoopParts
    active: tuple[bool, ...]
    live: tuple[bool, ...]

    @staticmethod
    def of(eqn: Eqn, ts: Tangents) -> _Loop:
        activity, parts = Activity(), loop_parts(eqn)
        # zeros that transposed loops give back for captures would meet infinite factors outside
        relevant, carries = relevant_atoms(parts.body), len(parts.init)
        has_tangent = [
            t is not None and (i < carries or p in relevant)
            for i, (t, p) in enumerate(zip(ts, parts.body.params, strict=True))
        ]
        active = tuple(activity.operands(eqn, has_tangent))
        results = activity.results(eqn.regions[-1], active)
        count = len(parts.init)
        return _Loop(eqn, parts, active, (*active[:count], *results[count:]))

    @property
    def roles(self) -> list[int]:
        counts = (len(self.parts.init), len(self.parts.xs), len(self.parts.captures))
        return [role for role, count in enumerate(counts) for _ in range(count)]

    def chosen(self, role: int) -> list[int]:
        """The positions of the active operands of a role."""
        return [i for i, r in enumerate(self.roles) if r == role and self.active[i]]

    def tangents(self, linearizer: Linearizer, ts: Tangents) -> dict[int, Any]:
        """The tangents of the active operands. For a carry that gets one later, zeros are made, or
        where it is an array that is not written yet, another such array.
        """
        emit, found = Emit(linearizer.linear), {}
        for i, (atom, active) in enumerate(zip(self.eqn.operands, self.active, strict=True)):
            if active and ts[i] is not None:
                found[i] = ts[i]
            elif active and atom in linearizer.unwritten:
                found[i] = emit.empty(shape=atom.type.shape, dtype=atom.type.dtype)
            elif active:
                found[i] = emit.zeros(atom.type.strong())
        return found

    def spread(self, found: Sequence[Any]) -> list[Any]:
        """Tangents of the live results at their places."""
        each = iter(found)
        return [next(each) if flag else None for flag in self.live]


def _rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    loop = _Loop.of(eqn, ts)
    if not any(loop.live):
        return self.copied(eqn, xs), ()
    if self.is_forward:
        return _with_tangents(self.primal, loop, xs, loop.tangents(self, ts))
    if eqn.op.name == "scan":
        return _apart(self, loop, xs, ts)
    if eqn.attrs.get("trip_count") is not None:
        return _apart(self, replace(loop, eqn=_as_scan(eqn)), xs, ts)
    if eqn.attrs.get("max_steps") is not None:
        return _apart_counted(self, loop, xs, ts)
    if self.is_transposed:
        raise unbounded(eqn, [a.type for a in loop.parts.init])
    return self.copied(eqn, xs), _again(self, loop, xs, ts)


def _as_scan(eqn: Eqn) -> Eqn:
    """A loop of a known number of steps as a scan without slices."""
    count, length = eqn.attrs["carry"], eqn.attrs["trip_count"]
    attrs = {"carry": count, "xs": 0, "length": length, "reverse": False}
    return replace(eqn, op=get("scan"), attrs=attrs, regions=eqn.regions[-1:])


# forwards


def _with_tangents(
    trace: Trace, loop: _Loop, xs: Sequence[Tracer], given: dict[int, Any]
) -> tuple[Sequence[Tracer], list[Any]]:
    """Each role takes its tangents behind its own: carry… tangents… xs… tangents… and so on."""
    eqn = loop.eqn
    chosen = [loop.chosen(role) for role in range(3)]
    own = [[i for i, r in enumerate(loop.roles) if r == role] for role in range(3)]
    operands = [
        x
        for role in range(3)
        for x in (*(xs[i] for i in own[role]), *(given[i] for i in chosen[role]))
    ]
    body = with_tangents(trace, loop.parts.body, loop.active, loop.live)
    order = _interleaved(own, chosen, loop.active)
    count = len(own[0])
    stacked = len(eqn.outputs) - count
    live = sum(loop.live[:count])
    results = _swapped(body.results, count, stacked, live)
    regions = [Region(tuple(body.params[i] for i in order), body.eqns, results)]
    if loop.parts.condition is not None:
        regions.insert(0, _widened(loop.parts.condition, body, order))
    attrs = loop_counts(eqn, count + len(chosen[0]), len(own[1]) + len(chosen[1]))
    atoms = [trace.read(x) for x in operands]
    outs = trace.record(eqn.op, atoms, attrs, tuple(regions), eqn.hints)
    outs = _swapped(outs, count, live, stacked)
    return outs[: len(eqn.outputs)], loop.spread(outs[len(eqn.outputs) :])


def _again(self: Linearizer, loop: _Loop, xs: Sequence[Tracer], ts: Tangents) -> list[Any]:
    """The tangents of a loop without a bound: it runs once more with them, but for its effects."""
    tangents = loop.tangents(self, ts)
    operands = [plain(self.linear, x) for x in (*xs, *tangents.values())]

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        trace.source = loop.eqn.source
        given = dict(zip(tangents, params[len(xs) :], strict=True))
        outs, found = _with_tangents(trace, loop, params[: len(xs)], given)
        tokens = [out for out in outs if out.type == TOKEN]
        return [*(t for t in found if t is not None), *tokens]

    region = region_of(self.linear, [x.type for x in operands], record)
    region = without_effects(self.linear, region)
    args = [x for x in operands if x.type != TOKEN]
    return loop.spread(run_region(self.linear, region, args))


def _interleaved(
    own: Sequence[Sequence[int]], chosen: Sequence[Sequence[int]], active: Sequence[bool]
) -> list[int]:
    """The positions of parameters (params…, tangents…) in the order of roles."""
    total = len(active)
    place = {i: total + n for n, i in enumerate(i for i, flag in enumerate(active) if flag)}
    return [p for role in range(3) for p in (*own[role], *(place[i] for i in chosen[role]))]


def _swapped(items: Sequence[Any], first: int, second: int, third: int) -> tuple[Any, ...]:
    """The second and the third run of the items exchanged."""
    a, b, c = first, first + second, first + second + third
    return (*items[:a], *items[b:c], *items[a:b], *items[c:])


def _widened(condition: Region, body: Region, order: Sequence[int]) -> Region:
    """The condition with parameters for tangents, which it does not use."""
    count = len(condition.params)
    params = [condition.params[i] if i < count else Value(body.params[i].type) for i in order]
    return Region(tuple(params), condition.eqns, condition.results)


# taken apart


def _apart(self: Linearizer, loop: _Loop, xs: Sequence[Tracer], ts: Tangents) -> Results:
    """A scan that stacks what is kept of each step, and a scan of the linear part."""
    eqn, roles = loop.eqn, loop.roles
    part = _taken_apart(self, loop)
    counters = _counters(loop, part)
    there = _stacked_results(part, len(loop.parts.init))
    new = [value for value in part.cut.kept if value not in there and value not in counters]
    if needs_segments(eqn, new):
        whole = segmented(self.primal, eqn)
        return Linearizer(self.primal, self.linear).run(whole, xs, ts)
    body = part.primal_region([Tracer(part.primal, value) for value in new])
    atoms = [self.primal.read(x) for x in xs]
    outs = self.primal.record(eqn.op, atoms, eqn.attrs, (body,), eqn.hints)
    own = len(eqn.outputs)
    places = {**there, **{value: own + n for n, value in enumerate(new)}}
    free = part.free_needed()
    slices, captures = ([i for i in free if roles[i] == role] for role in (1, 2))
    given = loop.tangents(self, ts)
    carry, moving, fixed = ({i: given[i] for i in loop.chosen(role)} for role in range(3))
    sliced: _Named = {value: outs[places[value]] for value in part.cut.kept if value in places}
    sliced |= {v: _numbers(self.linear, loop.eqn, xs[i]) for v, i in counters.items()}
    sliced |= {part.params[i]: xs[i] for i in slices} | moving
    operands: _Named = {**carry, **sliced, **{part.params[i]: xs[i] for i in captures}, **fixed}

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        return _linear_step(loop, part, trace, dict(zip(operands, params, strict=True)))

    types = [
        x.type.with_shape(x.shape[1:]) if name in sliced else x.type for name, x in operands.items()
    ]
    region = region_of(self.linear, types, record)
    attrs = {**eqn.attrs, "carry": len(carry), "xs": len(sliced)}
    atoms = [self.linear.read(x) for x in operands.values()]
    found = self.linear.record(eqn.op, atoms, attrs, (region,), eqn.hints)
    return outs[:own], loop.spread(found)


_Named = dict[Any, Any]
"""Operands of a linear loop: tangents by their positions, kept and free values by the value."""


def _taken_apart(self: Linearizer, loop: _Loop) -> BodyParts:
    """The body; slices and captures need not be kept."""
    free = [role > 0 for role in loop.roles]
    return take_apart(self.primal, loop.parts.body, loop.active, loop.live, free)


def _linear_step(loop: _Loop, part: BodyParts, trace: Trace, named: _Named) -> Sequence[Any]:
    tangents = [named[i] for i, flag in enumerate(loop.active) if flag]
    known = {name: x for name, x in named.items() if isinstance(name, Value)}
    return part.record_linear(trace, tangents, known)


def _counters(loop: _Loop, part: BodyParts) -> dict[Value, int]:
    """The kept carries that count the steps, and their positions: they need not be kept."""
    makers: dict[Any, Eqn] = {v: eqn for eqn in part.primal.eqns for v in eqn.outputs}
    found = {}
    for i, param in enumerate(part.params[: len(loop.parts.init)]):
        maker = makers.get(part.primal.read(part.results[i]))
        if maker is None or maker.op.name != "add" or param not in part.cut.kept:
            continue
        first, step = maker.operands
        by_one = isinstance(step, Literal) and step.value == 1
        if first is param and by_one and not param.type.shape:
            found[param] = i
    return found


def _numbers(trace: Trace, eqn: Eqn, first: Tracer) -> Any:
    """The values of a counter in the order of slices."""
    emit, length = Emit(trace), eqn.attrs["length"]
    numbers = emit.iota(size=length, dtype=first.dtype)
    if eqn.attrs["reverse"]:
        numbers = emit.subtract(first.dtype.type(max(length - 1, 0)), numbers)
    return emit.add(numbers, first)


def _stacked_results(part: BodyParts, count: int) -> dict[Value, int]:
    """The values that the loop stacks anyway, and the positions of these results."""
    atoms = [part.primal.read(x) for x in part.results]
    return {a: n for n, a in enumerate(atoms) if n >= count and isinstance(a, Value)}


def _apart_counted(self: Linearizer, loop: _Loop, xs: Sequence[Tracer], ts: Tangents) -> Results:
    """A loop that counts its steps, at most `max_steps`, and writes what is kept to rows of
    stacks; and a counted loop of the linear part. There are no slices.
    """
    eqn, parts, emit = loop.eqn, loop.parts, Emit(self.primal)
    count, bound = len(parts.init), eqn.attrs["max_steps"]
    part = _taken_apart(self, loop)
    counters = _counters(loop, part)
    kept = [value for value in part.cut.kept if value not in counters]
    if needs_segments(eqn, kept):
        whole = segmented(self.primal, eqn)
        return Linearizer(self.primal, self.linear).run(whole, xs, ts)
    rows = [v.type.strong().with_shape((bound, *v.type.shape)) for v in kept]
    empty = [emit.empty(shape=t.shape, dtype=t.dtype) for t in rows]  # read where written alone
    state = [*xs[:count], np.int64(0), *empty]
    captures = xs[count:]
    types = [*(p.type for p in part.params[:count]), NUMBER, *rows, *(x.type for x in captures)]

    def step(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        f, at = Emit(trace), params[count]
        stacks, rest = params[count + 1 : len(state)], params[len(state) :]
        body = part.primal_region([Tracer(part.primal, value) for value in kept])
        args = [*params[:count], *rest]
        outs, _ = Linearizer(trace, trace).run(body, args, [None] * len(args))
        written = [_with_row(f, s, v, at) for s, v in zip(stacks, outs[count:], strict=True)]
        return [*outs[:count], f.add(at, np.int64(1)), *written]

    def test(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        assert parts.condition is not None
        args = [*params[:count], *params[len(state) :]]
        return Linearizer(trace, trace).run(parts.condition, args, [None] * len(args))[0]

    regions = region_of(self.primal, types, test), region_of(self.primal, types, step)
    atoms = [self.primal.read(x) for x in (*state, *captures)]
    attrs = {**eqn.attrs, "carry": len(state), "counted": False}
    outs = self.primal.record(eqn.op, atoms, attrs, regions, eqn.hints)
    steps, stacks = outs[count], outs[count + 1 :]

    given = loop.tangents(self, ts)
    carry, fixed = ({i: given[i] for i in loop.chosen(role)} for role in (0, 2))
    stacked: _Named = dict(zip(kept, stacks, strict=True))
    there: _Named = {part.params[i]: xs[i] for i in part.free_needed()}
    there |= {value: xs[i] for value, i in counters.items()}

    def linear(trace: Trace, at: Any, state: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any]:
        named = dict(zip((*carry, *stacked, *there, *fixed), (*state, *rest), strict=True))
        f = Emit(trace)
        named |= {v: _row(f, named[v], at) for v in stacked}
        named |= {v: f.add(f.cast(at, dtype=v.type.dtype), named[v]) for v in counters}
        return _linear_step(loop, part, trace, named)

    operands = (*stacked.values(), *there.values(), *fixed.values())
    found = counted_loop(self.linear, eqn, bound, steps, list(carry.values()), operands, linear)
    return outs[:count], loop.spread(found)


def _row(f: Emit, stack: Any, at: Any) -> Any:
    shape = stack.shape[1:]
    starts = (at, *(np.int64(0) for _ in shape))
    return f.reshape(f.dynamic_slice(stack, *starts, sizes=(1, *shape)), shape=shape)


def _with_row(f: Emit, stack: Any, value: Any, at: Any) -> Any:
    shape = stack.shape[1:]
    starts = (at, *(np.int64(0) for _ in shape))
    return f.dynamic_update_slice(stack, f.reshape(value, shape=(1, *shape)), *starts)


for _name in ("scan", "while_loop"):
    linearize.STRUCTURAL[_name] = _rule
