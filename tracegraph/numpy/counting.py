"""Counts of integers."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.errors import ShapeDependentError
from tracegraph.ir.op import get
from tracegraph.numpy.creation import full, ones_like
from tracegraph.numpy.dispatching.dispatch import as_array, lifted, sized_function
from tracegraph.tracing.tracer import Tracer

__all__ = ["bincount"]


@sized_function
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """How often each integer from 0 on is in `x`, or the sum of the weights that belong to it.

    While tracing, the result has `length` elements, by default `minlength`, and integers outside of
    it, negative ones included, are not counted. NumPy makes the result as long as needed.

    Shape: one axis, `length` long.
    Dtype: int64; float64 with weights of some elements.

    Raises:
        ShapeDependentError: `x` is traced, and there is neither `length` nor `minlength`.
        TypeError: `x` does not hold integers, or the weights do not convert to float64.
        ValueError: `x` has not one axis, the weights another shape, or a length is negative.

    >>> tnp.bincount([0, 2, 2])
    array([1, 0, 2])
    >>> tnp.bincount([0, 2, 2, 9], length=4)
    array([1, 0, 2, 0])
    """
    x = as_array(x)
    _check(x, weights)
    count = index(minlength if length is None else length)
    if count < 0 or index(minlength) < 0:
        raise ValueError("bincount: 'minlength' and 'length' must not be negative")
    if length is None and isinstance(x, Tracer) and count == 0 and x.size:
        call = "tracegraph.numpy.bincount(x, length=n)"
        raise ShapeDependentError(x, "numpy.bincount without minlength", call)
    if length is None and not isinstance(x, Tracer):
        known = np.asarray(x).astype(np.int64)
        if np.any(known < 0):
            raise ValueError("bincount: 'x' must have no negative elements")
        count = max(count, int(known.max(initial=-1)) + 1)
    bins = as_array(x, np.int64)
    if weights is None or not x.size:
        total, added = full(count, np.int64(0)), ones_like(bins)
    else:
        total, added = full(count, np.float64(0)), as_array(weights, np.float64)
    # a scatter counts negative positions from the end, and drops those beyond it
    places = apply(get("where"), bins < 0, np.int64(count), bins)
    spread = {"dims": (0,), "starts": (), "steps": ()}
    return apply(get("scatter_add"), total, lifted(added), places, **spread)


def _check(x: Any, weights: Any) -> None:
    if x.ndim != 1:
        raise ValueError(f"bincount needs an array with one axis, got shape {x.shape}")
    if x.dtype.kind not in "biu":
        raise TypeError(f"bincount needs integers, got {x.dtype}")
    if weights is None:
        return
    weights = as_array(weights)
    if weights.shape != x.shape:
        raise ValueError(
            f"bincount: the weights of shape {weights.shape} and x of shape {x.shape} must have "
            "the same length"
        )
    if weights.dtype.kind == "c":
        raise TypeError(f"bincount: weights of {weights.dtype} do not convert to float64")
