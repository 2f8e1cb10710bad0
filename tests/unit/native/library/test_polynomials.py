"""Every polynomial of the library's C++ is the interpolation that is listed here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from lowering.native.library.source import MATHEMATICS

Real = Any
Function = Callable[[Real], Real]

BITS = 250


def power_series(coefficient: Callable[[int], Real], terms: int = 120) -> Function:
    return lambda x: sum(coefficient(k) * x**k for k in range(terms))


def interpolation(function: Function, low: Real, high: Real, degree: int) -> list[float]:
    """Coefficients, constant first, of the polynomial through Chebyshev's nodes, rounded."""
    count = degree + 1
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    nodes = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    differences = [function(x) for x in nodes]
    for order in range(1, count):  # Newton's divided differences
        for i in range(count - 1, order - 1, -1):
            step = nodes[i] - nodes[i - order]
            differences[i] = (differences[i] - differences[i - 1]) / step
    found = [differences[-1]]
    for i in range(count - 2, -1, -1):
        found = [mp.mpf(0), *found]
        for k in range(len(found) - 1):
            found[k] -= nodes[i] * found[k + 1]
        found[0] += differences[i]
    return [float(c) for c in found]


def exponential_tail(r: Real) -> Real:
    return power_series(lambda k: 1 / mp.factorial(k + 2), 60)(r)


def logarithm_tail(first: int) -> Function:
    return power_series(lambda k: mp.mpf(2) / (2 * k + first))


def sine_tail(z: Real) -> Real:
    return power_series(lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3), 40)(z)


def cosine_tail(z: Real) -> Real:
    return power_series(lambda k: (-1) ** k / mp.factorial(2 * k + 4), 40)(z)


def arctangent_tail(z: Real) -> Real:
    return power_series(lambda k: mp.mpf((-1) ** (k + 1)) / (2 * k + 3), 300)(z)


def arcsine_tail(z: Real) -> Real:
    def coefficient(k: int) -> Real:
        return mp.binomial(2 * k + 2, k + 1) / (mp.mpf(4) ** (k + 1) * (2 * k + 3))

    return power_series(coefficient, 399)(z)


def log1p_tail(f: Real) -> Real:
    return (mp.log(1 + f) - f + f * f / 2) / f**3 if abs(f) > 1e-9 else mp.mpf(1) / 3 - f / 4


def erf_over_x(z: Real) -> Real:
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z)


def scaled_erfc(t: Real) -> Real:
    x = 4 * (1 + t) / (1 - t)
    if x < 1000:
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
    series = power_series(lambda k: (-1) ** k * mp.fac2(2 * k - 1), 7)(1 / (2 * x * x))
    return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * series


def inverse_erf(w: Real) -> Real:
    """The x with erf(x)**2 = 1 - exp(-w)."""
    e = mp.exp(-w)
    z = e / (1 + mp.sqrt(1 - e))
    if z > mp.mpf("0.1"):
        return mp.erfinv(1 - z)
    x = mp.sqrt(max(w - mp.log(mp.sqrt(w)) - mp.mpf("0.5"), mp.mpf(1)))
    while True:  # Newton's method for the logarithms
        value = mp.erfc(x)
        step = (mp.log(value) - mp.log(z)) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(2) ** -140:
            return x


def near_inverse(t: Real) -> Real:
    w = t + mp.mpf("3.125")
    return inverse_erf(w) / mp.sqrt(-mp.expm1(-w))


def far_inverse(most: str, least: str) -> tuple[Function, Real, Real]:
    """Of 1 / sqrt(w) less the middle, between two values of sqrt(w)."""
    low, high = 1 / mp.mpf(most), 1 / mp.mpf(least)
    middle = (low + high) / 2
    return (
        lambda t: inverse_erf(1 / (t + middle) ** 2) * (t + middle),
        low - middle,
        high - middle,
    )


def bessel_within(order: int) -> Function:
    first, second = (mp.besseljzero(order, k) ** 2 for k in (1, 2))

    def function(t: Real) -> Real:
        z = (t + 1) * mp.mpf("12.5")
        x = mp.sqrt(z)
        return mp.besselj(order, x) / (x if order else 1) / ((z - first) * (z - second))

    return function


def regular_part(order: int) -> Function:
    def function(t: Real) -> Real:
        x = mp.sqrt((t + 1) * mp.mpf("12.5"))
        logarithm = mp.log(x) * mp.besselj(order, x) - (1 / x if order else 0)
        return (mp.bessely(order, x) - 2 / mp.pi * logarithm) / (x if order else 1)

    return function


def hankel(order: int, sine: bool) -> Function:
    def function(t: Real) -> Real:
        x = 5 / mp.sqrt((t + 1) / 2)
        angle, size = x - mp.pi / 4 - order * mp.pi / 2, mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        if sine:
            return size * (y * mp.cos(angle) - j * mp.sin(angle)) * x
        return size * (j * mp.cos(angle) + y * mp.sin(angle))

    return function


def modified_beyond(order: int) -> Function:
    def function(t: Real) -> Real:
        x = 16 / (1 + t)
        return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)

    return function


