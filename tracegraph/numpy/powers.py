"""Derivatives of powers beyond the first, which have limits where the base is 0."""

from __future__ import annotations

from typing import Any

from tracegraph.numpy.dispatching.attached import Applied, derivative_rule, with_derivative
from tracegraph.ops.arithmetic import power_by_base, power_of_log


@derivative_rule("power_of_log")
def _of_power_of_log(value: Any, x: Any, y: Any, *, tangents: Any, k: int) -> Any:
    """y·x^(y-1)·log(x)^k + k·x^(y-1)·log(x)^(k-1) times x', and x^y·log(x)^(k+1) times y'."""
    of_x, of_y = tangents
    terms = []
    if of_x is not None and k == 0:
        terms.append(power_by_base(Applied(), value, x, y) * of_x)
    elif of_x is not None:
        terms.append((y * _factor(x, y - 1, k) + k * _factor(x, y - 1, k - 1)) * of_x)
    if of_y is not None:
        terms.append(_factor(x, y, k + 1) * of_y)
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


@derivative_rule("slope_of_power")
def _of_slope(value: Any, base: Any, y: Any, x: Any, *, tangents: Any) -> Any:
    """Of y·x^(y-1); the base is x, but 1 where x and y are 0, and all powers of x are 1."""
    of_base, of_y, _ = tangents
    terms = []
    if of_base is not None:
        terms.append(y * power_by_base(Applied(), None, base, y - 1) * of_base)
    if of_y is not None:
        terms.append((_factor(x, y - 1, 0) + y * _factor(x, y - 1, 1)) * of_y)
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def _factor(x: Any, y: Any, k: int) -> Any:
    """x^y·log(x)^k."""
    return with_derivative(power_of_log(Applied(), x, y, k), "power_of_log", x, y, k=k)
