"""Rules for derivatives beyond the first of special functions, one a family of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.numpy.dispatching.attached import Applied, derivative_rule, with_derivative
from tracegraph.ops.special.densities import beta_density, gamma_density
from tracegraph.ops.special.repeated_integrals import hazard, hazard_excess, scaled_integral

_F = Applied()


@derivative_rule("scaled_integral")
def _of_scaled_integral(value: Any, x: Any, *, tangents: Any, n: int) -> Any:
    return -2.0 * (n + 1) * scaled_integral(_F, _F.erfcx(x), x, n + 1) * tangents[0]


@derivative_rule("hazard")
def _of_hazard(value: Any, x: Any, *, tangents: Any) -> Any:
    own = hazard(_F, x)
    return -own * hazard_excess(_F, own, x) * tangents[0]


@derivative_rule("hazard_excess")
def _of_hazard_excess(value: Any, x: Any, *, tangents: Any) -> Any:
    own = hazard(_F, x)
    return (1 - own * hazard_excess(_F, own, x)) * tangents[0]


# Inside of the interval: the density times the slope of its logarithm. Its two terms would cancel.


@derivative_rule("gamma_density")
def _of_gamma_density(value: Any, p: Any, c: Any, x: Any, *, tangents: Any) -> Any:
    own = with_derivative(value, "gamma_density", p, c, x)
    at_end = _times_lower(p, lambda p: gamma_density(_F, p, c, x)) - own
    is_end = x == 0
    inside = tnp.where(is_end, x.dtype.type(1), x)
    slope = tnp.where(is_end, at_end, own * (p / inside - 1))
    return _total(tangents, (lambda: _F.xlogy(own, x), lambda: -own, lambda: slope))


@derivative_rule("beta_density")
def _of_beta_density(value: Any, p: Any, q: Any, c: Any, x: Any, *, tangents: Any) -> Any:
    own = with_derivative(value, "beta_density", p, q, c, x)
    at_end = _times_lower(p, lambda p: beta_density(_F, p, q, c, x))
    at_end = at_end - _times_lower(q, lambda q: beta_density(_F, p, q, c, x))
    is_end = (x == 0) | (x == 1)
    inside = tnp.where(is_end, x.dtype.type(0.5), x)
    relative = (p * (1 - inside) - q * inside) / (inside * (1 - inside))
    slope = tnp.where(is_end, at_end, own * relative)
    coefficients = (
        lambda: _F.xlogy(own, x),
        lambda: _F.xlog1py(own, -x),
        lambda: -own,
        lambda: slope,
    )
    return _total(tangents, coefficients)


def _times_lower(p: Any, density: Callable[[Any], Any]) -> Any:
    """P times the density of the power below, and 0 for the power 0."""
    none = p == 0
    return tnp.where(none, p.dtype.type(0), p * density(tnp.where(none, p.dtype.type(1), p) - 1))


def _total(tangents: Any, coefficients: Any) -> Any:
    found: Any = None
    for t, coefficient in zip(tangents, coefficients, strict=True):
        if t is not None:
            term = coefficient() * t
            found = term if found is None else found + term
    return found


@derivative_rule("log_of_quotient")
def _of_log_of_quotient(value: Any, x: Any, y: Any, *, tangents: Any) -> Any:
    return _total(tangents, (lambda: 1 / x, lambda: -1 / y))


@derivative_rule("logsumexp")
def _of_logsumexp(value: Any, a: Any, *factors: Any, tangents: Any, axes: tuple[int, ...]) -> Any:
    """The sum of exp(a - value) (b a' + b')."""
    total = with_derivative(value, "logsumexp", a, *factors, axes=axes)
    share = tnp.exp(a - tnp.where(total == -np.inf, a.dtype.type(0), total))
    of_a = (lambda: share * factors[0]) if factors else (lambda: share)
    terms = _total(tangents, (of_a, lambda: share)[: len(tangents)])
    return tnp.sum(terms, axis=axes, keepdims=True)
