"""Vectors as sets: what is in both of two, in either, or in one alone, in ascending order.

While tracing, a static `size` says how many elements the result has room for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.dispatching.dispatch import as_array, lifted, sized_function
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.finding import extract, flatnonzero
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import argmax, cumsum
from tracegraph.numpy.searching import isin
from tracegraph.numpy.selecting import take
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.ufuncs import (
    add,
    greater_equal,
    less,
    logical_and,
    logical_not,
    logical_xor,
    minimum,
    subtract,
)
from tracegraph.numpy.unique import by_numpy, runs, unique

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d"]


@sized_function
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements of two arrays, in ascending order.

    With `size`, the first ones, and after them `fill_value`, by default the first one.

    Shape: one axis.
    Dtype: the common one.

    Raises:
        ShapeDependentError: an array is traced, and there is no `size`.
        ValueError: `size` is negative.

    >>> tnp.union1d([3, 1], [2, 3])
    array([1, 2, 3])
    """
    one, other = _vectors(ar1, ar2)
    if size is None:
        return by_numpy("union1d", (one, other))
    return unique(concatenate([one, other]), size=size, fill_value=fill_value)


@sized_function
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements that are in both of two arrays, in ascending order.

    With `return_indices`, also their first positions in each of the ravelled arrays. With `size`,
    the first ones, and after them `fill_value`, by default the first one; positions are those of
    the first one.

    Shape: one axis of each result.
    Dtype: the common one; int64 of positions.

    Raises:
        ShapeDependentError: an array is traced, and there is no `size`.
        ValueError: `size` is negative.

    >>> tnp.intersect1d([3, 1, 2], [2, 3])
    array([2, 3])
    """
    one, other = _vectors(ar1, ar2)
    if size is None:
        return by_numpy("intersect1d", (one, other), assume_unique, return_indices)
    both = _Merged.of(one, other)
    values, chosen = both.where(logical_and, size, fill_value)
    if not return_indices:
        return values
    if both.order.shape[0] == 0:
        return values, chosen, chosen
    first = take(both.order, take(both.starts, chosen))
    second = subtract(take(both.order, take(both.seconds, chosen)), one.shape[0])
    return values, minimum(first, max(one.shape[0] - 1, 0)), where(less(second, 0), 0, second)


@sized_function
def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements of `ar1` that are not in `ar2`, in ascending order.

    With `assume_unique`, they are in the order of `ar1`, and not made distinct. With `size`, the
    first ones, and after them `fill_value`, by default the first one, or 0 with `assume_unique`.

    Shape: one axis.
    Dtype: that of `ar1`.

    Raises:
        ShapeDependentError: an array is traced, and there is no `size`.
        ValueError: `size` is negative.

    >>> tnp.setdiff1d([3, 1, 2], [2])
    array([1, 3])
    """
    one, other = (reshape(as_array(x), (-1,)) for x in (ar1, ar2))
    if size is None:
        return by_numpy("setdiff1d", (one, other), assume_unique)
    if assume_unique:
        fill = 0 if fill_value is None else fill_value
        return extract(isin(one, other, invert=True), one, size=size, fill_value=fill)
    merged = _Merged.of(*_vectors(one, other))
    values, _ = merged.where(lambda a, b: logical_and(a, logical_not(b)), size, fill_value)
    return as_array(values, one.dtype)


@sized_function
def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements that are in one of two arrays only, in ascending order.

    With `size`, the first ones, and after them `fill_value`, by default the first one.

    Shape: one axis.
    Dtype: the common one.

    Raises:
        ShapeDependentError: an array is traced, and there is no `size`.
        ValueError: `size` is negative.

    >>> tnp.setxor1d([3, 1, 2], [2, 3])
    array([1])
    """
    one, other = _vectors(ar1, ar2)
    if size is None:
        return by_numpy("setxor1d", (one, other), assume_unique)
    return _Merged.of(one, other).where(logical_xor, size, fill_value)[0]


def _vectors(ar1: Any, ar2: Any) -> tuple[Any, Any]:
    """Both arrays ravelled, of their common dtype."""
    one, other = as_array(ar1), as_array(ar2)
    dtype = result_type(type_of(one), type_of(other))
    return reshape(as_array(one, dtype), (-1,)), reshape(as_array(other, dtype), (-1,))


class _Merged(NamedTuple):
    """Two vectors as one in order.

    Of each run of equal elements, `starts` has where it starts, and `seconds` where its elements of
    the second vector start. There is room for as many runs as there are elements.
    """

    values: Any
    order: Any
    starts: Any
    seconds: Any
    in_first: Any
    in_second: Any

    @classmethod
    def of(cls, one: Any, other: Any) -> _Merged:
        """The merged vectors. A NaN is in one of them only."""
        values, n = lifted(concatenate([one, other])), one.shape[0]
        count = values.shape[0]
        if count == 0:
            nothing = as_array(np.zeros(0, np.int64))
            return cls(values, nothing, nothing, nothing, nothing, nothing)
        order, is_start = runs(values, equal_nan=True, split=n)
        bounds = flatnonzero(is_start, size=count + 1, fill_value=count)
        starts, ends = bounds[:-1], bounds[1:]
        exists = less(starts, count)
        starts = minimum(starts, count - 1)
        of_first = less(order, n)
        before = concatenate([np.zeros(1, np.int64), cumsum(of_first)])
        seconds = minimum(
            add(starts, subtract(take(before, ends), take(before, starts))), count - 1
        )
        last = subtract(ends, 1)
        return cls(
            values,
            order,
            starts,
            seconds,
            logical_and(exists, take(of_first, starts)),
            logical_and(exists, greater_equal(take(order, last), n)),
        )

    def where(self, holds: Callable[[Any, Any], Any], size: int, fill: Any) -> tuple[Any, Any]:
        """The elements of runs for which this holds of being in the first, and in the second
        vector; and the numbers of these runs.
        """
        dtype, count = self.values.dtype, self.order.shape[0]
        if count == 0:
            value = as_array(0 if fill is None else fill, dtype)
            return np.full(size, value, dtype), np.zeros(size, np.int64)
        mask = holds(self.in_first, self.in_second)
        chosen = flatnonzero(mask, size=size, fill_value=count)
        exists = less(chosen, count)
        chosen = where(exists, chosen, argmax(mask))
        values = take(self.values, take(self.order, take(self.starts, chosen)))
        if fill is not None:
            values = where(exists, values, as_array(fill, dtype))
        return values, chosen
