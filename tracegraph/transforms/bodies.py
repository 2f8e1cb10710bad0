"""Bodies of loops and branches: with tangents, and taken apart into function and linear part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracegraph.ir.program import Atom, Region, Value
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.ir.varying import Axes, VaryingAxes
from tracegraph.tracing.trace import Active, Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.body_trace import BodyTrace
from tracegraph.transforms.derivatives.linearize import Linearizer
from tracegraph.transforms.derivatives.residuals import Cut, cut, repeated, used_params
from tracegraph.transforms.tidy import tidied
from tracegraph.transforms.trace_emitter import Emit


def region_of(
    parent: Trace,
    types: Sequence[ArrayType],
    record: Callable[[Trace, list[Tracer]], Sequence[Any]],
    varying: Sequence[Axes] = (),
) -> Region:
    """The region with parameters of these types that `record(trace, params)` records.

    It captures nothing: what it needs is among its parameters. They vary over these axes of
    devices, if that is known.

    Raises:
        CustomRuleError: a rule of the user's uses a value around it.
    """
    trace = BodyTrace(parent)
    with Active(trace):
        sets: Sequence[Axes | None] = varying or [None] * len(types)
        params = [trace.param(t, None, v) for t, v in zip(types, sets, strict=True)]
        return trace.close(record(trace, params))


def dense(trace: Trace, types: Sequence[ArrayType], found: Sequence[Any]) -> list[Any]:
    """Tangents or cotangents of these types, with zeros made for None."""
    emit = Emit(trace)
    return [emit.zeros(type_) if t is None else t for type_, t in zip(types, found, strict=True)]


def with_tangents(
    parent: Trace, region: Region, active: Sequence[bool], live: Sequence[bool]
) -> Region:
    """The region with tangents: (params…, tangents of active ones…) -> (results…, tangents of
    live ones…).
    """
    count = len(region.params)
    types = [p.type for p in region.params]
    types += [p.type.strong() for p, flag in zip(region.params, active, strict=True) if flag]

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        given = iter(params[count:])
        tangents = [next(given) if flag else None for flag in active]
        outs, found = Linearizer(trace, trace).run(region, params[:count], tangents, live)
        wanted = [t for t, flag in zip(found, live, strict=True) if flag]
        live_types = [t for t, flag in zip(region.result_types, live, strict=True) if flag]
        return [*outs, *dense(trace, live_types, wanted)]

    return region_of(parent, types, record)


@record
class BodyParts:
    """A body taken apart.

    `primal` is the trace of the function itself, its results being `results`; `linear` the region
    (tangents of active parameters…, what it needs…) -> tangents of live results, in which `needs`
    are values of the primal trace. The `cut` says which of them to keep.
    """

    params: tuple[Value, ...]
    primal: Trace
    results: tuple[Any, ...]
    linear: Region
    needs: tuple[Value, ...]
    cut: Cut
    free: tuple[Value, ...]

    def primal_region(self, extra: Sequence[Any] = ()) -> Region:
        """The function with further results."""
        with Active(self.primal):
            return self.primal.close([*self.results, *extra])

    def record_linear(
        self, trace: Trace, tangents: Sequence[Any], known: dict[Value, Any]
    ) -> list[Tracer]:
        """Record the linear part in a trace, with the kept and free values `known`."""
        values = repeated(trace, self.cut.again, known)
        args = [*tangents, *(values[v] for v in self.needs)]
        return Linearizer(trace, trace).run(self.linear, args, [None] * len(args))[0]

    def varying(self, sets: Sequence[Axes]) -> Mapping[Atom, Axes]:
        """The axes of devices over which values of the function vary, from those of parameters."""
        return VaryingAxes().values(Region(self.params, tuple(self.primal.eqns), ()), sets)

    def free_needed(self) -> list[int]:
        """The positions of the free parameters that the linear part uses."""
        used = {a for eqn in self.cut.again for a in eqn.operands} | set(self.needs)
        return [i for i, p in enumerate(self.params) if p in self.free and p in used]


def take_apart(
    parent: Trace,
    region: Region,
    active: Sequence[bool],
    live: Sequence[bool],
    free: Sequence[bool],
) -> BodyParts:
    """A body taken apart; `free` are the parameters that are there anyway when it is linearized."""
    primal = BodyTrace(parent)
    linear = Trace(primal)
    params = [primal.param(p.type) for p in region.params]
    tangents = [
        linear.param(p.type.strong()) if flag else None
        for p, flag in zip(region.params, active, strict=True)
    ]
    outs, found = Linearizer(primal, linear).run(region, params, tangents, live)
    wanted = [t for t, flag in zip(found, live, strict=True) if flag]
    types = [t for t, flag in zip(region.result_types, live, strict=True) if flag]
    with Active(linear):
        closed = linear.close(dense(linear, types, wanted))
    closed = tidied(closed)
    used = used_params(closed)
    count = sum(active)
    pairs = [(v, p) for v, p in linear.captures.items() if p in used]
    needs = tuple(v for v, _ in pairs)
    closed = Region((*closed.params[:count], *(p for _, p in pairs)), closed.eqns, closed.results)
    values = tuple(primal.params)
    free_values = tuple(v for v, flag in zip(values, free, strict=True) if flag)
    chosen = cut(primal.eqns, needs, set(free_values))
    return BodyParts(values, primal, tuple(outs), closed, needs, chosen, free_values)
