"""Derivatives of kernels and functions that users write: what they gave is traced here.

a reference    linearized: its tangents are those of the op, whose results stay its own
a jvp rule     linearized by its tangents, at zero: it is linear in them; forwards, it simply runs
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracegraph import errors
from tracegraph.control.regions import trace_tree
from tracegraph.ir.derivative import Jvp, NoDerivativeError, Reference, UserRule
from tracegraph.ir.program import Eqn, Region
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import dense
from tracegraph.transforms.derivatives import linearize
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.linear import run_linear
from tracegraph.transforms.derivatives.linearize import Linearizer, Results, Tangents, fixed
from tracegraph.transforms.functions_with_rules import fitted, in_dtypes, run_region
from tracegraph.transforms.tidy import tidied

Function = Callable[..., Any]


def _rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    record = eqn.op.derivative
    assert isinstance(record, UserRule)
    outs = self.copied(eqn, xs)
    if not any(is_inexact(v.type) for v in eqn.outputs):
        return outs, ()
    try:
        rule = record.choose(**eqn.attrs)
    except NoDerivativeError as error:
        raise errors.DerivativeError(eqn.op.name, str(error), eqn.source) from None
    operands = [fixed(self.primal, x) for x in xs]
    if isinstance(rule, Reference):
        return outs, _of_reference(self, rule, operands, ts)
    return outs, _of_jvp(self, rule, eqn, operands, ts)


def _of_reference(
    self: Linearizer, rule: Reference, xs: Sequence[Tracer], ts: Tangents
) -> Sequence[Any]:
    def call(leaves: Sequence[Any]) -> Any:
        return list(rule.function(*leaves))

    region, captures = _traced(self, rule, [x.type for x in xs], call)
    tangents = [*ts, *[None] * len(captures)]
    _, found = Linearizer(self.primal, self.linear).run(region, [*xs, *captures], tangents)
    return found


def _of_jvp(
    self: Linearizer, rule: Jvp, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents
) -> Sequence[Any]:
    takes = [rule.zeros or t is not None for t in ts]
    flags = [is_inexact(x.type) and flag for x, flag in zip(xs, takes, strict=True)]
    count = len(xs)
    types = [x.type for x, flag in zip(xs, flags, strict=True) if flag]
    in_tangents = [t for t, flag in zip(ts, flags, strict=True) if flag]
    live = [v.type.strong() for v in eqn.outputs if is_inexact(v.type)]

    def call(leaves: Sequence[Any]) -> Any:
        next_tangent = iter(leaves[count:])
        tangents = [next(next_tangent) if flag else None for flag in flags]
        pairs = zip(rule.function(leaves[:count], tangents), eqn.outputs, strict=True)
        out_tangents = [t for t, v in pairs if is_inexact(v.type)]
        return in_dtypes(live, fitted(rule.label, rule.written, live, out_tangents))

    region, captures = _traced(self, rule, [*(x.type for x in xs), *types], call)
    if self.is_forward:
        args = [*xs, *dense(self.primal, types, in_tangents), *captures]
        out_tangents: Sequence[Any] = run_region(self.primal, region, args)
    else:
        zeros = dense(self.primal, types, [None] * len(types))
        args = [*xs, *zeros, *captures]
        directions = [*[None] * count, *in_tangents, *[None] * len(captures)]
        with _once(rule):
            try:
                _, out_tangents = run_linear(
                    self.primal, self.linear, zeros, region, args, directions
                )
            except errors.NonlinearError as error:
                raise errors.CustomRuleError(
                    rule.label,
                    f"{errors.function_text(rule.written)} must be linear in the tangents, as "
                    f"reverse mode transposes it: {error.op} is not, at {error.source}",
                ) from None
    next_tangent = iter(out_tangents)
    return [next(next_tangent) if is_inexact(v.type) else None for v in eqn.outputs]


def _traced(
    self: Linearizer, rule: Reference | Jvp, types: Sequence[ArrayType], call: Function
) -> tuple[Region, list[Tracer]]:
    """The region of what the user wrote, and the values around it that it uses.

    Raises:
        CustomRuleError: it has effects, or uses values that are differentiated.
    """

    def differentiated(leaves: Sequence[Any]) -> Any:
        trace = current_trace()
        assert trace is not None
        trace.orders += 1  # what is traced here is linearized
        return call(leaves)

    try:
        traced = trace_tree(
            differentiated, [t.strong() for t in types], self.primal, rule.label, rule.written
        )
    except errors.CustomRuleError:  # it names the rule
        raise
    except errors.EscapedTracerError:
        raise errors.CustomRuleError(
            rule.label,
            f"{errors.function_text(rule.written)} uses a value of the function that is "
            "differentiated, which is none of its arguments: pass it as an argument",
        ) from None
    except Exception as error:
        what = "its reference" if isinstance(rule, Reference) else "its derivative="
        error.add_note(f"while the derivative of {rule.label} was taken, by tracing {what}")
        raise
    if traced.tokens is not None:
        raise errors.CustomRuleError(
            rule.label, f"{errors.function_text(rule.written)} must have no effects to be a rule"
        )
    return tidied(traced.region), [Tracer(self.primal, atom) for atom in traced.captures]


class _Running(threading.local):
    def __init__(self) -> None:
        self.rules: list[Function] = []


_running = _Running()


@contextmanager
def _once(rule: Jvp) -> Iterator[None]:
    """Refuses a rule that is linearized while it is linearized: that would have no end.

    Raises:
        CustomRuleError: the rule calls what it is a rule of on tangents.
    """
    if rule.written in _running.rules:
        raise errors.CustomRuleError(
            rule.label,
            f"{errors.function_text(rule.written)} calls it on tangents, which reverse mode has to "
            "transpose: compute them by other functions, or give both modes a rule, by custom_vjp",
        )
    _running.rules.append(rule.written)
    try:
        yield
    finally:
        _running.rules.pop()


linearize.BY_RECORD[UserRule] = _rule
