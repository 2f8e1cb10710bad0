"""Differences of neighbours, and integration, along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.ufuncs import add, divide, multiply, not_equal, subtract

_OMITTED: Any = object()


@numpy_function
def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = _OMITTED, append: Any = _OMITTED
) -> Any:
    """Differences of neighbours along an axis, n times.

    Shape: that of `a`, the extent of the axis less by `n`.
    Dtype: that of `a`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: `n` is negative, or there are no axes.

    >>> tnp.diff([1, 4, 9])
    array([3, 5])
    """
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    a = as_array(a)
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, a.ndim)
    ends = [_end(e, a.shape, axis) for e in (prepend, append)]
    if prepend is not _OMITTED or append is not _OMITTED:
        a = concatenate([part for part in (ends[0], a, ends[1]) if part is not None], axis)
    before = (slice(None),) * axis
    combine = not_equal if a.dtype == np.bool_ else subtract
    for _ in range(n):
        a = combine(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


def _end(part: Any, shape: tuple[int, ...], axis: int) -> Any:
    if part is _OMITTED:
        return None
    part = as_array(part)
    if part.ndim:
        return part
    return broadcast_to(part, (*shape[:axis], 1, *shape[axis + 1 :]))


@numpy_function
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule.

    Shape: that of `y` without the axis.
    Dtype: floating point or complex; integers become float64.

    Raises:
        AxisError: the axis is out of range.
        ValueError: the shapes do not broadcast.

    >>> tnp.trapezoid([1.0, 3.0], dx=2.0)
    np.float64(4.0)
    """
    y = as_array(y)
    axis = normalize_axis_index(axis, y.ndim)
    widths = dx
    if x is not None:
        x = as_array(x)
        widths = diff(x, axis=-1 if x.ndim == 1 else axis)
        if x.ndim == 1:
            widths = reshape(widths, (-1,) + (1,) * (y.ndim - axis - 1))
    before = (slice(None),) * axis
    ends = add(y[(*before, slice(1, None))], y[(*before, slice(None, -1))])
    return sum(divide(multiply(widths, ends), 2.0), axis)
