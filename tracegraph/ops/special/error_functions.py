"""The error function and its relatives, and the standard normal distribution."""

from __future__ import annotations

from math import pi, sqrt

from tracegraph.ops.special import error_values as values
from tracegraph.ops.special.by_scipy import by_scipy
from tracegraph.ops.special.records import special
from tracegraph.ops.special.repeated_integrals import hazard, scaled_integral

_SLOPE = 2 / sqrt(pi)
_DENSITY = 1 / sqrt(2 * pi)

erf = special(
    "erf",
    "The error function.",
    "erf({0})",
    by_scipy("erf"),
    lambda f, o, x: _SLOPE * f.exp(-x * x),
)
erfc = special(
    "erfc",
    "1 - erf(x), precise where erf(x) is nearly 1.",
    "erfc({0})",
    by_scipy("erfc"),
    lambda f, o, x: -_SLOPE * f.exp(-x * x),
)
erfcx = special(
    "erfcx",
    "exp(x * x) * erfc(x).",
    "erfcx({0})",
    by_scipy("erfcx"),
    lambda f, o, x: -2 * scaled_integral(f, o, x, 1),
)
erfinv = special(
    "erfinv",
    "The inverse of the error function; outside of -1 to 1, NaN.",
    "erfinv({0})",
    values.erfinv,
    lambda f, o, x: f.exp(o * o) / _SLOPE,
)
erfcinv = special(
    "erfcinv",
    "The inverse of erfc; outside of 0 to 2, NaN.",
    "erfcinv({0})",
    values.erfcinv,
    lambda f, o, x: f.exp(o * o) / -_SLOPE,
)
ndtr = special(
    "ndtr",
    "The probability that a standard normal number is below x.",
    "normcdf({0})",
    values.ndtr,
    lambda f, o, x: _DENSITY * f.exp(-0.5 * x * x),
)
ndtri = special(
    "ndtri",
    "The inverse of ndtr; outside of 0 to 1, NaN.",
    "normcdfinv({0})",
    values.ndtri,
    lambda f, o, x: f.exp(0.5 * o * o) / _DENSITY,
)
log_ndtr = special(
    "log_ndtr",
    "The logarithm of ndtr, precise in both tails.",
    "tg_log_ndtr({0})",
    values.log_ndtr,
    lambda f, o, x: hazard(f, x),
)
