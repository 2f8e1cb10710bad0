"""Arrays to sort: with ties, NaNs, infinities and both zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES, bfloat16

NDArray = np.ndarray[Any, Any]

DTYPES = tuple(SHORT_NAMES)

LENGTHS = (1, 2, 31, 32, 33, 64, 100, 511, 513, 1000, 2049, 8192, 8193, 20_000)
"""On both sides of what a block sorts, and of a tile; the last ones have several tiles."""


def values(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> NDArray:
    """Numbers of a dtype in any order, many of them equal."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    target = np.dtype(dtype)
    if target.kind == "b":
        return rng.integers(0, 2, shape).astype(target)
    if target.kind in "iu":
        found = rng.integers(0, 256, (count, target.itemsize), np.uint8).view(target)
        return np.where(rng.random(shape) < 0.5, found.reshape(shape), target.type(5))
    numbers = _real(rng, count)
    if target.kind == "c":
        numbers = numbers + 1j * np.zeros(count)
        numbers.imag = _real(rng, count)
    with np.errstate(over="ignore"):
        return numbers.astype(target).reshape(shape)


def _real(rng: np.random.Generator, count: int) -> NDArray:
    numbers = np.round(rng.standard_normal(count) * 100, 1)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e-40])
    return np.where(rng.random(count) < 0.3, special[rng.integers(0, 8, count)], numbers)


def order_of(x: NDArray) -> NDArray:
    """NumPy's stable order of the last axis."""
    comparable = x.astype(np.float32) if x.dtype == bfloat16 else x
    return np.argsort(comparable, axis=-1, kind="stable")


def in_order(x: NDArray) -> NDArray:
    """The elements in that order, to the bit."""
    return np.take_along_axis(x, order_of(x), -1)
