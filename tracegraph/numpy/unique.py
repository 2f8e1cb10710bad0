"""Distinct elements. How many there are depends on the elements.

So while tracing a static `size` says how many the result has room for, as in JAX; without one,
elements must be known. Sorted elements have runs of equal ones: of each run, the first element is
taken.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph import errors
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.creation import full, zeros
from tracegraph.numpy.dispatching.dispatch import as_array, lifted, sized_function
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.finding import flatnonzero
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import all, cumsum
from tracegraph.numpy.selecting import take
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.sorting import argsort, lexsort
from tracegraph.numpy.ufuncs import (
    equal,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    subtract,
)
from tracegraph.tracing.tracer import Tracer

__all__ = ["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


@sized_function
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements in ascending order, or slices along an axis.

    Args:
        ar: an array.
        return_index: also return the first position of each.
        return_inverse: also return, for each element, its place among the distinct ones.
        return_counts: also return how often each occurs.
        axis: compare slices along this axis, in the order of their elements.
        equal_nan: whether NaNs are equal, without an axis.
        sorted: changes nothing, they are.
        size: how many to return; needed while tracing.
        fill_value: what follows the last one; by default the first one, at its position. The
            count is 0.

    Shape: one axis, or that of `ar` with `size` along the axis; that of `ar` of places.
    Dtype: that of `ar`; int64 of positions, places and counts.

    Raises:
        ShapeDependentError: `ar` is traced, and there is no `size`.
        ValueError: `size` is negative.
        AxisError: the axis is out of range.

    >>> tnp.unique([2, 1, 2])
    array([1, 2])
    >>> tnp.unique(np.array([2, 1, 2]), size=3, fill_value=0)
    array([1, 2, 0])
    """
    ar = as_array(ar)
    wanted = (return_index, return_inverse, return_counts)
    if size is None:
        return by_numpy("unique", (ar,), *wanted, axis, equal_nan=equal_nan)
    found = _distinct(ar, axis, equal_nan, _size(size), fill_value)
    chosen = [found[0], *[x for x, flag in zip(found[1:], wanted, strict=True) if flag]]
    return tuple(chosen) if len(chosen) > 1 else chosen[0]


def _size(size: Any) -> int:
    known = index(size)
    if known < 0:
        raise ValueError(f"size must not be negative, got {known}")
    return known


def by_numpy(name: str, arrays: tuple[Any, ...], *args: Any, **options: Any) -> Any:
    """What NumPy's function gives for arrays that are known, as Arrays where one of them is.

    Raises:
        ShapeDependentError: an array is traced.
    """
    for array in arrays:
        if isinstance(array, Tracer):
            rest = ", y" if len(arrays) > 1 else ""
            call = f"tracegraph.numpy.{name}(x{rest}, size=n)"
            raise errors.ShapeDependentError(array, f"numpy.{name}", call)
    result = getattr(np, name)(*map(np.asarray, arrays), *args, **options)
    device = next((x.device for x in arrays if type(x) is Array), None)
    if device is None:
        return result
    if isinstance(result, np.ndarray):
        return asarray(result, device=device).local()
    placed = [asarray(x, device=device).local() for x in result]
    return tuple(placed) if type(result) is tuple else type(result)(*placed)


def _distinct(
    x: Any, axis: int | None, equal_nan: bool, size: int, fill: Any
) -> tuple[Any, Any, Any, Any]:
    """Distinct elements or slices, first positions, the place of each element, and counts."""
    x = lifted(x)
    axis = None if axis is None else normalize_axis_index(axis, x.ndim)
    slices = reshape(x, (-1,)) if axis is None else moveaxis(x, axis, 0)
    places_shape = x.shape if axis is None else slices.shape[:1]
    count = slices.shape[0]
    if count == 0:
        value = as_array(0 if fill is None else fill, x.dtype)
        nothing = zeros(size, np.int64)
        values = broadcast_to(lifted(value), (size, *slices.shape[1:]))
        return _back(values, axis), nothing, zeros(places_shape, np.int64), nothing
    order, is_start = runs(slices, equal_nan)
    starts = flatnonzero(is_start, size=size + 1, fill_value=count)
    first, exists = starts[:-1], less(starts[:-1], count)
    at = take(order, where(exists, first, 0))
    values = take(slices, at, 0)
    if fill is not None:
        mask = reshape(exists, (-1,) + (1,) * (values.ndim - 1))
        values = where(mask, values, as_array(fill, x.dtype))
    counts = where(exists, subtract(starts[1:], first), 0)
    rank = subtract(cumsum(is_start), 1)
    # each place is written once
    spread = {"dims": (0,), "starts": (), "steps": ()}
    places = apply(get("scatter_add"), full(count, np.int64(0)), rank, order, **spread)
    return _back(values, axis), at, reshape(places, places_shape), counts


