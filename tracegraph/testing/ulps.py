"""Distances between floating-point numbers in units in the last place (ulp)."""

from __future__ import annotations

from typing import Any

import numpy as np

NDArray = np.ndarray[Any, Any]


def close(actual: NDArray, expected: NDArray, ulps: int, *, signs: bool = False) -> NDArray:
    """Where two arrays of one dtype and shape are equal within `ulps`.

    NaNs equal each other, infinities only themselves; integers and booleans are exact. With
    `signs`, zeros differ by sign. Complex numbers differ by units of the larger part.

    >>> close(np.array([1.0, np.nan, 0.0]), np.array([1.0 + 2**-52, np.nan, -0.0]), 1)
    array([ True,  True,  True])
    """
    if expected.dtype.kind in "biu":
        return np.asarray(actual == expected)
    if expected.dtype.kind == "c":
        return _close_complex(actual, expected, ulps)
    same_zero = np.asarray(np.signbit(actual) == np.signbit(expected)) | (not signs)
    nan = np.isnan(expected)
    numbers = (steps(actual, expected) <= ulps) & ((expected != 0) | (actual != 0) | same_zero)
    special = ~np.isfinite(expected) | ~np.isfinite(actual)
    return np.where(nan, np.isnan(actual), np.where(special, actual == expected, numbers))


def _close_complex(actual: NDArray, expected: NDArray, ulps: int) -> NDArray:
    finite = np.isfinite(expected) & np.isfinite(actual)
    with np.errstate(all="ignore"):
        near = steps(actual, expected) <= ulps
    special = close(actual.real, expected.real, ulps) & close(actual.imag, expected.imag, ulps)
    return np.where(finite, near, special)


def steps(x: NDArray, y: NDArray) -> NDArray:
    """How many representable numbers lie between x and y, both zeros being one.

    Between complex numbers, the distance in units of the larger part of `y`.

    >>> steps(np.float32([1, 0]), np.float32([1 + 2**-22, -0.0])).astype(int)
    array([2, 0])
    """
    if y.dtype.kind == "c":
        distance = np.abs(x.astype(np.clongdouble) - y.astype(np.clongdouble))
        return np.asarray(distance / np.spacing(np.maximum(np.abs(y.real), np.abs(y.imag))))
    return np.asarray(np.abs(_rank(x) - _rank(y)))


def _rank(x: NDArray) -> NDArray:
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(np.longdouble)
    rank = np.where(bits < 0, np.ldexp(np.longdouble(-1), 8 * x.dtype.itemsize - 1) - bits, bits)
    return np.reshape(rank, x.shape)  # ascontiguousarray makes vectors of scalars
