"""Products whose columns are folded at once: functions, and shapes of operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def nearest(points: Any, centres: Any) -> Any:
    """The nearest centre of each point."""
    return np.argmin(np.sum(centres * centres, axis=1) - 2 * points @ centres.T, axis=1)


def means(points: Any, centres: Any) -> Any:
    """A step of k-means: the means of the points that are nearest to each centre."""
    belongs = (nearest(points, centres)[:, None] == np.arange(len(centres))).astype(points.dtype)
    counts = np.maximum(np.sum(belongs, axis=0), 1)
    return belongs.T @ points / counts[:, None]


def distances(points: Any, centres: Any) -> Any:
    """The distance of each point to the nearest centre."""
    squares = np.sum(points * points, axis=1)[:, None] + np.sum(centres * centres, axis=1)
    return np.sqrt(np.min(np.maximum(squares - 2 * points @ centres.T, 0), axis=1))


def last_of_columns(centres: Any, points: Any) -> Any:
    """The extremes of each column, and the place of the greatest."""
    products = centres.T @ points
    return np.max(products, axis=0), np.argmax(products, axis=0), np.any(products > 99, axis=0)


CASES: dict[str, Case] = {
    "nearest": (nearest, ((65539, 12), (9, 12))),
    "nearest, two rows of a thread": (nearest, ((1 << 18, 16), (8, 16))),
    "means": (means, ((1 << 17, 10), (16, 10))),
    "distances": (distances, ((65536, 9), (11, 9))),
    "columns": (last_of_columns, ((13, 9), (13, 70000))),
}


def operands(name: str, dtype: str) -> list[Any]:
    """Arrays of small integers, whose products are exact and often equal; with NaN in some rows."""
    rng = np.random.default_rng(len(name))
    found = [rng.integers(-3, 4, size=shape).astype(dtype) for shape in CASES[name][1]]
    if name.startswith("nearest"):
        found[0][3:5] = np.nan
        found[0][7, 2] = np.inf
    return found
