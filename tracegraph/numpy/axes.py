"""Functions that reorder axes; the results are views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.shapes import Shape

__all__ = ["matrix_transpose", "moveaxis", "permute_dims", "rollaxis", "swapaxes", "transpose"]

_TRANSPOSE = get("transpose")


@numpy_function
def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order: axis k of the result is axis `axes[k]`; reversed by default.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: an axis is missing or named twice.

    >>> tnp.transpose([[1, 2, 3], [4, 5, 6]])
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    order = range(a.ndim)[::-1] if axes is None else normalize_axis_tuple(axes, a.ndim)
    if len(order) != a.ndim:
        raise ValueError(f"axes {axes} must name each of the {a.ndim} axes once")
    return a if tuple(order) == tuple(range(a.ndim)) else apply(_TRANSPOSE, a, axes=tuple(order))


def permute_dims(a: Any, /, axes: Sequence[int] | None = None) -> Any:
    """The same as `transpose`.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: an axis is missing or named twice.

    >>> tnp.permute_dims([[1, 2, 3], [4, 5, 6]], (1, 0))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped.

    Shape: (…, n, m) of (…, m, n).
    Dtype: that of `x`.

    Raises:
        ValueError: there are fewer than two axes.

    >>> tnp.matrix_transpose([[1, 2, 3], [4, 5, 6]])
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    if np.ndim(x) < 2:
        raise ValueError(f"matrix_transpose needs at least two axes, got shape {np.shape(x)}")
    return swapaxes(x, -1, -2)


@numpy_function
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes swapped.

    Shape: the two extents swapped.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.swapaxes([[1, 2, 3], [4, 5, 6]], 0, 1)
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    i, j = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


@numpy_function
def moveaxis(a: Any, source: Shape, destination: Shape) -> Any:
    """Axes moved to other positions; the others keep their order.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: the numbers of positions differ, or an axis is named twice.

    >>> tnp.moveaxis([[1, 2, 3], [4, 5, 6]], 0, -1)
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    from_ = normalize_axis_tuple(source, a.ndim, "source")
    to = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(from_) != len(to):
        raise ValueError(f"source {source} and destination {destination} must have equal lengths")
    order = [axis for axis in range(a.ndim) if axis not in from_]
    for position, axis in sorted(zip(to, from_, strict=True)):
        order.insert(position, axis)
    return transpose(a, order)


@numpy_function
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An axis moved to before `start`.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.rollaxis(np.array([[1, 2, 3], [4, 5, 6]]), 1)
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    axis = normalize_axis_index(axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise np.exceptions.AxisError(
            f"start of numpy.rollaxis must be -{a.ndim} to {a.ndim}, got {start}"
        )
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)
