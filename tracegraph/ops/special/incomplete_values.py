"""The incomplete functions where SciPy's are wrong.

The gamma functions of SciPy are wrong by half of their values in tails of large parameters: from
1e5 on, beyond 4.5 standard deviations. There it is Temme's expansion: "The asymptotic expansion of
the incomplete gamma functions", 1979. The beta function of SciPy is NaN where a large parameter
makes it steep: DLMF 8.18.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy, horner, mended

_gammainc, _gammaincc, _betainc = map(by_scipy, ("gammainc", "gammaincc", "betainc"))
_erfc, _exp1 = by_scipy("erfc"), by_scipy("exp1")

_TEMME = (
    (
        -0.33333333333333331,
        0.083333333333333329,
        -0.014814814814814815,
        0.0011574074074074073,
        0.00035273368606701942,
        -0.0001787551440329218,
        3.9192631785224377e-05,
        -2.185448510679992e-06,
        -1.85406221071516e-06,
        8.2967113409530865e-07,
        -1.7665952736826078e-07,
        6.7078535434014984e-09,
        1.0261809784240309e-08,
        -4.3820360184533529e-09,
        9.1476995822367902e-10,
    ),
    (
        -0.0018518518518518519,
        -0.003472222222222222,
        0.0026455026455026454,
        -0.00099022633744855963,
        0.00020576131687242798,
        -4.018775720164609e-07,
        -1.8098550334489977e-05,
        7.6491609160811098e-06,
        -1.6120900894563446e-06,
        4.647127802807434e-09,
        1.3786334469157209e-07,
        -5.7525456035177047e-08,
        1.1951628599778148e-08,
        -1.7543241719747647e-11,
        -1.0091543710600413e-09,
    ),
    (
        0.0041335978835978834,
        -0.0026813271604938273,
        0.0007716049382716049,
        2.0093878600823047e-06,
        -0.0001073665322636516,
        5.2923448829120125e-05,
        -1.2760635188618728e-05,
        3.4235787340961378e-08,
        1.3721957309062934e-06,
        -6.2989921383800548e-07,
        1.4280614206064242e-07,
        -2.0477098421990866e-10,
        -1.409252991086752e-08,
        6.2289740849220218e-09,
        -1.3670488396617114e-09,
    ),
    (
        0.00064943415637860077,
        0.00022947209362139917,
        -0.0004691894943952557,
        0.00026772063206283885,
        -7.5618016718839766e-05,
        -2.3965051138672968e-07,
        1.1082654115347302e-05,
        -5.6749528269915965e-06,
        1.4230900732435883e-06,
        -2.7861080291528143e-11,
        -1.6958404091930278e-07,
        8.0994649053880827e-08,
        -1.9111168485973655e-08,
        2.3928620439808118e-12,
        2.0620131815488797e-09,
    ),
    (
        -0.00086188829091671173,
        0.00078403922172006662,
        -0.00029907248030319018,
        -1.4638452578843418e-06,
        6.6414982154651219e-05,
        -3.9683650471794347e-05,
        1.1375726970678419e-05,
        2.5074972262375329e-10,
        -1.6954149536558305e-06,
        8.9075075322053094e-07,
        -2.2929348340008049e-07,
        2.9567941375440492e-11,
        2.8865829742708783e-08,
        -1.4189739437803219e-08,
        3.4463580499464896e-09,
    ),
)
"""Coefficients of the functions C0 … C4 in powers of eta, for |eta| up to 0.35."""


def log1p_less(u: Array) -> Array:
    """log1p(u) - u; up to 1/2 by a series in u / (2 + u)."""
    near = np.clip(u, -0.5, 0.5)
    r = near / (2 + near)
    odd = horner([1 / (2 * k + 3) for k in range(18)], r * r)
    return np.where(np.abs(u) <= 0.5, 2 * r * r * r * odd - near * r, np.log1p(u) - u)


def _uniform(a: Array, x: Array, sign: float) -> Array:
    """The upper (1) or lower (-1) function, for a from 200 and x within 0.3 a of it."""
    mu = np.clip((x - a) / a, -0.3, 0.3)
    half = -log1p_less(mu)  # eta² / 2
    eta = np.copysign(np.sqrt(2 * half), mu)
    series = horner([horner(row, eta) for row in _TEMME], 1 / a)
    rest = np.exp(-a * half) / (sqrt(2 * pi) * np.sqrt(a)) * series
    return np.asarray(0.5 * _erfc(sign * eta * np.sqrt(a / 2)) + sign * rest)


def _incomplete_gamma(a: Array, x: Array, upper: bool) -> Array:
    a, x = map(np.asarray, np.broadcast_arrays(a, x))
    values = (_gammaincc if upper else _gammainc)(a, x)
    ordinary = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    values = np.where(ordinary & np.isnan(values), (a > x) == upper, values)
    if upper:  # where SciPy has 0 for numbers below the least normal one
        values = mended(
            values, ordinary & (a < 1e-100) & (x > 1e-3), lambda a, x: a * _exp1(x), a, x
        )
    uniform = (a >= 200) & (np.abs(x - a) < 0.3 * a)
    return mended(values, uniform, lambda a, x: _uniform(a, x, 2.0 * upper - 1), a, x)


def gammainc(a: Array, x: Array) -> Array:
    """The integral of t**(a - 1) exp(-t) from 0 to x, over gamma(a)."""
    return _incomplete_gamma(a, x, upper=False)


def gammaincc(a: Array, x: Array) -> Array:
    """The integral of t**(a - 1) exp(-t) from x on, over gamma(a)."""
    return _incomplete_gamma(a, x, upper=True)


def betainc(a: Array, b: Array, x: Array) -> Array:
    """The integral of t**(a - 1) (1 - t)**(b - 1) from 0 to x, over beta(a, b)."""
    a, b, x = map(np.asarray, np.broadcast_arrays(a, b, x))
    found = _betainc(a, b, x)
    steep = np.isnan(found) & (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
    steep &= (x > 0) & (x < 1)
    return mended(found, steep, _steep, a, b, x)


def _steep(a: Array, b: Array, x: Array) -> Array:
    """If a parameter is far below the other one, by the gamma function, and else by erfc."""
    low = gammainc(a, -b * np.log1p(-x))
    high = gammaincc(b, -a * np.log(x))
    total = a + b
    p, q = a / total, b / total
    u, v = (x - p) / p, (p - x) / q
    half = np.maximum(-(p * log1p_less(u) + q * log1p_less(v)), 0.0)
    eta = np.copysign(np.sqrt(2 * half), x - p)
    middle = 0.5 * _erfc(-eta * np.sqrt(total / 2))
    return np.where(a < 1e-6 * b, low, np.where(b < 1e-6 * a, high, middle))
