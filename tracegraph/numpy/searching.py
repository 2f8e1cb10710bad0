"""Binary search: positions in sorted arrays, bins of elements, and membership."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.creation import zeros
from tracegraph.numpy.dispatching.dispatch import as_array, is_python_number, lifted, numpy_function
from tracegraph.numpy.elementwise import imag, real, where
from tracegraph.numpy.flips import flip
from tracegraph.numpy.reductions import any, argmax
from tracegraph.numpy.selecting import take
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.sorting import sort
from tracegraph.numpy.ufuncs import (
    add,
    equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    minimum,
    not_equal,
    subtract,
)
from tracegraph.tracing.tracer import Tracer

__all__ = ["digitize", "isin", "searchsorted"]

Side = Literal["left", "right"]

_COMPARED = 32
"""Test elements up to which each element is compared with all, in the kernel that uses the result;
more are sorted. Sorts compare up to the same length (`lowering.plan.sort`)."""


@numpy_function
def searchsorted(a: Any, v: Any, side: Side = "left", sorter: Any = None) -> Any:
    """Where the elements of `v` would have to be inserted to keep the vector `a` in order.

    That is the number of elements of `a` that are less, or with "right" less or equal. NaN is
    greater than all numbers. With `sorter`, `a[sorter]` is in order.

    Shape: that of `v`.
    Dtype: int64.

    Raises:
        ValueError: `a` has not one axis, `side` is unknown, the sorter has another shape than `a`,
            or a static element of it is out of range.
        TypeError: the sorter is not a vector of integers.

    >>> tnp.searchsorted([1, 3, 5], [0, 3, 9])
    array([0, 1, 3])
    """
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    a, v = as_array(a), v if is_python_number(v) else as_array(v)
    dtype = result_type(type_of(a), type_of(v))
    a, v = as_array(a, dtype), as_array(v, dtype)
    if a.ndim != 1:
        raise ValueError(f"searchsorted needs a vector to search in, got shape {a.shape}")
    if sorter is not None:
        a = take(a, _checked_sorter(sorter, a.shape))
    return count_before(lifted(a), lifted(v), side)


def _checked_sorter(sorter: Any, shape: tuple[int, ...]) -> Any:
    sorter = as_array(sorter)
    if sorter.dtype.kind not in "iu":
        raise TypeError(f"sorter must only contain integers, got {sorter.dtype}")
    if sorter.ndim != 1:
        raise TypeError(f"sorter must be a vector, got shape {sorter.shape}")
    if sorter.shape != shape:
        raise ValueError(f"sorter.size must equal a.size, got shapes {sorter.shape} and {shape}")
    if not isinstance(sorter, Tracer):
        known = np.asarray(sorter)
        if known.size and not 0 <= known.min() <= known.max() < known.size:
            raise ValueError(f"Sorter index out of range 0 to {known.size - 1}.")
    return sorter


def count_before(points: Any, x: Any, side: Side) -> Any:
    """How many of the points in order are less than x, or with "right" not greater than it.

    A binary search without branches: for each bit of the count, from the highest one, it asks
    whether as many points as that are before x.
    """
    count = points.shape[0]
    found = broadcast_to(as_array(0), x.shape)
    is_before = (_before_complex if x.dtype.kind == "c" else _before)(x, side)
    for bit in reversed(range(count.bit_length())):
        further = add(found, 1 << bit)
        point = take(points, subtract(minimum(further, count), 1))
        reached = logical_and(less_equal(further, count), is_before(point))
        found = where(reached, further, found)
    return found


def _before(x: Any, side: Side) -> Callable[[Any], Any]:
    """Whether a point is before x, in the order of sorting: NaNs are last, and equal."""
    compare = less if side == "left" else less_equal
    if x.dtype.kind in "biu":
        return lambda point: compare(point, x)
    last = isnan(x)
    if side == "right":
        return lambda point: logical_or(less_equal(point, x), last)
    return lambda point: logical_or(less(point, x), logical_and(last, equal(point, point)))


def _before_complex(x: Any, side: Side) -> Callable[[Any], Any]:
    """The same for complex numbers: by their real parts first, and those with a NaN last."""
    last = isnan(x)

    def is_before(point: Any) -> Any:
        tied = logical_and(
            _before(real(x), "right")(real(point)), _before(real(point), "right")(real(x))
        )
        of_parts = logical_or(
            _before(real(x), "left")(real(point)),
            logical_and(tied, _before(imag(x), side)(imag(point))),
        )
        return where(equal(isnan(point), last), of_parts, last)

    return is_before


@numpy_function
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin that each element is in: 0 below the first edge, then 1, and so on.

    Edges increase or decrease. An element that equals an edge is in the bin above, with `right` in
    the one below. Whether traced edges are monotonic is not checked.

    Shape: that of `x`.
    Dtype: int64.

    Raises:
        TypeError: `x` is complex.
        ValueError: the static edges are not monotonic, or have not one axis.

    >>> tnp.digitize([0.5, 2.0, 9.0], [1.0, 2.0, 3.0])
    array([0, 2, 3])
    """
    x, bins = as_array(x), as_array(bins)
    if x.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a vector, got shape {bins.shape}")
    side: Side = "left" if right else "right"
    count = bins.shape[0]
    if not isinstance(bins, Tracer):
        known = np.asarray(bins)
        np.digitize(0.0, known)  # raises where they are not monotonic
        if not _fall(known):
            return searchsorted(bins, x, side)
        return subtract(count, searchsorted(flip(bins), x, side))
    if count < 2:
        return searchsorted(bins, x, side)
    falling = _fall(bins)
    found = searchsorted(where(falling, flip(bins), bins), x, side)
    return where(falling, subtract(count, found), found)


def _fall(bins: Any) -> Any:
    """Whether monotonic edges fall: the first that differs from the first is not greater.

    As NaN is not less than anything, edges that begin with it fall.
    """
    if bins.shape[0] < 2:
        return False
    others = bins[1:]
    differs = not_equal(others, bins[0])
    return logical_and(any(differs), logical_not(less(bins[0], others[argmax(differs)])))


@numpy_function
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    """Whether each element is one of the test elements; with `invert`, whether it is not.

    Test elements are sorted, and searched; a few traced ones are compared one by one.
    `assume_unique` and `kind` choose among NumPy's ways, and change nothing here.

    Shape: that of `element`.
    Dtype: bool.

    Raises:
        ValueError: `kind` is unknown.

    >>> tnp.isin([1, 2, 3], [3, 1])
    array([ True, False,  True])
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: {kind!r}. Please use None, 'sort' or 'table'.")
    element, test_elements = as_array(element), as_array(test_elements)
    dtype = result_type(type_of(element), type_of(test_elements))
    element, values = as_array(element, dtype), reshape(as_array(test_elements, dtype), (-1,))
    if isinstance(values, Tracer) and values.size > _COMPARED:
        found = _is_among(lifted(element), sort(values))
    elif isinstance(values, Tracer):
        found = any(equal(reshape(element, (*element.shape, 1)), values), -1)
    else:
        found = _is_among(lifted(element), np.unique(np.asarray(values)))
    return logical_not(found) if invert else found


def _is_among(x: Any, values: Any) -> Any:
    """Whether each element of x is one of the values, which are in order."""
    if values.size == 0:
        return zeros(x.shape, np.bool_)
    points = lifted(values)
    at = minimum(count_before(points, x, "left"), values.size - 1)
    return equal(take(points, at), x)
