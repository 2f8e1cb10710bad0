"""Piecewise linear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, numpy_function
from tracegraph.numpy.elementwise import imag, real, where
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.searching import count_before
from tracegraph.numpy.selecting import take
from tracegraph.numpy.sorting import argsort
from tracegraph.numpy.ufuncs import (
    absolute,
    add,
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    remainder,
)

__all__ = ["interp"]


@numpy_function
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Values at `x` of the function that is linear between the points `(xp, fp)`.

    `xp` increases, unless a `period` is given. Outside of it the function is `left` and `right`,
    by default the first and the last value. At a point, the derivative is that of the line behind
    it, and from the last point on it is 0.

    Shape: that of `x`.
    Dtype: float64, or complex128 for complex `fp`.

    Raises:
        ValueError: `xp` and `fp` are no vectors of one length, or empty; `period` is zero.
        TypeError: `x` or `xp` is complex.

    >>> tnp.interp([0.5, 9.0], [0.0, 1.0, 2.0], [10.0, 20.0, 40.0])
    array([15., 40.])
    """
    fp = as_array(fp)
    dtype = np.dtype(np.complex128 if fp.dtype.kind == "c" else np.float64)
    x, xp = as_array(x), as_array(xp)
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError("interp: x and xp must be real, got complex numbers")
    x, xp, fp = as_array(x, np.float64), as_array(xp, np.float64), as_array(fp, dtype)
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError(f"interp: xp and fp must be vectors, got {xp.shape} and {fp.shape}")
    if xp.shape != fp.shape:
        raise ValueError(
            f"fp and xp are not of the same length: {fp.shape[0]} and {xp.shape[0]} elements"
        )
    if period is not None:
        if not is_ours((period,)) and period == 0:
            raise ValueError("period must be a non-zero value")
        x, xp, fp = _periodic(x, xp, fp, absolute(as_array(period, np.float64)))
        left = right = None
    if xp.shape[0] == 0:
        raise ValueError("array of sample points is empty")
    ends = (fp[0] if left is None else left, fp[-1] if right is None else right)
    below, above = (as_array(e, dtype) for e in ends)
    if dtype.kind == "c":
        parts = [_interpolated(x, xp, part(fp), part(below), part(above)) for part in (real, imag)]
        return apply(get("complex"), *parts)
    return _interpolated(x, xp, fp, below, above)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """The points within one period, in order, with a neighbour beyond each end."""
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


_SEARCHED_IN_ORDER = 4
"""Knots up to which NumPy compares with one after the other, which NaNs among them show."""


def _last_knot_before(xp: Any, x: Any) -> Any:
    """The number of the last knot that is not greater than x, at least 0."""
    count = xp.shape[0]
    if count > _SEARCHED_IN_ORDER:
        return maximum(add(count_before(xp, x, "right"), -1), 0)
    found: Any = 0
    reached: Any = True
    for k in range(1, count):
        reached = logical_and(reached, greater_equal(x, xp[k]))
        found = where(reached, k, found)
    return found


def _interpolated(x: Any, xp: Any, fp: Any, below: Any, above: Any) -> Any:
    count = xp.shape[0]
    here = _last_knot_before(xp, x)
    there = minimum(add(here, 1), count - 1)
    x0, x1, y0, y1 = take(xp, here), take(xp, there), take(fp, here), take(fp, there)
    is_last = equal(here, count - 1)
    is_below = less(x, xp[0])
    is_between = logical_not(logical_or(is_below, is_last))
    slope = (y1 - y0) / where(equal(here, there), 1, x1 - x0)
    value = slope * where(is_between, x - x0, 0) + y0
    from_right = slope * where(is_between, x - x1, 0) + y1
    flat = where(logical_and(isnan(from_right), equal(y0, y1)), y0, from_right)
    value = where(isnan(value), flat, value)
    at_knot = logical_and(equal(x, x0), logical_not(isfinite(value)))
    value = where(logical_or(at_knot, is_last), y0, value)
    value = where(is_below, below, value)
    value = where(greater(x, xp[-1]), above, value)
    return where(isnan(x), x, value) if count > 1 else value
