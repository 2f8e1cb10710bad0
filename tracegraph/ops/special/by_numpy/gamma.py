"""The gamma function, its logarithm and the derivatives of that.

Within 8 ulp; near a zero, within 8 ulp of 1, except gammaln at 1 and 2 and digamma at its positive
zero. Stirling's series is used from 8 on, and recurrences lead there. Tables were computed with 50
digits.
"""

from __future__ import annotations

from math import factorial, log, pi, sqrt
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]

EULER = 0.57721566490153286061

_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330),
)
"""B2, B4, …"""

_ZETA = (
    *(0.64493406684822644, 0.20205690315959429, 0.082323233711138192, 0.036927755143369926),
    *(0.01734306198444914, 0.0083492773819228268, 0.0040773561979443394, 0.0020083928260822144),
    *(9.9457512781808534e-4, 4.9418860411946456e-4, 2.460865533080483e-4, 1.2271334757848915e-4),
    *(6.1248135058704829e-5, 3.0588236307020494e-5, 1.5282259408651872e-5, 7.6371976378997623e-6),
    *(3.8172932649998399e-6, 1.9082127165539389e-6, 9.5396203387279611e-7, 4.7693298678780646e-7),
    *(2.3845050272773299e-7, 1.1921992596531107e-7, 5.960818905125948e-8, 2.980350351465228e-8),
    *(1.4901554828365041e-8, 7.4507117898354295e-9, 3.7253340247884571e-9, 1.862659723513049e-9),
)
"""zeta(k) - 1 for k = 2, 3, …"""

_ROOT = 1.4616321449683622
_REST_OF_ROOT = 9.5499954299656977e-17
_AT_ROOT = (
    *(0.96767224544762117, -0.44276316898359211, 0.25849976095565101, -0.16394270544240653),
    *(0.10782405069126237, -0.072199561256454711, 0.048804288164143107, -0.033161126474847359),
    *(0.022597648232218105, -0.015424765904948959, 0.010538791616612175, -0.0072045343863568682),
    *(0.0049267813957298534, -0.0033698016554393281, 0.0023051263267349278),
    *(-0.0015769367714301973, 0.0010788252019162966, -7.3807093899600513e-4),
    *(5.0495326583460204e-4, -3.454680251063077e-4, 2.3635601564027053e-4),
)
"""Of digamma in powers of the distance from its zero, without the constant, which is 0."""


def horner(coefficients: Any, x: Any) -> Any:
    """A polynomial, the constant coefficient first."""
    found: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        found = found * x + coefficient
    return found


def sine_of_pi(x: Array) -> Array:
    """sin(pi x), exactly 0 at integers."""
    rest = x - 2 * np.round(x / 2)  # exact, in -1 … 1
    folded = np.where(np.abs(rest) > 0.5, np.copysign(1, rest) - rest, rest)
    return np.asarray(np.sin(pi * folded))


_STIRLING = [b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(_BERNOULLI)]


def stirling(x: Array) -> Array:
    """What Stirling's formula lacks: gammaln(x) - ((x - 0.5) log x - x + log(2 pi) / 2); from 8."""
    inverse = 1 / x
    return np.asarray(horner(_STIRLING, inverse * inverse) * inverse)


_OF_DIGAMMA = [b / (2 * k + 2) for k, b in enumerate(_BERNOULLI)]

_LOG = [0.0, 1 - EULER, *((-1) ** k * z / k for k, z in enumerate(_ZETA, 2))]
"""Of gammaln(2 + e) in powers of e."""


def log_of_next(x: Array) -> Array:
    """gammaln(1 + x) for x from 0 to 1.5, precise near 0."""
    near = x < 0.5
    return np.asarray(horner(_LOG, np.where(near, x, x - 1)) - np.where(near, np.log1p(x), 0.0))


def _gammaln_from_half(x: Array) -> Array:
    """For x from 0.5; recurrences lead down to 1.5 … 2.5."""
    product, y = np.ones_like(x), np.minimum(x, 8.0)
    for _ in range(6):
        above = y > 2.5
        y = np.where(above, y - 1, y)
        product = np.where(above, product * y, product)
    near_1 = y < 1.5
    e = np.where(near_1, y - 1, y - 2)
    series = horner(_LOG, e)
    small = np.where(near_1, series - np.log1p(e), series + np.log(product))
    far = np.maximum(x, 8.0)
    logarithm = np.log(far)
    large = (far - 0.5) * logarithm - far + (log(2 * pi) / 2 + stirling(far))
    large = np.where(far > 1e15, far * (logarithm - 1), large)
    return np.where(x < 8, small, large)


def gammaln(x: Array) -> Array:
    """The logarithm of |gamma(x)|; infinite at 0, -1, -2, …"""
    near_0 = (np.abs(x) < 1e-200) & (x != 0)  # SciPy has infinities for the least numbers
    return np.where(near_0, -np.log(np.abs(x)), _gammaln(x))


@scipy_if_there("gammaln")
def _gammaln(x: Array) -> Array:
    size = np.abs(x)
    above = np.where(size < 0.5, _gammaln_from_half(1 + size), _gammaln_from_half(size))
    positive = np.where(size < 0.5, above - np.log(size), above)
    from_next = np.where(size < 0.5, above, above + np.log(size))  # gammaln(1 + size)
    mirrored = log(pi) - np.log(np.abs(sine_of_pi(size))) - from_next
    found = np.where(x < 0, mirrored, positive)
    found = np.where((x <= 0) & (x == np.floor(x)), np.inf, found)
    return np.where(x == -np.inf, x, found)


