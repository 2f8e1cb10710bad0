"""The modes "raise", "wrap" and "clip" of functions that take indices along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.elementwise import clip
from tracegraph.numpy.index_checks import require_in_range
from tracegraph.numpy.ufuncs import remainder
from tracegraph.tracing.tracer import Tracer


def integer_indices(indices: Any) -> Any:
    """Indices as integers: booleans are 0 and 1, and a list is converted, as in NumPy.

    Raises:
        TypeError: an array of another dtype.
    """
    if isinstance(indices, (list, tuple)) and not any(isinstance(i, Tracer) for i in indices):
        return as_array(indices, np.int64)
    indices = as_array(indices)
    if indices.dtype.kind not in "biu":
        raise TypeError(f"indices must be integers, got {indices.dtype}; use indices.astype(int)")
    return as_array(indices, np.int64) if indices.dtype == np.bool_ else indices


def require_integers(indices: Any) -> None:
    """Require indices along an axis to be integers.

    Raises:
        IndexError: they are of another dtype; booleans are no mask here.
    """
    if indices.dtype.kind not in "iu":
        raise IndexError(f"`indices` must be an integer array, got {indices.dtype}")


def limited(indices: Any, extent: int, mode: str) -> Any:
    """Indices by their mode; those of "raise" are left to what is indexed by them.

    Raises:
        ValueError: the mode is unknown.
    """
    if mode == "wrap":
        return remainder(indices, extent)
    if mode == "clip":
        return clip(indices, 0, max(extent - 1, 0))
    if mode != "raise":
        raise ValueError(f'mode must be "raise", "wrap" or "clip", got {mode!r}')
    return indices


def checked(numbers: Any, extent: int, mode: str, what: str) -> Any:
    """Numbers from 0 to an extent by their mode; traced ones of "raise" are limited as by "clip".

    Raises:
        ValueError: the mode is unknown, or a static number is out of range. Messages name `what`.
    """
    if mode == "raise" and isinstance(numbers, Tracer):
        require_in_range({0: numbers}, (extent,), "numbers are limited to it", from_end=False)
    elif mode == "raise":
        known = np.asarray(numbers)
        if np.any((known < 0) | (known >= extent)):
            raise ValueError(f"invalid entry in {what}: numbers must be 0 to {extent - 1}")
    return limited(numbers, extent, "clip" if mode == "raise" else mode)