def _back(slices: Any, axis: int | None) -> Any:
    return slices if axis is None else moveaxis(slices, 0, axis)


def runs(slices: Any, equal_nan: bool, split: int = 0) -> tuple[Any, Any]:
    """The order of elements, or slices of the first axis, and where runs of equal ones start.

    NaNs are equal if they stand on the same side of position `split`.
    """
    count = slices.shape[0]
    if slices.ndim == 1:
        order = argsort(slices)
        ordered = take(slices, order)
        same = equal(ordered[1:], ordered[:-1])
        if equal_nan and slices.dtype.kind not in "biu":
            one, other = order[1:], order[:-1]
            alike = equal(less(one, split), less(other, split))
            nans = logical_and(isnan(ordered[1:]), isnan(ordered[:-1]))
            same = logical_or(same, logical_and(nans, alike))
    else:
        rows = reshape(slices, (count, -1))
        columns = [rows[:, k] for k in reversed(range(rows.shape[1]))]
        order = lexsort(columns) if columns else as_array(np.arange(count))
        ordered = take(rows, order, 0)
        same = all(equal(ordered[1:], ordered[:-1]), 1)
    return order, concatenate([np.ones(1, np.bool_), logical_not(same)])


def _of_standard(name: str, x: Any, size: int | None, fill: Any, *chosen: int) -> Any:
    """What a function of the array API gives: these of the results, where NaNs differ."""
    x = as_array(x)
    if size is None:
        return by_numpy(name, (x,))
    found = _distinct(x, None, False, _size(size), fill)
    if len(chosen) == 1:
        return found[chosen[0]]
    kind = type(getattr(np, name)(np.zeros(1)))
    return kind(*[found[k] for k in chosen])


@sized_function
def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements in ascending order, their first positions, places, and counts.

    While tracing, `size` is needed, as of `unique`. NaNs are distinct.

    Shape: one axis of each result; that of `x` of the places, `inverse_indices`.
    Dtype: that of `x`; int64 of positions, places and counts.

    Raises:
        ShapeDependentError: `x` is traced, and there is no `size`.

    >>> tnp.unique_all([2, 1, 2]).indices
    array([1, 0])
    """
    return _of_standard("unique_all", x, size, fill_value, 0, 1, 2, 3)


@sized_function
def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements in ascending order, and how often each occurs.

    While tracing, `size` is needed, as of `unique`. NaNs are distinct.

    Shape: one axis.
    Dtype: that of `x`; int64 of counts.

    Raises:
        ShapeDependentError: `x` is traced, and there is no `size`.

    >>> tnp.unique_counts([2, 1, 2]).counts
    array([1, 2])
    """
    return _of_standard("unique_counts", x, size, fill_value, 0, 3)


@sized_function
def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements in ascending order, and for each element its place among them.

    While tracing, `size` is needed, as of `unique`. NaNs are distinct.

    Shape: one axis; that of `x` of the places, `inverse_indices`.
    Dtype: that of `x`; int64 of places.

    Raises:
        ShapeDependentError: `x` is traced, and there is no `size`.

    >>> tnp.unique_inverse([2, 1, 2]).inverse_indices
    array([1, 0, 1])
    """
    return _of_standard("unique_inverse", x, size, fill_value, 0, 2)


@sized_function
def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements.

    While tracing, `size` is needed, as of `unique`. NaNs are distinct.

    Shape: one axis.
    Dtype: that of `x`.

    Raises:
        ShapeDependentError: `x` is traced, and there is no `size`.

    >>> np.sort(tnp.unique_values([2, 1, 2]))
    array([1, 2])
    """
    return _of_standard("unique_values", x, size, fill_value, 0)
