"""Derivatives of custom_jvp and custom_vjp, of whose calls the equations hold function and rules.

forwards, custom_jvp    the rule takes the place of the function
linearized              the rule is linearized by its tangents, at zero: it is linear in them
custom_vjp              `forward` takes the place of the function; the linear part is known by
its transpose alone, and forwards by transposing that again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph import errors
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Region
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import dense, region_of
from tracegraph.transforms.derivatives import linearize, transpose
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.linear import run_linear, transpose_region
from tracegraph.transforms.derivatives.linearize import (
    Linearizer,
    Results,
    Tangents,
    require_forward,
)
from tracegraph.transforms.derivatives.transpose import Cotangents, Transposer
from tracegraph.transforms.functions_with_rules import run_region


def _given(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> list[Any]:
    """The tangents of inexact arguments, zeros made.

    Raises:
        CustomRuleError: the function has no rules, or captures what it is differentiated by.
        Exception: a rule has raised it while it was traced.
    """
    count, name = eqn.attrs["args"], eqn.op.name
    function = eqn.attrs["function"]
    if eqn.attrs["rule"] == "none":
        setter = "defjvp(rule)" if name == "custom_jvp" else "defvjp(forward, backward)"
        raise errors.CustomRuleError(
            name, f"{function} has no rule: set it by {setter}, or call the function undecorated"
        )
    if any(t is not None for t in ts[count:]):
        raise errors.CustomRuleError(
            name,
            f"{function} captures a value by which it is differentiated; pass it as an argument",
        )
    if eqn.attrs["rule"] == "not traced":
        raise errors.CustomRuleError(
            name,
            f"{function} was called where no derivative of this order was taken, and its rule was "
            "not traced; differentiate a function that calls it, and not what such a call has "
            "made; if it is from a file, export it with order= as high as the derivative",
        )
    if "fault" in eqn.attrs:
        raise eqn.attrs["fault"]
    pairs = [(x.type, t) for x, t in zip(xs[:count], ts, strict=False) if is_inexact(x.type)]
    return dense(self.linear, [t.strong() for t, _ in pairs], [t for _, t in pairs])


def _spread(eqn: Eqn, found: Sequence[Any]) -> list[Any]:
    """The tangents of inexact results at their places."""
    each = iter(found)
    return [next(each) if is_inexact(v.type) else None for v in eqn.outputs]


def _is_applied_to_tangents(self: Linearizer, eqn: Eqn) -> bool:
    """Whether a rule calls its own function on tangents: that must be linear, and is transposed."""
    return eqn.attrs["rule"] == "not traced" and self.is_transposed


def _jvp_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    if _is_applied_to_tangents(self, eqn):
        return Linearizer(self.primal, self.linear).run(eqn.regions[0], xs, ts)
    in_tangents, split, count = _given(self, eqn, xs, ts), eqn.attrs["args"], len(eqn.outputs)
    rule = eqn.regions[1]
    if self.is_forward:
        results = run_region(self.primal, rule, [*xs[:split], *in_tangents, *xs[split:]])
        return results[:count], _spread(eqn, results[count:])
    zeros = dense(self.primal, [t.type for t in in_tangents], [None] * len(in_tangents))
    args = [*xs[:split], *zeros, *xs[split:]]
    tangents = [*[None] * split, *in_tangents, *[None] * (len(xs) - split)]
    wanted = [i >= count for i in range(len(rule.results))]
    try:
        outs, tangent = run_linear(self.primal, self.linear, zeros, rule, args, tangents, wanted)
    except errors.NonlinearError as error:
        raise errors.CustomRuleError(
            "custom_jvp",
            f"the rule of {eqn.attrs['function']} must be linear in the tangents, as reverse mode "
            f"transposes it: {error.op} is not, at {error.source}",
        ) from None
    return outs[:count], _spread(eqn, tangent[count:])


def _vjp_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    if _is_applied_to_tangents(self, eqn):
        return Linearizer(self.primal, self.linear).run(eqn.regions[0], xs, ts)
    in_tangents, split, count = _given(self, eqn, xs, ts), eqn.attrs["args"], len(eqn.outputs)
    outs = run_region(self.primal, eqn.regions[1], xs)
    residuals, captures = outs[count:], xs[split:]
    backward = eqn.regions[2]
    types = [v.type.strong() for v in eqn.outputs if is_inexact(v.type)]
    regions = _linear_regions(self.linear, backward, in_tangents, residuals, types, captures)
    atoms = [self.linear.read(x) for x in (*in_tangents, *residuals, *captures)]
    attrs = {
        "tangents": len(in_tangents),
        "residuals": len(residuals),
        "types": tuple(types),
        "forward": len(regions) == 2,
    }
    if "backward_fault" in eqn.attrs:
        attrs["fault"] = eqn.attrs["backward_fault"]
    if self.is_forward:
        require_forward(attrs)
        args = [*in_tangents, *residuals, *captures]
        return outs[:count], _spread(eqn, run_region(self.linear, regions[0], args))
    out_tangents = self.linear.record(get("custom_linear"), atoms, attrs, regions)
    return outs[:count], _spread(eqn, out_tangents)


def _linear_regions(
    trace: Trace,
    backward: Region,
    given: Sequence[Any],
    residuals: Sequence[Any],
    types: Sequence[ArrayType],
    captures: Sequence[Any],
) -> tuple[Region, ...]:
    """The backward region, and before it its transpose if it is linear in the cotangents."""
    own, kept = len(given), len(residuals)

    def record(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        flags = [kept <= i < kept + len(types) for i in range(len(backward.params))]
        others = params[own:]
        found = transpose_region(inner, backward, flags, others, params[:own])
        return dense(inner, types, found)

    param_types = [x.type for x in (*given, *residuals, *captures)]
    try:
        forward = region_of(trace, param_types, record)
    except (errors.NonlinearError, errors.ReverseLoopError, errors.DerivativeError):
        return (backward,)
    return forward, backward


def _linear_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    require_forward(eqn.attrs)
    return Linearizer(self.primal, self.linear).run(eqn.regions[0], xs, ts)


def _linear_transpose(
    self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents
) -> Cotangents:
    if "fault" in eqn.attrs:
        raise eqn.attrs["fault"]
    count, kept = eqn.attrs["tangents"], eqn.attrs["residuals"]
    rest = [self.value(a) for a in eqn.operands[count:]]
    given = dense(self.trace, [v.type for v in eqn.outputs], cts)
    found = run_region(self.trace, eqn.regions[-1], [*rest[:kept], *given, *rest[kept:]])
    return [*found, *[None] * len(rest)]


linearize.STRUCTURAL["custom_jvp"] = _jvp_rule
linearize.STRUCTURAL["custom_vjp"] = _vjp_rule
linearize.STRUCTURAL["custom_linear"] = _linear_rule
transpose.STRUCTURAL["custom_linear"] = _linear_transpose
