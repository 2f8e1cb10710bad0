"""Logistic functions, products with logarithms, and entropies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import exp, log, log1p

from tracegraph.ir.derivative import Emitter
from tracegraph.ops.cotangents import least_positive, number, with_rule
from tracegraph.ops.special.records import special

Array = np.ndarray[Any, Any]

COST = 12


def _quotient(f: Emitter, x: Any, y: Any) -> Any:
    """X / y, and 0 where both are 0."""
    both = f.logical_and(f.equal(x, number(x, 0)), f.equal(y, number(y, 0)))
    return x / f.where(both, least_positive(x.dtype), y)


def _log_of_quotient_of(f: Emitter, x: Any, y: Any) -> Any:
    """log(x / y), whose quotient may leave the range of the dtype."""
    value = 2 * f.log(f.sqrt(x) / f.sqrt(y))
    return with_rule(f, value, "log_of_quotient", x, y)


def _expit(x: Array) -> Array:
    return 1 / (1 + exp(-x))


def _logit(p: Array) -> Array:
    """Near 1/2, where the quotient is nearly 1, by the difference from it."""
    middle = (p > 0.3) & (p < 0.65)
    difference = 2 * (p - 0.5)
    return np.where(middle, log1p(difference) - log1p(-difference), log(p / (1 - p)))


def _log_expit(x: Array) -> Array:
    return np.minimum(x, 0) - log1p(exp(-np.abs(x)))


def _xlogy(x: Array, y: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0.0, x * log(y))


def _xlog1py(x: Array, y: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0.0, x * log1p(y))


def _entr(x: Array) -> Array:
    found = np.where(x == 0, 0.0, -x * log(x))
    return np.where(x < 0, -np.inf, found)


def _log_of_quotient(x: Array, y: Array) -> Array:
    """By the difference of the logarithms where the quotient leaves the range of its dtype."""
    quotient = x / y
    inside = (quotient > np.finfo(np.float64).tiny) & np.isfinite(quotient)
    return np.where(inside, log(quotient), log(x) - log(y))


def _rel_entr(x: Array, y: Array) -> Array:
    found = np.where((x == 0) & (y >= 0), 0.0, x * _log_of_quotient(x, y))
    outside = (x < 0) | (y < 0) | ((x > 0) & (y == 0))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(outside, np.inf, found))


def _kl_div(x: Array, y: Array) -> Array:
    found = np.where(x == 0, y, x * _log_of_quotient(x, y) - x + y)
    outside = (x < 0) | (y < 0) | ((x > 0) & (y == 0))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(outside, np.inf, found))


expit = special(
    "expit",
    "The logistic function 1 / (1 + exp(-x)).",
    "tg_expit({0})",
    _expit,
    lambda f, o, x: o * f.expit(-x),
    cost=COST,
)
logit = special(
    "logit",
    "log(p / (1 - p)), the inverse of expit; outside of 0 to 1, NaN.",
    "tg_logit({0})",
    _logit,
    lambda f, o, p: 1 / (p * (1 - p)),
    cost=COST,
)
log_expit = special(
    "log_expit",
    "The logarithm of expit, precise in both tails.",
    "tg_log_expit({0})",
    _log_expit,
    lambda f, o, x: f.expit(-x),
    cost=COST,
)
xlogy = special(
    "xlogy",
    "x * log(y), and 0 where x is 0.",
    "tg_xlogy({0}, {1})",
    _xlogy,
    lambda f, o, x, y: f.log(y),
    lambda f, o, x, y: _quotient(f, x, y),
    cost=COST,
)
xlog1py = special(
    "xlog1py",
    "x * log1p(y), and 0 where x is 0.",
    "tg_xlog1py({0}, {1})",
    _xlog1py,
    lambda f, o, x, y: f.log1p(y),
    lambda f, o, x, y: _quotient(f, x, 1 + y),
    cost=COST,
)
entr = special(
    "entr",
    "-x * log(x), 0 at 0, and below -inf.",
    "tg_entr({0})",
    _entr,
    lambda f, o, x: -f.log(x) - 1,
    cost=COST,
)
rel_entr = special(
    "rel_entr",
    "x * log(x / y), and 0 where x is 0 and y is not negative; below 0 of either, inf.",
    "tg_rel_entr({0}, {1})",
    _rel_entr,
    lambda f, o, x, y: _log_of_quotient_of(f, x, y) + 1,
    lambda f, o, x, y: -_quotient(f, x, y),
    cost=COST,
)
kl_div = special(
    "kl_div",
    "x * log(x / y) - x + y, and y where x is 0; below 0 of either, inf.",
    "tg_kl_div({0}, {1})",
    _kl_div,
    lambda f, o, x, y: _log_of_quotient_of(f, x, y),
    lambda f, o, x, y: 1 - _quotient(f, x, y),
    cost=COST,
)