def fits() -> Iterator[tuple[str, Function, Real, Real, int]]:
    """The name of a C++ function, what its polynomial interpolates, the interval, the degree."""
    half, quarter = mp.log(2) / 2 + 1e-6, (mp.pi / 4) ** 2 * 1.001
    s = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * 1.001
    eighth = (mp.sqrt(2) - 1) ** 2 * 1.002
    yield "tgm_exp_tail(double)", exponential_tail, -half, half, 10
    yield "tgm_exp_tail(float)", exponential_tail, -half, half, 4
    yield "tgm_light_tail", exponential_tail, -half, half, 6
    yield "sinh(double)", power_series(lambda k: 1 / mp.factorial(2 * k + 3), 40), 0, 1, 7
    yield "tgm_log_tail", logarithm_tail(3), 0, s, 6
    yield "tgm_log_pair", logarithm_tail(5), 0, s, 7
    yield "tgm_light_log", logarithm_tail(3), 0, s, 3
    yield "log(float)", log1p_tail, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 8
    yield "cbrt(double)", mp.cbrt, 1, 8, 3
    yield "cbrt(float)", mp.cbrt, 1, 8, 3
    yield "tgm_sin_tail", sine_tail, 0, quarter, 6
    yield "tgm_cos_tail", cosine_tail, 0, quarter, 5
    yield "tgm_light_angle_of", sine_tail, 0, quarter, 3
    yield "tgm_light_angle_of", cosine_tail, 0, quarter, 3
    yield "tgm_atan_of_quotient", arctangent_tail, 0, eighth, 11
    yield "tgm_light_atan", arctangent_tail, 0, eighth, 6
    yield "tgm_asin_tail", arcsine_tail, 0, 0.25, 12
    yield "tgm_light_asin", arcsine_tail, 0, 0.25, 6
    yield "tgm_near_erf", erf_over_x, 0, 1, 13
    yield "tgm_light_near_erf", erf_over_x, 0, 0.5625, 6
    yield "tgm_erfcx_pair", scaled_erfc, -1, 1, 24
    yield "tgm_light_erfcx", scaled_erfc, -1, mp.mpf(".985"), 14
    yield "tgm_near_erfinv", near_inverse, -mp.mpf("3.125"), mp.mpf("3.125"), 24
    yield "tgm_far_erfcinv", *far_inverse("28", "2.49"), 10
    yield "tgm_light_erfinv", near_inverse, -mp.mpf("3.125"), mp.mpf("3.125"), 14
    yield "tgm_light_erfinv", *far_inverse("10.3", "2.49"), 12
    yield "tgm_lgamma_of_2_and", lambda u: mp.loggamma(2 + u) / u, -0.5, 0.5, 19
    for n in (0, 1):
        yield f"tgm_near_j{n}", bessel_within(n), -1, 1, 12
        yield f"tgm_p{n}", hankel(n, False), -1, 1, 17
        yield f"tgm_q{n}", hankel(n, True), -1, 1, 17
        yield f"y{n}(double)", regular_part(n), -1, 1, 13
    yield "cyl_bessel_i0", lambda z: mp.besseli(0, 2 * mp.sqrt(z)), 0, 16, 16
    yield "cyl_bessel_i0", modified_beyond(0), -1, 1, 24
    yield "cyl_bessel_i1", lambda z: mp.besseli(1, 2 * mp.sqrt(z)) / (2 * mp.sqrt(z)), 0, 16, 16
    yield "cyl_bessel_i1", modified_beyond(1), -1, 1, 24


APART = {"tgm_near_erf", "tgm_erfcx_pair", "tgm_near_erfinv", "tgm_lgamma_of_2_and"}
"""Functions that add the constant coefficient by themselves."""

HEAD = re.compile(r"^TG_(?:INLINE|SHARED) [\w:]+ (\w+)\(([^)]*)\)", re.MULTILINE)
CALL = re.compile(r"tgm_polynomial\(\s*[^,;]+?,((?:\s*-?0x[\w.+-]+,?)+)\)")


def mathematics() -> str:
    """The folder's own C++."""
    folder = files("lowering.native.library")
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in MATHEMATICS)


def written() -> Iterator[tuple[str, list[float]]]:
    """The name of each C++ function that has a polynomial, and its coefficients."""
    text = mathematics()
    heads = list(HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.end() : following.start() if following else None]
        name = f"{head.group(1)}({head.group(2).split(' ')[0]})"
        for call in CALL.finditer(body):
            numbers = re.findall(r"-?0x[0-9a-f.]+p[+-]?\d+", call.group(1))
            yield name, list(map(float.fromhex, numbers))


def matching(name: str, found: Sequence[tuple[str, list[float]]]) -> list[list[float]]:
    return [c for full, c in found if name in (full, full.partition("(")[0])]


def test_every_polynomial_is_listed() -> None:
    found = list(written())
    listed = [name for name, *_ in fits()]
    for name in set(listed):
        assert len(matching(name, found)) == listed.count(name), name
    # besides, the definition of tgm_polynomial has its name three times, and a series has fractions
    assert len(found) == len(listed) == mathematics().count("tgm_polynomial(") - 4


@pytest.mark.parametrize("name", sorted({name for name, *_ in fits()}))
def test_coefficients_are_those_of_the_interpolation(name: str) -> None:
    with mp.workprec(BITS):
        wanted = [interpolation(f, low, high, n) for own, f, low, high, n in fits() if own == name]
    for expected, found in zip(wanted, matching(name, list(written())), strict=True):
        if name in APART:
            expected = expected[1:]
        if "float" in name and name != "cbrt(float)":
            expected = [float(np.float32(c)) for c in expected]
        assert found == expected
