"""Arrays for the samples of ops."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


def ramp(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray[Any, Any]:
    """Small numbers, neighbours distinct: -5 … 5 repeated, 0 … 10 if unsigned.

    Complex ones have an imaginary part of their own.

    >>> ramp((2, 3), "int32")
    array([[-5, -4, -3],
           [-2, -1,  0]], dtype=int32)
    """
    dtype = np.dtype(dtype)
    number = np.arange(prod(shape)).reshape(shape)
    if dtype.kind == "b":
        return np.asarray(number % 3 == 1)
    cycle = number % 11 - (0 if dtype.kind == "u" else 5)
    if dtype.kind == "c":
        cycle = cycle + 1j * (number % 7 - 3)
    return np.asarray(cycle, dtype)
