"""Arithmetic of float16 whose results have the bits of NumPy's, for every device."""

from __future__ import annotations

from typing import Any

import numpy as np

Halves = np.ndarray[Any, Any]


def quotients_in_doubt() -> tuple[Halves, Halves]:
    """Dividends and divisors with every pair of significands: what rounding is decided by."""
    significands = (np.arange(1024) / 1024 + 1).astype(np.float16)
    x, y = np.meshgrid(significands, significands)
    return x.ravel(), y.ravel()


def special_operands() -> tuple[Halves, Halves]:
    """Pairs of zeros, the least, the largest, infinite and other numbers, of both signs."""
    sizes = [0, 6e-8, 5.5e-7, 6.1e-5, 3e-4, 0.1, 1, 3, 7, 1023, 65504, np.inf]
    numbers = np.array([*sizes, *np.negative(sizes), np.nan], np.float16)
    x, y = np.meshgrid(numbers, numbers)
    return x.ravel(), y.ravel()


def every_half() -> Halves:
    """All values of float16."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def assert_same_bits(found: Any, expected: Halves) -> None:
    """Equal values and signs; all NaNs are the same."""
    found = np.asarray(found)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
