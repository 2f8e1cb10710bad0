"""The error of the library's mathematics, against mpmath with many more digits.

Points are random, and where errors are largest: beside zeros, halfway cases of the reductions, ends
of ranges, subnormal and huge numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="there is no wheel of llvmlite for this system")

import mpmath
from mpmath import mp

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.native.library.symbols import elementwise
from tests.unit.native.library.compiled_functions import Compiled
from tracegraph.ir.op import get

NDArray = np.ndarray[Any, Any]
Generator = np.random.Generator
Points = Callable[[Generator, int], NDArray]

HALF_PI = math.pi / 2


@dataclass(frozen=True)
class Line:
    """One function: its value, where it is tried, and the error allowed in units in the last place.

    Results smaller than `floor` are compared as if they were of this size.
    """

    reference: Callable[..., Any]
    points: tuple[Points, ...]
    ulps: float
    floor: float = 0.0
    narrow_ulps: float = 0.6


def uniform(low: float, high: float) -> Points:
    return lambda random, n: random.uniform(low, high, n)


def sizes(low: float, high: float, signs: bool = True) -> Points:
    """Numbers of all sizes between two powers of 2."""

    def points(random: Generator, n: int) -> NDArray:
        found = np.exp2(random.uniform(low, high, n))
        return np.where(random.integers(2, size=n) == 1, -found, found) if signs else found

    return points


def beside(*centres: float) -> Points:
    """Numbers that differ from a centre by 2**-53 to 2**-3 of it."""

    def points(random: Generator, n: int) -> NDArray:
        distance = np.exp2(random.uniform(-53, -3, n)) * random.choice([-1, 1], n)
        found: NDArray = random.choice(centres, n) * (1 + distance)
        return found

    return points


def multiples_of_half_pi(random: Generator, n: int) -> NDArray:
    """The doubles nearest to multiples of pi / 2, small and large ones, and their neighbours."""
    k = np.concatenate([np.arange(1, n // 4 + 1), random.integers(1, 1 << 40, n // 4)])
    near = np.array([float(mp.mpf(int(i)) * mp.pi / 2) for i in k])
    return np.concatenate([near, np.nextafter(near, random.choice([-np.inf, np.inf], near.size))])


WORST_ANGLES = np.array([6381956970095103 * 2.0**797, 5319372648326541 * 2.0**-52 * 2.0**257])
"""Doubles very near to multiples of pi / 2 (the first is the nearest of all)."""

ANGLES = (
    uniform(-10, 10),
    uniform(-1e6, 1e6),
    multiples_of_half_pi,
    sizes(20, 40),
    sizes(40, 1023),
    sizes(-1074, 0),
    lambda random, n: WORST_ANGLES,
)
ROOTS = (2.0**0.5, 0.5**0.5)
POSITIVE = (sizes(-1074, 1023, signs=False), beside(1.0, *ROOTS), uniform(0.5, 2))


def power(x: Any, y: Any) -> Any:
    return mp.power(x, y)


def inverse_erfc(z: Any) -> Any:
    if z > 0.01:
        return mp.erfinv(1 - z)
    x, goal = mp.sqrt(-mp.log(z)), mp.log(z)
    for _ in range(60):
        value = mp.erfc(x)
        step = (mp.log(value) - goal) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(2) ** -100:
            break
    return x


def log_gamma(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))


def scaled_erfc(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


BESSEL = (uniform(0, 60), uniform(0, 6), sizes(-30, 8, signs=False))

LINES: Mapping[str, Line] = {
    "exp": Line(mp.exp, (uniform(-745, 709.7), sizes(-60, 3), uniform(-745, -708)), 1),
    "exp2": Line(lambda x: mp.mpf(2) ** x, (uniform(-1074, 1023.9), sizes(-60, 3)), 1),
    "expm1": Line(mp.expm1, (uniform(-45, 709.7), uniform(-3, 3), sizes(-1074, 2)), 1),
    "log": Line(mp.log, POSITIVE, 1, narrow_ulps=0.8),
    "log2": Line(lambda x: mp.log(x) / mp.log(2), POSITIVE, 1),
    "log10": Line(mp.log10, POSITIVE, 1),
    "log1p": Line(
        mp.log1p,
        (
            *(sizes(-1074, 1023.99, signs=False), uniform(-0.999, 3), uniform(-0.4, 0.5)),
            lambda random, n: -np.exp2(random.uniform(-60, -1e-9, n)),
        ),
        1,
    ),
    "sin": Line(mp.sin, ANGLES, 1),
    "cos": Line(mp.cos, ANGLES, 1),
    "tan": Line(mp.tan, ANGLES, 1),
    "arcsin": Line(mp.asin, (uniform(-1, 1), beside(0.5), sizes(-1074, -1e-9)), 1),
    "arccos": Line(mp.acos, (uniform(-1, 1), beside(0.5), sizes(-1074, -1e-9)), 1),
    "arctan": Line(
        mp.atan, (uniform(-3, 3), beside(1.0, 0.41421356, 2.41421356), sizes(-1074, 1023)), 1
    ),
    "sinh": Line(mp.sinh, (uniform(-2, 2), uniform(-710, 710), sizes(-1074, 3)), 1),
    "cosh": Line(mp.cosh, (uniform(-2, 2), uniform(-710, 710), sizes(-1074, 3)), 1),
    "tanh": Line(mp.tanh, (uniform(-2, 2), uniform(-22, 22), sizes(-1074, 3)), 1),
    "arcsinh": Line(mp.asinh, (uniform(-2, 2), sizes(-1074, 1023)), 1),
    "arccosh": Line(mp.acosh, (beside(1.25), uniform(1, 3), sizes(0, 1023, signs=False)), 1),
    "arctanh": Line(mp.atanh, (uniform(-1, 1), sizes(-1074, -1e-9)), 1),
    "cbrt": Line(lambda x: mp.sign(x) * mp.cbrt(abs(x)), (uniform(-8, 8), sizes(-1074, 1023)), 1),
    "erf": Line(mp.erf, (uniform(-6, 6), beside(1.0), sizes(-1074, 2)), 1),
    "erfc": Line(mp.erfc, (uniform(-6, 27), beside(0.5), sizes(-60, 2)), 2),
    "erfcx": Line(scaled_erfc, (uniform(-26, 50), beside(0.5), sizes(-60, 6)), 2),
    "erfinv": Line(mp.erfinv, (uniform(-1, 1), sizes(-1000, -1e-6)), 2),
    "erfcinv": Line(inverse_erfc, (uniform(0, 1), sizes(-1074, 0, signs=False)), 2),
    "ndtr": Line(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, (uniform(-38, 8), sizes(-60, 2)), 2),
    "ndtri": Line(
        lambda p: -mp.sqrt(2) * inverse_erfc(2 * p), (uniform(0, 0.5), sizes(-1074, -1, False)), 2
    ),
    "gamma": Line(mp.gamma, (uniform(-170, 171.6), uniform(-5, 10), sizes(-1022, 2)), 1),
    "gammaln": Line(
        log_gamma, (uniform(0, 9), beside(1.0, 2.0), sizes(-1074, 1000, signs=False)), 2
    ),
    "j0": Line(lambda x: mp.besselj(0, x), BESSEL, 4, floor=0.3),
    "j1": Line(lambda x: mp.besselj(1, x), BESSEL, 4, floor=0.3),
    "y0": Line(lambda x: mp.bessely(0, x), BESSEL, 6, floor=0.3),
    "y1": Line(lambda x: mp.bessely(1, x), BESSEL, 6, floor=0.3),
    "i0": Line(lambda x: mp.besseli(0, x), (uniform(-12, 12), uniform(-712, 712)), 3.5),
    "i1": Line(lambda x: mp.besseli(1, x), (uniform(-12, 12), uniform(-712, 712)), 3.5),
}
"""Functions of one number."""

PAIRS: Mapping[str, Line] = {
    "power": Line(power, (uniform(0, 20), beside(1.0), sizes(-60, 60, signs=False)), 1),
    "arctan2": Line(lambda y, x: mp.atan2(y, x), (uniform(-3, 3), sizes(-1074, 1023)), 1),
    "hypot": Line(mp.hypot, (uniform(-3, 3), sizes(-1074, 1000), sizes(-520, -500)), 1),
    "fmod": Line(lambda x, y: mp.mpf(math.fmod(x, y)), (uniform(-30, 30), sizes(-1074, 1023)), 0),
}
"""Functions of two numbers: the second ones are taken from the same points in another order."""


def units_off(value: Any, exact: Any, dtype: np.dtype[Any], floor: float) -> float:
    """The error in units in the last place of the exact result."""
    info = np.finfo(dtype)
    if abs(exact) > mp.mpf(float(info.max)) * (1 + mp.mpf(2) ** (-info.nmant - 2)):
        return 0.0 if np.isinf(value) and np.sign(value) == mp.sign(exact) else math.inf
    if not np.isfinite(value):
        return 0.0 if abs(exact) > float(info.max) else math.inf
    size = max(abs(exact), mp.mpf(floor), mp.mpf(float(info.smallest_normal)))
    exponent = mp.frexp(size)[1] - 1
    return float(abs(mp.mpf(float(value)) - exact) / mp.mpf(2) ** (exponent - info.nmant))


@cache
def compiled(dtype: np.dtype[Any]) -> tuple[Compiled, Mapping[str, int]]:
    names = [*LINES, *PAIRS]
    count = {name: 2 if name in PAIRS else 1 for name in names}
    functions = [elementwise(get(name), {}, [dtype] * count[name], dtype) for name in names]
    return Compiled([f for f in functions if f is not None], speed=1), dict(
        zip(names, range(len(names)), strict=True)
    )


def worst(name: str, dtype: np.dtype[Any], points: int) -> tuple[float, tuple[Any, ...]]:
    """The largest error, and the operands that have it."""
    line = LINES[name] if name in LINES else PAIRS[name]
    random = np.random.default_rng(sum(map(ord, name)))
    with np.errstate(all="ignore"):
        x = np.concatenate([p(random, points) for p in line.points]).astype(dtype)
        operands = [x[np.isfinite(x) & (x != 0)]]
        if name in PAIRS:
            operands.append(random.permutation(operands[0]))
            if name == "power":
                operands[1] = (random.uniform(-700, 700, x.size) / np.log(x)).astype(dtype)
    machine_code, numbers = compiled(dtype)
    found: tuple[float, tuple[Any, ...]] = 0.0, ()
    values = machine_code(numbers[name], *operands)
    for value, *given in zip(values, *operands, strict=True):
        if not np.isfinite(given).all():
            continue
        largest = max(abs(float(v)) for v in given)
        digits = 1300 if largest > 1e12 else 240
        with mp.workprec(digits):
            try:
                exact = line.reference(*(mp.mpf(float(v)) for v in given))
            except (ValueError, ZeroDivisionError):
                assert not np.isfinite(value)
                continue
            if isinstance(exact, mpmath.mpc):
                assert np.isnan(value)
                continue
            error = units_off(value, exact, dtype, line.floor)
        if error > found[0]:
            found = error, (*given, value)
    return found


def check(name: str, dtype: np.dtype[Any], points: int) -> None:
    line = LINES[name] if name in LINES else PAIRS[name]
    allowed = line.ulps if dtype == np.float64 or line.ulps == 0 else line.narrow_ulps
    error, where = worst(name, dtype, points)
    assert error <= allowed, f"{name} of {dtype} is off by {error} units at {where}"


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", [*LINES, *PAIRS])
def test_errors_are_small(name: str, dtype: type) -> None:
    check(name, np.dtype(dtype), 24)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", [*LINES, *PAIRS])
def test_errors_are_small_at_many_points(name: str, dtype: type) -> None:
    check(name, np.dtype(dtype), 4000)
