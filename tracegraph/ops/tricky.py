"""Edge cases of each dtype, for the samples of elementwise ops."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

NDArray = np.ndarray[Any, Any]

_COMPLEX = [
    complex(re, im) for re in (-2.5, -1.0, -0.0, 0.0, 0.75, 3.0) for im in (-1.5, -0.0, 0.0, 2.0)
]


def tricky(dtype: np.dtype[Any]) -> NDArray:
    """Zeros of both signs, extremes, NaN, infinities and ordinary values of a dtype, as a vector.

    Complex values are finite: results for complex infinities differ between C libraries.

    >>> tricky(np.dtype(np.int8)).tolist()
    [0, 1, -1, 2, -3, 7, -8, 63, 127, -128]
    """
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        small = [0, 1, 2, 3, 7, 8, 63] if dtype.kind == "u" else [0, 1, -1, 2, -3, 7, -8, 63]
        return np.array(
            [*small, limits.max, limits.min][: len(small) + (limits.min < 0) + 1], dtype
        )
    if dtype.kind == "c":
        return np.array(_COMPLEX, dtype)
    limits = ml_dtypes.finfo(dtype)
    ends = [limits.max, -limits.max, limits.tiny, -limits.smallest_subnormal]
    ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -0.001, 100.5]
    return np.array([*ordinary, np.nan, np.inf, -np.inf, *map(float, ends)]).astype(dtype)


def grid(values: NDArray, count: int) -> tuple[NDArray, ...]:
    """`count` operands that pair every value with every other: each along an axis of its own.

    >>> [x.shape for x in grid(np.arange(3), 2)]
    [(3, 1), (1, 3)]
    """
    return tuple(
        values.reshape([-1 if axis == mine else 1 for axis in range(count)])
        for mine in range(count)
    )
