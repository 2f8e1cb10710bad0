"""Derivatives that are known better than the equations of a value tell them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ops.derivatives import derivative_rule
from tracegraph.tracing.tracer import Tracer

__all__ = ["Applied", "derivative_rule", "with_derivative"]

_STOP, _WITH_DERIVATIVE = get("stop_gradient"), get("with_derivative")


class Applied:
    """The emitter of rules for values that are traced, or known: each op as a method."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(apply, get(name))


def with_derivative(
    value: Any, of: str, *operands: Any, constants: Sequence[Any] = (), **attrs: Any
) -> Any:
    """The value, whose derivative is given by the rule of a name for these operands.

    Constants are further operands, which the rule takes as they are.
    The rule is one that `ops.derivatives.derivative_rule` has entered. It takes the place of what
    the equations of the value say: those may divide by zero where the function has a derivative.
    """
    if not any(isinstance(x, Tracer) for x in operands):
        return value
    stopped = [apply(_STOP, x) if isinstance(x, Tracer) else x for x in (value, *constants)]
    return apply(_WITH_DERIVATIVE, stopped[0], *operands, *stopped[1:], of=of, **attrs)
