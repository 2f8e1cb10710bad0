"""Functions that cut arrays into parts, which are views."""

from __future__ import annotations

from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.statics import Static
from tracegraph.numpy.shapes import Shape

__all__ = ["array_split", "dsplit", "hsplit", "split", "unstack", "vsplit"]


@numpy_function
def split(ary: Any, indices_or_sections: Shape, axis: int = 0) -> list[Any]:
    """Consecutive parts along an axis, equal ones or cut at indices; views.

    Shape: that of `ary` but for the axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally, or the number of parts is not positive.
        IndexError: the axis is out of range.

    >>> tnp.split(np.arange(4), 2)
    [array([0, 1]), array([2, 3])]
    """
    ary = as_array(ary)
    if _is_number(indices_or_sections) and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            f"array split does not result in an equal division: axis {axis} of shape {ary.shape} "
            f"by {indices_or_sections}; use array_split"
        )
    return array_split(ary, indices_or_sections, axis)


@numpy_function
def array_split(ary: Any, indices_or_sections: Static, axis: int = 0) -> list[Any]:
    """Consecutive parts along an axis, nearly equal ones or cut at indices; views.

    Shape: that of `ary` but for the axis.
    Dtype: that of `ary`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: the number of parts is not positive.

    >>> tnp.array_split(np.arange(5), 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    ary = as_array(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    extent = ary.shape[axis]
    if _is_number(indices_or_sections):
        count = int(indices_or_sections)  # a float is cut off, as in NumPy
        if count <= 0:
            raise ValueError(f"the number of parts must be larger than 0, got {count}")
        each, more = divmod(extent, count)
        sizes = [each + 1] * more + [each] * (count - more)
        cuts = [0, *np.cumsum(sizes).tolist()]
    else:
        cuts = [0, *map(index, indices_or_sections), extent]
    before = (slice(None),) * axis
    return [ary[(*before, slice(start, stop))] for start, stop in pairwise(cuts)]


def _is_number(indices_or_sections: Any) -> bool:
    """Whether it is a number of parts, of Python's or NumPy's, not the indices of cuts."""
    return np.ndim(indices_or_sections) == 0


def _require_axes(name: str, ary: Any, count: int) -> None:
    if np.ndim(ary) < count:
        raise ValueError(
            f"{name} only works on arrays of {count} or more dimensions, got shape {np.shape(ary)}"
        )


@numpy_function
def hsplit(ary: Any, indices_or_sections: Shape) -> list[Any]:
    """Parts along the second axis, or the first of a one-dimensional array.

    Shape: that of `ary` but for one axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally, or there are no axes.

    >>> tnp.hsplit(np.arange(4), [1, 3])
    [array([0]), array([1, 2]), array([3])]
    """
    _require_axes("hsplit", ary, 1)
    return split(ary, indices_or_sections, 1 if np.ndim(ary) > 1 else 0)


@numpy_function
def vsplit(ary: Any, indices_or_sections: Shape) -> list[Any]:
    """Parts along the first axis.

    Shape: that of `ary` but for the first axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally, or there are fewer than 2 axes.

    >>> tnp.vsplit(np.array([[1, 2], [3, 4]]), 2)
    [array([[1, 2]]), array([[3, 4]])]
    """
    _require_axes("vsplit", ary, 2)
    return split(ary, indices_or_sections, 0)


@numpy_function
def dsplit(ary: Any, indices_or_sections: Shape) -> list[Any]:
    """Parts along the third axis.

    Shape: that of `ary` but for the third axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally, or there are fewer than 3 axes.

    >>> tnp.dsplit(np.zeros((1, 1, 2)), 2)
    [array([[[0.]]]), array([[[0.]]])]
    """
    _require_axes("dsplit", ary, 3)
    return split(ary, indices_or_sections, 2)


@numpy_function
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis.

    Shape: that of `x` without the axis.
    Dtype: that of `x`.

    Raises:
        AxisError: the axis is out of range.

    >>> tnp.unstack(np.array([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    return tuple(moveaxis(x, axis, 0))
