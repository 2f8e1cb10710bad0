"""checkpoint: functions whose values are computed again for their derivative, and not kept.

Function and repetition stay closed until lowering, so that no pass merges them. The repetition has
no effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Region
from tracegraph.ir.record import replace
from tracegraph.tracing.trace import Active, Trace, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import dense, region_of, with_tangents
from tracegraph.transforms.cotangent_axes import inside
from tracegraph.transforms.derivatives import linearize, transpose
from tracegraph.transforms.derivatives.activity import Activity
from tracegraph.transforms.derivatives.linearize import Linearizer, Results, Tangents
from tracegraph.transforms.derivatives.residuals import used_params
from tracegraph.transforms.derivatives.transpose import Cotangents, Transposer
from tracegraph.transforms.functions_with_rules import (
    BoundArguments,
    Regions,
    run_region,
    without_effects,
)
from tracegraph.transforms.tidy import pruned
from tracegraph.transforms.transformed_calls import require_function

__all__ = ["checkpoint"]

P = ParamSpec("P")
R = TypeVar("R")


@errors.refuses(
    policy="a checkpoint keeps its arguments alone: put one around each part to be repeated",
    prevent_cse="a checkpoint is never merged with what it repeats",
    static_argnums="arguments that are not arrays are passed on as they are",
    concrete="arguments that are not arrays are passed on as they are",
)
def checkpoint(fun: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose values reverse mode computes again instead of keeping them.

    Only its arguments and the values that it captures are kept. Use it on the body of a long loop,
    or on a part of a function whose intermediate values take much memory.

    Raises:
        TransformError: `fun` is not a function.

    >>> import numpy as np
    >>> import tracegraph
    >>> tracegraph.grad(checkpoint(lambda x: np.sin(np.sin(x))))(0.0)
    np.float64(1.0)
    """
    require_function("checkpoint", fun)

    @entry_point
    @wraps(fun)
    def checkpointed(*args: P.args, **kwargs: P.kwargs) -> R:
        trace = current_trace()
        if trace is None:
            return fun(*args, **kwargs)
        arguments = BoundArguments(fun, args, kwargs)
        regions = Regions("checkpoint", trace, len(arguments.leaves))

        def call(leaves: Sequence[Any]) -> Any:
            return arguments.call(fun, leaves)

        traced = regions.add(call, arguments.types, fun, varying=arguments.varying(trace))
        found: R = tree.unflatten(traced.structure, regions.record(arguments.leaves, {}))
        return found

    return checkpointed


def _rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    (region,) = eqn.regions
    active = [t is not None for t in ts]
    live = Activity().results(region, active)
    if not any(live):
        return self.copied(eqn, xs), ()
    given = [t for t in ts if t is not None]
    count = len(eqn.outputs)
    if self.is_forward:
        both = with_tangents(self.primal, region, active, live)
        atoms = [self.primal.read(x) for x in (*xs, *given)]
        outs = self.primal.record(eqn.op, atoms, eqn.attrs, (both,))
        return outs[:count], _spread(outs[count:], live)
    own = self.copied(eqn, xs)
    region, kept = _used(self.linear, _repeated(self.linear, region, active, live))
    operands = [*xs, *given]
    atoms = [self.linear.read(operands[i]) for i in kept]
    found = self.linear.record(get("checkpoint"), atoms, eqn.attrs, (region,))
    return own, _spread(found, live)


def _repeated(
    parent: Trace, region: Region, active: Sequence[bool], live: Sequence[bool]
) -> Region:
    """The function again and the linear part: (params…, tangents…) -> tangents of live results."""
    count = len(region.params)
    types = [p.type for p in region.params]
    types += [p.type.strong() for p, flag in zip(region.params, active, strict=True) if flag]
    live_types = [t for t, flag in zip(region.result_types, live, strict=True) if flag]

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        linear = Trace(trace)
        tangents = [
            linear.param(p.type.strong()) if flag else None
            for p, flag in zip(region.params, active, strict=True)
        ]
        _, found = Linearizer(trace, linear).run(region, params[:count], tangents, live)
        wanted = [t for t, flag in zip(found, live, strict=True) if flag]
        with Active(linear):
            closed = linear.close(dense(linear, live_types, wanted))
        residuals = [Tracer(trace, atom) for atom in linear.captures]
        return run_region(trace, closed, [*params[count:], *residuals])

    return region_of(parent, types, record)


def _spread(found: Sequence[Any], live: Sequence[bool]) -> list[Any]:
    each = iter(found)
    return [next(each) if flag else None for flag in live]


def _used(trace: Trace, region: Region) -> tuple[Region, list[int]]:
    """The region without effects, dead code and unused parameters, and the positions of those left:
    what only the function itself computes is not repeated, nor kept for it.
    """
    places = [i for i, p in enumerate(region.params) if p.type != TOKEN]
    pure = pruned(without_effects(trace, region))
    used = used_params(pure)
    kept = [n for n, p in enumerate(pure.params) if p in used]
    narrowed = replace(pure, params=tuple(pure.params[n] for n in kept))
    return narrowed, [places[n] for n in kept]


def _transpose(self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents) -> Cotangents:
    (region,) = eqn.regions
    live = [ct is not None for ct in cts]
    varying, returned = inside(eqn, self.varying)
    pairs = list(zip(eqn.operands, flags, strict=True))
    residuals = [self.value(a) for a, flag in pairs if not flag]
    so_far = [self.pop_cotangent(a) for a, flag in pairs if flag]
    wanted = [a.type for a, flag in pairs if flag]
    live_cts = [ct for ct in cts if ct is not None]
    operands = [*residuals, *live_cts, *(acc for acc in so_far if acc is not None)]

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        rest_of_params = iter(params[len(residuals) :])
        own = [next(rest_of_params) if flag else None for flag in live]
        before = [None if acc is None else next(rest_of_params) for acc in so_far]
        rest = params[: len(residuals)]
        cotangents = Transposer(trace).run(region, flags, rest, own, before, varying, returned)
        return dense(trace, wanted, cotangents)

    backwards = region_of(self.trace, [x.type for x in operands], record)
    atoms = [self.trace.read(x) for x in operands]
    cotangents = iter(self.trace.record(eqn.op, atoms, eqn.attrs, (backwards,)))
    return [next(cotangents) if flag else None for flag in flags]


linearize.STRUCTURAL["checkpoint"] = _rule
transpose.STRUCTURAL["checkpoint"] = _transpose
