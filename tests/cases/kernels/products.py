"""Products of arguments, in every form that the library takes, with sums that are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from tracegraph.dtypes import bfloat16

DTYPES = (np.float16, bfloat16, np.float32, np.float64, np.complex64, np.complex128)

Shape = tuple[int, ...]

PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], Shape, Shape]] = {
    "plain": (lambda x, y: x @ y, (48, 56), (56, 40)),
    "transposed": (lambda x, y: x.T @ y.T, (56, 48), (40, 56)),
    "rows of both": (lambda x, y: x[2:, 8:] @ y[16:56], (50, 48), (64, 40)),
    "batch": (lambda x, y: x @ np.swapaxes(y, 1, 2), (3, 16, 24), (3, 32, 24)),
    "shared": (lambda x, y: x @ y, (16, 24), (3, 24, 32)),
    "fixed": (lambda x, y: (x * 2) @ y, (48, 56), (56, 40)),
    "twice": (lambda x, y: (x @ y, (x @ y).T @ x, y.T @ y), (48, 56), (56, 40)),
    "shared right": (lambda x, y: x @ y, (6, 5, 1, 8), (8, 12)),
    "shared right in part": (lambda x, y: x @ y, (2, 8, 2, 8), (2, 1, 8, 16)),
    "shared left": (lambda x, y: x @ y, (8, 8), (6, 8, 1)),
    "reshaped": (lambda x, y: x.reshape(-1, 8) @ y, (6, 5, 8), (8, 12)),
}
"""Functions of two arrays, with their shapes."""


def halves(seed: int, dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    """Multiples of 1/2, short sums of whose products are exact in float32."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, shape) / 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(-2, 3, shape) / 2
    return x.astype(dtype)


def power(a: Any, x: Any, n: Any) -> Any:
    """a^n x, by products in a loop."""
    return tracegraph.fori_loop(0, n, lambda _, v: a @ v, x)


def chosen(p: Any, a: Any, x: Any) -> Any:
    """One of two products, in branches."""
    return tracegraph.cond(p, lambda a, x: a @ x, lambda a, x: x @ a.T, a, x)
