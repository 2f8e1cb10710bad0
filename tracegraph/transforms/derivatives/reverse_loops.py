"""Loops of linear parts backwards, from the last step to the first.

They carry the cotangents of the carry, and sum those of the captures: onto what there is of them so
far. Slices have cotangents that are stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.ir.control_forms import loop_parts
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Control, get
from tracegraph.ir.program import Eqn, Literal, Region
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import dense, region_of
from tracegraph.transforms.cotangent_axes import inside
from tracegraph.transforms.derivatives import transpose
from tracegraph.transforms.derivatives.transpose import Cotangents, Transposer
from tracegraph.transforms.trace_emitter import Emit

NUMBER = ArrayType(np.dtype(np.int64))
"""The type of the number of a step."""

Step = Callable[[Trace, Any, Sequence[Any], Sequence[Any]], Sequence[Any]]


def counted_loop(
    trace: Trace,
    origin: Eqn,
    bound: int,
    steps: Any,
    state: Sequence[Any],
    captures: Sequence[Any],
    body: Step,
) -> Sequence[Tracer]:
    """Record a loop of `steps` iterations, a traced number: `body(trace, i, state, captures)`."""
    split = 1 + len(state)
    types = [NUMBER, *(x.type for x in state), NUMBER, *(x.type for x in captures)]

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


def unbounded(eqn: Eqn, carried: Sequence[ArrayType]) -> errors.ReverseLoopError:
    """The error of a loop whose number of steps has no bound; `carried` is what it has of its own,
    without tangents.
    """
    types = [t for t in carried if t != TOKEN]
    construct = eqn.hints.construct or "while_loop"
    kept = sum(t.nbytes for t in types)
    return errors.ReverseLoopError(construct, [t.strong() for t in types], kept, eqn.source)


def require_bounds(region: Region, linear: Sequence[bool]) -> None:
    """Check that a region can be transposed in the parameters flagged as linear, as far as its
    loops are concerned, before any cotangent is there.

    Raises:
        ReverseLoopError: a loop has no bound: it runs again with its tangents.
    """
    live = {p for p, flag in zip(region.params, linear, strict=True) if flag}
    for eqn in region.eqns:
        flags = [a in live for a in eqn.operands]
        if not any(flags):
            continue
        live.update(eqn.outputs)
        if eqn.op.name == "while_loop" and not eqn.attrs.get("counted"):
            pairs = zip(loop_parts(eqn).init, flags, strict=False)
            raise unbounded(eqn, [a.type for a, is_tangent in pairs if not is_tangent])
        if isinstance(eqn.op.form, Control) or eqn.op.name == "checkpoint":
            for inner in eqn.regions:
                require_bounds(inner, flags[len(flags) - len(inner.params) :])


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
    varying, returned = inside(eqn, self.varying)
    types = [
        *(x.type for x in state),
        *(x.type.with_shape(x.shape[1:]) for x in stacked),
        *(x.type for x in captures),
    ]

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        after, sums = params[:count], params[count : len(state)]
        slices_in = params[len(state) : len(state) + len(stacked)]
        own = len(stacked) - sum(live)
        cotangents_in = iter(slices_in[own:])
        residuals = [*slices_in[:own], *params[len(state) + len(stacked) :]]
        results = [*after, *(next(cotangents_in) if flag else None for flag in live)]
        before = [None] * (count + len(slices)) + list(sums)
        cotangents_out = Transposer(trace).run(
            body, linear, residuals, results, before, varying, returned
        )
        wanted = [body.params[i].type for i, flag in enumerate(linear) if flag]
        whole = dense(trace, wanted, cotangents_out)
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
    cotangents = self.trace.record(eqn.op, atoms, attrs, (region,), eqn.hints)
    back: list[Any] = [None] * len(flags)
    for i, ct in zip((*range(count), *fixed, *slices), cotangents, strict=True):
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
    """A counted loop, from its last iteration to its first.

    Raises:
        ReverseLoopError: it is no such loop, but one that runs again with its tangents.
    """
    parts, body = loop_parts(eqn), eqn.regions[-1]
    count = len(parts.init)
    if not eqn.attrs.get("counted"):
        pairs = zip(parts.init, flags, strict=False)
        raise unbounded(eqn, [a.type for a, is_tangent in pairs if not is_tangent])
    if flags[0]:
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
    varying, returned = inside(eqn, self.varying)

    def step(
        trace: Trace, done: Any, state: Sequence[Any], captured: Sequence[Any]
    ) -> Sequence[Any]:
        f = Emit(trace)
        at = f.subtract(f.subtract(captured[0], np.int64(1)), done)
        after, sums = state[: count - 1], state[count - 1 :]
        before = [None] * (count - 1) + list(sums)
        found = Transposer(trace).run(
            body, linear, [at, *captured[1:]], [None, *after], before, varying, returned
        )
        return dense(trace, [x.type for x in state], found)

    bound = eqn.attrs["max_steps"]
    found = counted_loop(self.trace, eqn, bound, steps, state, captures, step)
    back: list[Any] = [None] * len(flags)
    for i, ct in zip((*range(1, count), *fixed), found, strict=True):
        back[i] = ct
    return back


transpose.STRUCTURAL["scan"] = _transpose_scan
transpose.STRUCTURAL["while_loop"] = _transpose_while