def _gamma_from_1(x: Array) -> Array:
    product, y = np.ones_like(x), np.minimum(x, 12.0)
    for _ in range(11):
        above = y > 2
        y = np.where(above, y - 1, y)
        product = np.where(above, product * y, product)
    e = np.where(y < 1.5, y - 1, y - 2)
    series = np.where(y < 1.5, np.exp(horner(_LOG, e)) / y, np.exp(horner(_LOG, e)))
    far = np.clip(x, 12.0, 180.0)
    root = far ** (far / 2 - 0.25)  # its square may be too large before exp(-x) is multiplied
    large = root * np.exp(-far) * root * (np.exp(stirling(far)) * sqrt(2 * pi))
    return np.asarray(np.where(x < 12, product * series, large))


@scipy_if_there("gamma")
def gamma(x: Array) -> Array:
    """The gamma function; NaN at -1, -2, …, and infinite at zeros, by their sign.

    Results below the least normal number may be 0.
    """
    size = np.abs(x)
    above = _gamma_from_1(np.where(size < 1, 1 + size, size))
    positive = np.where(size < 1, above / size, above)
    from_next = np.where(size < 1, above, above * size)  # gamma(1 + size)
    found = np.where(x < 0, -pi / sine_of_pi(size) / from_next, positive)
    found = np.where((x < 0) & (x == np.floor(x)), np.nan, found)
    return np.where(size == 0, 1 / x, found)


def digamma(x: Array) -> Array:
    """The derivative of gammaln; NaN at -1, -2, …, and infinite at zeros, by their sign."""
    y = np.where(x < 0, 1 - x, x)
    total, shifted = np.zeros_like(y), y
    for _ in range(8):
        below = shifted < 8
        total = np.where(below, total - 1 / shifted, total)
        shifted = np.where(below, shifted + 1, shifted)
    inverse = 1 / shifted
    square = inverse * inverse
    found = total + (np.log(shifted) - 0.5 * inverse - square * horner(_OF_DIGAMMA, square))
    e = (y - _ROOT) - _REST_OF_ROOT
    found = np.where(np.abs(e) < 0.25, e * horner(_AT_ROOT, np.clip(e, -0.25, 0.25)), found)
    found = np.where(x < 0, found - pi / np.tan(pi * (x - np.round(x))), found)
    return np.where((x < 0) & (x == np.floor(x)), np.nan, np.where(x == 0, -1 / x, found))


def cotangent_polynomial(n: int) -> list[int]:
    """The n-th derivative of pi cot(pi x) over pi**(n + 1), as a polynomial of cot(pi x).

    The derivative of the cotangent c is -(1 + c²).
    """
    found = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(found)][1:]
        found = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return found


def _hurwitz(s: Any, q: Array) -> Array:
    """The sum of (q + k)**-s over k from 0, for q from 0: Euler and Maclaurin's formula from 10."""
    total = np.zeros_like(q)
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


def zeta(x: Array, q: Array) -> Array:
    """The sum of (q + k)**-x over k from 0; NaN for x below 1 or q below 0.

    Never by SciPy, whose function is NaN at infinite x, and of negative q takes a step for each
    unit.
    """
    x, q = map(np.asarray, np.broadcast_arrays(x, q))
    # from 1e5 on, only what is below 1 counts, or is 1
    found = _hurwitz(np.minimum(x, 1e5), np.where(q > 0, q, 1.0))
    found = np.where(x > 1e5, q**-x, found)
    found = np.where((x == 1) | (q == 0), np.inf, found)
    return np.where((x >= 1) & (q >= 0), found, np.nan)


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, n from 1; infinite at 0, -1, -2, …

    Negative numbers are reflected: the sum of both sides is a derivative of the cotangent.
    """
    sign = (-1) ** (n + 1)
    scale = float(factorial(n))
    y = np.where(x < 0, 1 - x, x)
    found = scale * _hurwitz(n + 1.0, np.where(np.isinf(y), 1.0, y))
    found = np.where(np.isinf(y), 0.0, found)
    cotangent = 1 / np.tan(pi * (x - np.round(x)))
    polynomial = [float(c) for c in cotangent_polynomial(n)]
    mirrored = -(pi ** (n + 1)) * horner(polynomial, cotangent) - found
    found = np.where(x < 0, mirrored, sign * found)
    return np.asarray(np.where((x <= 0) & (x == np.floor(x)), sign * np.inf, found))


def betaln(a: Array, b: Array) -> Array:
    """The logarithm of |gamma(a) gamma(b) / gamma(a + b)|.

    What three large logarithms have in common is cancelled before it is computed, as in SLATEC.
    """
    a, b = np.minimum(a, b), np.maximum(a, b)
    plain = gammaln(a) + gammaln(b) - gammaln(a + b)
    ratio = a / (a + b)
    a_10, b_10 = np.maximum(a, 10.0), np.maximum(b, 10.0)
    rest = stirling(b_10) - stirling(np.maximum(a + b, 10.0))
    one_large = gammaln(a) + rest + a - a * np.log(a + b) + (b - 0.5) * np.log1p(-ratio)
    both_large = stirling(a_10) + rest - 0.5 * np.log(b) + log(2 * pi) / 2
    both_large = both_large + (a - 0.5) * np.log(ratio) + b * np.log1p(-ratio)
    found = np.where(a >= 10, both_large, np.where((b >= 10) & (a > 0), one_large, plain))
    found = np.where((a > 0) & np.isinf(b), -np.inf, found)
    return np.where(a == 0, np.inf, found)
