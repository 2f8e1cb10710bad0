"""Integers from the whole range of their dtype, so that arithmetic wraps around."""

from __future__ import annotations

from typing import Any

import numpy as np


def wide_integers(
    random: np.random.Generator, dtype: Any, shape: int | tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Random integers of a dtype, its least and its largest number included."""
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
