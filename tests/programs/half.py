"""Arithmetic and functions of the 16-bit floats, and what NumPy makes of them, for every device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16

Halves = np.ndarray[Any, Any]

HALVES = (np.dtype(np.float16), bfloat16)
ARITHMETIC = (np.add, np.subtract, np.multiply, np.divide)
FUNCTIONS = (np.exp, np.sin, np.cos)

_SCALES = {
    HALVES[0]: ((0, 0), (-10, 11)),
    HALVES[1]: ((0, 0), (-100, 31), (-69, 64), (-66, 68), (-131, -1), (60, -68), (-3, -130)),
}
"""Powers of two of dividends and divisors whose quotients are ordinary, tiny and very large."""


def digits_of(dtype: np.dtype[Any]) -> int:
    """The binary digits of a significand after the point."""
    return 10 if dtype == np.float16 else 7


def quotients_in_doubt(dtype: np.dtype[Any]) -> tuple[Halves, Halves]:
    """Dividends and divisors with every pair of significands: what rounding is decided by."""
    count = 1 << digits_of(dtype)
    x, y = np.meshgrid(np.arange(count) / count + 1, np.arange(count) / count + 1)
    dividends = [np.ldexp(x.ravel(), up) for up, _ in _SCALES[dtype]]
    divisors = [np.ldexp(y.ravel(), up) for _, up in _SCALES[dtype]]
    return np.concatenate(dividends).astype(dtype), np.concatenate(divisors).astype(dtype)


def special_operands(dtype: np.dtype[Any]) -> tuple[Halves, Halves]:
    """Pairs of zeros, the least, the largest, infinite and other numbers, of both signs."""
    least, normal, most = (2.0**-24, 2.0**-14, 65504)
    if dtype == bfloat16:
        least, normal, most = (2.0**-133, 2.0**-126, 2.0**128 - 2.0**120)
    sizes = [0, least, 3 * least, 9 * least, normal, 5 * normal, 0.1, 1, 3, 7, 1023]
    sizes += [most / 5, most / 2, most, np.inf]
    numbers = np.array([*sizes, *np.negative(sizes), np.nan]).astype(dtype)
    x, y = np.meshgrid(numbers, numbers)
    return x.ravel(), y.ravel()


def every_half(dtype: np.dtype[Any]) -> Halves:
    """All values of a type."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def operands(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Iterator[tuple[Halves, Halves]]:
    """Pairs of operands that decide whether arithmetic is right."""
    yield special_operands(dtype)
    if ufunc is np.divide:
        yield quotients_in_doubt(dtype)
    else:
        x = np.random.default_rng(0).integers(0, 1 << 16, (2, 1 << 16), np.uint16).view(dtype)
        yield x[0], x[1]
        yield every_half(dtype), np.roll(every_half(dtype), 77)  # of nearly the same size


def assert_same_bits(found: Any, expected: Halves) -> None:
    """Equal values and signs; all NaNs are the same."""
    found = np.asarray(found)
    assert found.dtype == expected.dtype
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    np.testing.assert_array_equal(found[known].view(np.uint16), expected[known].view(np.uint16))


def assert_arithmetic(
    ufunc: np.ufunc, dtype: np.dtype[Any], run: Callable[[Halves, Halves], Any]
) -> None:
    """What `run` makes of operands has NumPy's bits."""
    for x, y in operands(ufunc, dtype):
        with np.errstate(all="ignore"):
            assert_same_bits(run(x, y), ufunc(x, y))


def assert_function(ufunc: np.ufunc, dtype: np.dtype[Any], run: Callable[[Halves], Any]) -> None:
    """What `run` makes of every value is off by little more than rounding, and has its sign."""
    x = every_half(dtype)
    found = np.asarray(run(x))
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        exact = ufunc(x.astype(np.float64))
        expected = exact.astype(dtype)
    finite = np.isfinite(expected)
    assert_same_bits(found[~finite], expected[~finite])
    np.testing.assert_array_equal(np.signbit(found[finite]), np.signbit(expected[finite]))
    off = np.abs(found[finite].astype(np.float64) - exact[finite])
    off /= np.spacing(np.abs(expected[finite])).astype(np.float64)
    worst = np.argmax(off)
    assert off[worst] <= 0.505, f"{ufunc.__name__}({x[finite][worst]}) is off by {off[worst]} units"
