"""The beta function, zeta and polygamma for all arguments, and gammaln near 0, 1 and 2.

SciPy's beta functions subtract large logarithms, its zeta takes a step for each unit below 0.
"""

from __future__ import annotations

from math import factorial, log, pi

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy, horner, mended

_gammaln = by_scipy("gammaln")

_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330),
)
"""B2, B4, …"""

_MOST = 2.0**31
"""SciPy takes no greater number for an integer; quotients of poles are finite at integers."""

_STIRLING = [b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(_BERNOULLI)]


def sine_of_pi(x: Array) -> Array:
    """sin(pi x), exactly 0 at integers."""
    rest = x - 2 * np.round(x / 2)  # exact, in -1 … 1
    folded = np.where(np.abs(rest) > 0.5, np.copysign(1, rest) - rest, rest)
    return np.asarray(np.sin(pi * folded))


def _log_of_sine(x: Array) -> Array:
    """log(|sin(pi x)|), and 0 for infinite x; of subnormals, the product with pi is not rounded."""
    small = np.abs(x) < 1e-9
    sine = np.abs(sine_of_pi(np.where(np.isfinite(x) & ~small, x, 0.5)))
    return np.where(small, log(pi) + np.log(np.abs(x)), np.log(sine))


def stirling(x: Array) -> Array:
    """What Stirling's formula lacks: gammaln(x) - ((x - 0.5) log x - x + log(2 pi) / 2); from 8."""
    inverse = 1 / x
    return np.asarray(horner(_STIRLING, inverse * inverse) * inverse)


_EULER = 0.57721566490153286061
_ZETA = (
    *(0.64493406684822644, 0.20205690315959429, 0.082323233711138192, 0.036927755143369926),
    *(0.01734306198444914, 0.0083492773819228268, 0.0040773561979443394, 0.0020083928260822144),
    *(9.9457512781808534e-4, 4.9418860411946456e-4, 2.460865533080483e-4, 1.2271334757848915e-4),
    *(6.1248135058704829e-5, 3.0588236307020494e-5, 1.5282259408651872e-5, 7.6371976378997623e-6),
)
"""zeta(k) - 1 for k = 2, 3, …"""

_OF_LOG = [0.0, 1 - _EULER, *((-1) ** k * z / k for k, z in enumerate(_ZETA, 2))]
"""The coefficients of gammaln(2 + e) in powers of e."""


def gammaln(x: Array) -> Array:
    """The logarithm of |gamma(x)|; infinite at 0, -1, -2, …"""
    near = np.abs(np.abs(x - 1.5) - 0.5) < 0.2
    return mended(_log_of_gamma(x), near, _gammaln_near_1_and_2, x)


def _log_of_gamma(x: Array) -> Array:
    """gammaln(x), with an absolute error of some ulp of 1, and precise where it is large."""
    return mended(_gammaln(x), np.abs(x) < 1e-200, _gammaln_near_0, x)


def _gammaln_near_0(x: Array) -> Array:
    """SciPy is infinite for the least numbers."""
    return np.asarray(-np.log(np.abs(x)))


def _gammaln_near_1_and_2(x: Array) -> Array:
    """SciPy is precise to some ulp of 1."""
    e = np.where(x < 1.5, x - 1, x - 2)
    return np.asarray(horner(_OF_LOG, e) - np.where(x < 1.5, np.log1p(e), 0.0))


def _betaln_from_0(a: Array, b: Array) -> Array:
    """For positive numbers: what three large logarithms share is cancelled first, as in SLATEC."""
    a, b = np.minimum(a, b), np.maximum(a, b)
    log_of_gamma = _log_of_gamma if np.any(a < 1e-200) else _gammaln
    log_of_a = log_of_gamma(a)
    plain = log_of_a + log_of_gamma(b) - log_of_gamma(a + b)
    ratio = a / (a + b)
    a_10, b_10 = np.maximum(a, 10.0), np.maximum(b, 10.0)
    rest = stirling(b_10) - stirling(np.maximum(a + b, 10.0))
    one_large = log_of_a + rest + a - a * np.log(a + b) + (b - 0.5) * np.log1p(-ratio)
    both_large = stirling(a_10) + rest - 0.5 * np.log(b) + log(2 * pi) / 2
    both_large = both_large + (a - 0.5) * np.log(ratio) + b * np.log1p(-ratio)
    found = np.where(a >= 10, both_large, np.where(b >= 10, one_large, plain))
    return np.where(np.isinf(b), np.where(np.isinf(a), np.nan, -np.inf), found)


