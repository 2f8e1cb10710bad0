"""Derivatives of scan, while_loop and fori_loop.

    forwards     tangents join the carry, the slices and the stacked results; conditions ignore them
    linearized   the loop stacks what its derivative keeps of each step; the derivative is a scan
                 over these stacks, or a counted loop if the number of steps depends on data
    backwards    the same loop from the last step to the first. It carries the cotangents of the
                 carry, and sums those of the captures

Which carries have tangents is a fixed point (`activity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.ir.control_forms import LoopParts, loop_counts, loop_parts
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Literal, Region, Value
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms import linearize, transpose
from tracegraph.transforms.activity import Activity
from tracegraph.transforms.bodies import Parts, dense, region_of, take_apart, with_tangents
from tracegraph.transforms.emit import Emit
from tracegraph.transforms.linearize import Linearizer, Tangents
from tracegraph.transforms.transpose import Cotangents, Transposer

Results = tuple[Sequence[Any], Sequence[Any]]

_NUMBER = ArrayType(np.dtype(np.int64))


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
        activity = Activity()
        active = tuple(activity.operands(eqn, [t is not None for t in ts]))
        parts = loop_parts(eqn)
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

    def tangents(self, emit: Emit, xs: Sequence[Tracer], ts: Tangents) -> dict[int, Any]:
        """The tangents of the active operands; zeros are made for a carry that gets one later."""
        return {
            i: emit.zeros(xs[i].type) if ts[i] is None else ts[i]
            for i, flag in enumerate(self.active)
            if flag
        }

    def spread(self, found: Sequence[Any]) -> list[Any]:
        """Tangents of the live results at their places."""
        each = iter(found)
        return [next(each) if flag else None for flag in self.live]


def _rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    loop = _Loop.of(eqn, ts)
    if not any(loop.live):
        return self.copied(eqn, xs), ()
    if self.is_forward:
        return _forward(self, loop, xs, ts)
    if eqn.op.name == "scan":
        return _apart(self, loop, xs, ts)
    if eqn.attrs.get("trip_count") is not None:
        return _apart(self, replace(loop, eqn=_as_scan(eqn)), xs, ts)
    if eqn.attrs.get("max_steps") is not None:
        return _apart_counted(self, loop, xs, ts)
    construct = eqn.hints.construct or "while_loop"
    carried = [a.type.strong() for a in loop.parts.init if a.type != TOKEN]
    kept = sum(p.type.nbytes for p in loop.parts.body.params[: len(loop.parts.init)])
    raise errors.ReverseLoopError(construct, carried, kept, eqn.source)


def _as_scan(eqn: Eqn) -> Eqn:
    """A loop of a known number of steps as a scan without slices."""
    count, length = eqn.attrs["carry"], eqn.attrs["trip_count"]
    attrs = {"carry": count, "xs": 0, "length": length, "reverse": False}
    return replace(eqn, op=get("scan"), attrs=attrs, regions=eqn.regions[-1:])


# forwards


def _forward(self: Linearizer, loop: _Loop, xs: Sequence[Tracer], ts: Tangents) -> Results:
    """Each role takes its tangents behind its own: carry… tangents… xs… tangents… and so on."""
    eqn = loop.eqn
    given = loop.tangents(Emit(self.linear), xs, ts)
    chosen = [loop.chosen(role) for role in range(3)]
    own = [[i for i, r in enumerate(loop.roles) if r == role] for role in range(3)]
    operands = [
        x
        for role in range(3)
        for x in (*(xs[i] for i in own[role]), *(given[i] for i in chosen[role]))
    ]
    body = with_tangents(self.primal, loop.parts.body, loop.active, loop.live)
    order = _interleaved(own, chosen, loop.active)
    count = len(own[0])
    stacked = len(eqn.outputs) - count
    live = sum(loop.live[:count])
    results = _swapped(body.results, count, stacked, live)
    regions = [Region(tuple(body.params[i] for i in order), body.eqns, results)]
    if loop.parts.condition is not None:
        regions.insert(0, _widened(loop.parts.condition, body, order))
    attrs = loop_counts(eqn, count + len(chosen[0]), len(own[1]) + len(chosen[1]))
    atoms = [self.primal.read(x) for x in operands]
    outs = self.primal.record(eqn.op, atoms, attrs, tuple(regions), eqn.hints)
    outs = _swapped(outs, count, live, stacked)
    return outs[: len(eqn.outputs)], loop.spread(outs[len(eqn.outputs) :])


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
    there = _stacked_results(part, len(loop.parts.init))
    new = [value for value in part.cut.kept if value not in there]
    body = part.primal_region([Tracer(part.primal, value) for value in new])
    atoms = [self.primal.read(x) for x in xs]
    outs = self.primal.record(eqn.op, atoms, eqn.attrs, (body,), eqn.hints)
    own = len(eqn.outputs)
    places = {**there, **{value: own + n for n, value in enumerate(new)}}
    free = part.free_needed()
    slices, captures = ([i for i in free if roles[i] == role] for role in (1, 2))
    given = loop.tangents(Emit(self.linear), xs, ts)
    carry, moving, fixed = ({i: given[i] for i in loop.chosen(role)} for role in range(3))
    sliced: _Named = {value: outs[places[value]] for value in part.cut.kept}
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


def _taken_apart(self: Linearizer, loop: _Loop) -> Parts:
    """The body; slices and captures need not be kept."""
    free = [role > 0 for role in loop.roles]
    return take_apart(self.primal, loop.parts.body, loop.active, loop.live, free)


def _linear_step(loop: _Loop, part: Parts, trace: Trace, named: _Named) -> Sequence[Any]:
    tangents = [named[i] for i, flag in enumerate(loop.active) if flag]
    known = {name: x for name, x in named.items() if isinstance(name, Value)}
    return part.record_linear(trace, tangents, known)


def _stacked_results(part: Parts, count: int) -> dict[Value, int]:
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
    kept = part.cut.kept
    rows = [v.type.strong().with_shape((bound, *v.type.shape)) for v in kept]
    state = [*xs[:count], np.int64(0), *(emit.zeros(t) for t in rows)]
    captures = xs[count:]
    types = [*(p.type for p in part.params[:count]), _NUMBER, *rows, *(x.type for x in captures)]

    def step(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        f, at = Emit(trace), params[count]
        stacks, rest = (
            params[count + 1 : len(params) - len(captures)],
            params[len(params) - len(captures) :],
        )
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

    given = loop.tangents(Emit(self.linear), xs, ts)
    carry, fixed = ({i: given[i] for i in loop.chosen(role)} for role in (0, 2))
    stacked: _Named = dict(zip(kept, stacks, strict=True))
    there: _Named = {part.params[i]: xs[i] for i in part.free_needed()}

    def linear(trace: Trace, at: Any, state: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any]:
        named = dict(zip((*carry, *stacked, *there, *fixed), (*state, *rest), strict=True))
        f = Emit(trace)
        named |= {v: _row(f, named[v], at) for v in stacked}
        return _linear_step(loop, part, trace, named)

    operands = (*stacked.values(), *there.values(), *fixed.values())
    found = counted_loop(self.linear, eqn, bound, steps, list(carry.values()), operands, linear)
    return outs[:count], loop.spread(found)


def counted_loop(
    trace: Trace,
    origin: Eqn,
    bound: int,
    steps: Any,
    state: Sequence[Any],
    captures: Sequence[Any],
    body: Any,
) -> Sequence[Tracer]:
    """Record a loop of `steps` iterations, a traced number: `body(trace, i, state, captures)`."""
    split = 1 + len(state)
    types = [_NUMBER, *(x.type for x in state), _NUMBER, *(x.type for x in captures)]

    def step(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        after = body(inner, params[0], params[1:split], params[split + 1 :])
        return [Emit(inner).add(params[0], np.int64(1)), *after]

    def test(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        return [Emit(inner).less(params[0], params[split])]

    regions = region_of(trace, types, test), region_of(trace, types, step)
    attrs = {"carry": split, "max_steps": bound, "counted": True}
    atoms = [trace.read(x) for x in (np.int64(0), *state, steps, *captures)]
    hints = replace(origin.hints, construct=origin.hints.construct or "while_loop")
    return trace.record(get("while_loop"), atoms, attrs, regions, hints)[1:]


def _row(f: Emit, stack: Any, at: Any) -> Any:
    shape = stack.shape[1:]
    starts = (at, *(np.int64(0) for _ in shape))
    return f.reshape(f.dynamic_slice(stack, *starts, sizes=(1, *shape)), shape=shape)


def _with_row(f: Emit, stack: Any, value: Any, at: Any) -> Any:
    shape = stack.shape[1:]
    starts = (at, *(np.int64(0) for _ in shape))
    return f.dynamic_update_slice(stack, f.reshape(value, shape=(1, *shape)), *starts)


# backwards


def _transpose_scan(
    self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents
) -> Cotangents:
    """All its carries are tangents: one that no parameter reaches begins with zeros."""
    parts, body = loop_parts(eqn), eqn.regions[-1]
    count, moving = len(parts.init), len(parts.init) + len(parts.xs)
    linear = [True] * count + list(flags[count:])
    fixed = [i for i in range(moving, len(flags)) if flags[i]]
    slices = [i for i in range(count, moving) if flags[i]]
    rest = [i for i in range(count, len(flags)) if not flags[i]]
    live = [ct is not None for ct in cts[count:]]
    state = [
        *dense(self.trace, [v.type for v in eqn.outputs[:count]], cts[:count]),
        *_sums(self, eqn, fixed),
    ]
    stacked = [
        *(self.value(eqn.operands[i]) for i in rest if i < moving),
        *(ct for ct in cts[count:] if ct is not None),
    ]
    captures = [self.value(eqn.operands[i]) for i in rest if i >= moving]
    types = [
        *(x.type for x in state),
        *(x.type.with_shape(x.shape[1:]) for x in stacked),
        *(x.type for x in captures),
    ]

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        after, sums = params[:count], params[count : len(state)]
        given = params[len(state) : len(state) + len(stacked)]
        own = len(stacked) - sum(live)
        each = iter(given[own:])
        residuals = [*given[:own], *params[len(state) + len(stacked) :]]
        results = [*after, *(next(each) if flag else None for flag in live)]
        before = [None] * (count + len(slices)) + list(sums)
        found = Transposer(trace).run(body, linear, residuals, results, before)
        wanted = [body.params[i].type for i, flag in enumerate(linear) if flag]
        whole = dense(trace, wanted, found)
        middle = count + len(slices)
        return [*whole[:count], *whole[middle:], *whole[count:middle]]

    region = region_of(self.trace, types, record)
    attrs = {
        **eqn.attrs,
        "carry": len(state),
        "xs": len(stacked),
        "reverse": not eqn.attrs["reverse"],
    }
    atoms = [self.trace.read(x) for x in (*state, *stacked, *captures)]
    found = self.trace.record(eqn.op, atoms, attrs, (region,), eqn.hints)
    back: list[Any] = [None] * len(flags)
    for i, ct in zip((*range(count), *fixed, *slices), found, strict=True):
        back[i] = ct
    return back


def _sums(self: Transposer, eqn: Eqn, fixed: Sequence[int]) -> list[Any]:
    """The cotangents so far of captures, to which the loop adds."""
    operands = [eqn.operands[i] for i in fixed]
    so_far = [self.pop_cotangent(a) for a in operands]
    return dense(self.trace, [a.type for a in operands], so_far)


def _transpose_while(
    self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents
) -> Cotangents:
    """A counted loop, from its last iteration to its first."""
    parts, body = loop_parts(eqn), eqn.regions[-1]
    count = len(parts.init)
    if not eqn.attrs.get("counted") or flags[0]:
        raise errors.NonlinearError(eqn.op.name, eqn.source)
    assert parts.condition is not None
    limit = parts.condition.eqns[-1].operands[1]
    steps = self.value(
        limit if isinstance(limit, Literal) else eqn.operands[parts.condition.params.index(limit)]
    )
    linear = [False] + [True] * (count - 1) + list(flags[count:])
    fixed = [i for i in range(count, len(flags)) if flags[i]]
    rest = [i for i in range(count, len(flags)) if not flags[i]]
    state = [
        *dense(self.trace, [v.type for v in eqn.outputs[1:]], cts[1:]),
        *_sums(self, eqn, fixed),
    ]
    captures = [steps, *(self.value(eqn.operands[i]) for i in rest)]

    def step(
        trace: Trace, done: Any, state: Sequence[Any], captured: Sequence[Any]
    ) -> Sequence[Any]:
        f = Emit(trace)
        at = f.subtract(f.subtract(captured[0], np.int64(1)), done)
        after, sums = state[: count - 1], state[count - 1 :]
        before = [None] * (count - 1) + list(sums)
        found = Transposer(trace).run(body, linear, [at, *captured[1:]], [None, *after], before)
        return dense(trace, [x.type for x in state], found)

    bound = eqn.attrs["max_steps"]
    found = counted_loop(self.trace, eqn, bound, steps, state, captures, step)
    back: list[Any] = [None] * len(flags)
    for i, ct in zip((*range(1, count), *fixed), found, strict=True):
        back[i] = ct
    return back


for _name in ("scan", "while_loop"):
    linearize.STRUCTURAL[_name] = _rule
transpose.STRUCTURAL["scan"] = _transpose_scan
transpose.STRUCTURAL["while_loop"] = _transpose_while
