"""Folds by a NumPy function that combines two arrays: with the methods of a ufunc, and traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph.control.scans import scan

NDArray = np.ndarray[Any, Any]
Axes = int | Sequence[int] | None


class Fold:
    """A function that combines two arrays, with the methods of a ufunc that fold by it.

    >>> Fold(np.maximum).reduce(np.array([[1, 5, 2], [7, 3, 4]]), 1)
    array([5, 7])
    """

    def __init__(self, combine: Callable[..., Any]) -> None:
        self._combine = combine

    def __call__(self, x: NDArray, y: NDArray, out: NDArray | None = None) -> NDArray:
        """The combination of two arrays."""
        found: NDArray = np.asarray(self._combine(x, y))
        if out is None:
            return found
        out[...] = found
        return out

    def reduce(
        self,
        x: NDArray,
        axis: Axes = 0,
        dtype: Any = None,
        out: NDArray | None = None,
        keepdims: bool = False,
    ) -> NDArray:
        """The fold over axes with elements, in halves: all pairs of a step in one call."""
        axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
        found: NDArray = in_halves(self, x, axes)
        if keepdims:
            found = np.expand_dims(found, axes)
        if out is None:
            return found
        out[...] = found
        return out

    def accumulate(
        self, x: NDArray, axis: int = 0, dtype: Any = None, out: NDArray | None = None
    ) -> NDArray:
        """Every partial fold along an axis."""
        found = np.array(x)
        moved = np.moveaxis(found, axis, 0)
        for n in range(1, len(moved)):
            moved[n] = self(moved[n - 1], moved[n])
        if out is None:
            return found
        out[...] = found
        return out


def in_halves(combine: Callable[..., Any], x: Any, axes: Sequence[int]) -> Any:
    """The fold of an array, or of a traced one, over axes with elements, in halves."""
    kept = tuple([extent for n, extent in enumerate(x.shape) if n not in axes])
    rest = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *kept)
    while len(rest) > 1:
        half = len(rest) // 2
        odd = rest[2 * half :]
        folded = combine(rest[:half], rest[half : 2 * half])
        rest = np.concatenate([folded, odd]) if len(odd) else folded
    return rest[0]


def one_by_one(combine: Callable[..., Any], x: Any, axis: int) -> Any:
    """Every partial fold of a traced array along an axis: a loop over its slices."""

    def step(before: Any, row: Any) -> Any:
        after = combine(before, row)
        return after, after

    rows = np.moveaxis(x, axis, 0)
    if len(rows) < 2:
        return x
    _, rest = scan(step, rows[0], rows[1:])
    return np.moveaxis(np.concatenate([rows[:1], rest]), 0, axis)