def betaln(a: Array, b: Array) -> Array:
    """The logarithm of |gamma(a) gamma(b) / gamma(a + b)|.

    Negative numbers are reflected, each by sin(pi x). At a pole it is infinite, unless the quotient
    of two poles is finite: the other number is a positive integer below 1 - a. NaN counts as SciPy
    has it, which asks for poles first.
    """
    a, b = map(np.asarray, np.broadcast_arrays(a, b))
    positive = (a > 0) & (b > 0)
    if positive.all():
        return _betaln_from_0(a, b)
    found = np.zeros(a.shape)
    found = mended(found, positive, _betaln_from_0, a, b)
    return mended(found, ~positive, _betaln_below, a, b)


def _betaln_below(a: Array, b: Array) -> Array:
    """Where one is not positive."""
    pole_a, pole_b = ((x <= 0) & (x == np.floor(x)) for x in (a, b))
    low, high = np.where(pole_b, b, np.minimum(a, b)), np.where(pole_b, a, np.maximum(a, b))
    low, high = np.where(pole_a, a, low), np.where(pole_a, b, high)
    pole = pole_a | pole_b
    total = low + high

    one = np.ones_like(total)
    mixed, both = ~pole & (low < 0) & (high > 0), ~pole & (high < 0)
    sines = [_log_of_sine(x) for x in (low, high)]
    of_total = _log_of_sine(np.fmod(low, 2) + np.fmod(high, 2))
    positive, negative = mixed & (total > 0), mixed & ~(total > 0)
    rest = _betaln_from_0(np.where(positive, 1 - low, one), np.where(positive, total, one))
    above = log(pi) - sines[0] - np.log(np.abs(high)) - rest
    rest = _betaln_from_0(np.where(negative, high, one), np.where(negative, 1 - total, one))
    below = of_total - sines[0] + rest
    rest = _betaln_from_0(np.where(both, 1 - low, one), np.where(both, 1 - high, one))
    reflected = log(pi) + of_total - sines[0] - sines[1] - np.log(1 - total) - rest
    values = np.where(positive, above, np.where(negative, below, reflected))
    values = np.where(mixed & np.isinf(high), np.inf, values)

    finite = pole & (high == np.floor(high)) & (high > 0) & (1 - total > 0)
    finite &= (low > -_MOST) & (high < _MOST)
    of_poles = _betaln_from_0(np.where(finite, 1 - total, one), np.where(finite, high, one))
    values = np.where(pole, np.where(finite, of_poles, np.inf), values)
    return np.where(~pole & (np.isnan(a) | np.isnan(b)), np.nan, values)


def _hurwitz(s: Array, q: Array) -> Array:
    """For q from 0: Euler and Maclaurin's formula from 10, which takes half of SciPy's time."""
    total = np.zeros(np.broadcast_shapes(s.shape, q.shape))
    for k in range(10):
        total = total + (q + k) ** -s
    far = q + 10
    area = far ** (1.0 - s)
    power = area / far
    total = total + area / (s - 1) + 0.5 * power
    factor, inverse = power * s / far, 1 / (far * far)
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + factor * (bernoulli / factorial(2 * k))
        factor = factor * ((s + 2 * k - 1) * (s + 2 * k)) * inverse
    return np.asarray(total)


def _zeta_from_0(x: Array, q: Array) -> Array:
    """For q from 0. From 1e5 on, only what is below 1 counts, or 1."""
    found = _hurwitz(np.minimum(x, 1e5), np.where(q <= 0, 1.0, q))
    return np.where(x > 1e5, q**-x, found)


def _zeta_below_0(x: Array, q: Array) -> Array:
    """For integers x alone: the numbers on both sides of 0 are two such sums."""
    above, left = q - np.floor(q), np.floor(q) + 1 - q
    first, second, third = (_zeta_from_0(x, y) for y in (above, left, 1 - q))
    apart = np.where(above < left, np.inf, -np.inf)  # which is nearer to 0, if both overflow
    apart = np.where(np.isinf(first) & np.isinf(second), apart, first - second)
    apart = np.where(above == left, 0.0, apart)
    found = np.where(np.remainder(x, 2) == 1, apart + third, first + second - third)
    return np.where(x == np.floor(x), found, np.nan)


def zeta(x: Array, q: Array) -> Array:
    """The sum of (q + k)**-x over k from 0; NaN for x below 1, infinite at poles."""
    below, pole = q < 0, (q <= 0) & (q == np.floor(q))
    values = _zeta_from_0(x, np.where(below, 1.0, q))
    values = mended(values, np.broadcast_to(below & ~pole, values.shape), _zeta_below_0, x, q)
    values = np.where(pole, np.inf, values)
    return np.where(x == 1, np.inf, np.where(x < 1, np.nan, values))


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, n from 1; infinite at 0, -1, -2, …"""
    scale = (-1) ** (n + 1) * float(factorial(n))
    return np.asarray(scale * zeta(np.asarray(n + 1.0), x))
