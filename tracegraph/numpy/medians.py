"""Medians: the middle of sorted rows."""

from __future__ import annotations

from typing import Any

from tracegraph.numpy.dispatching.dispatch import as_array, lifted, numpy_function
from tracegraph.numpy.dispatching.docstrings import AVERAGED, reduction
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.joining import stack
from tracegraph.numpy.nan_reductions import nanmean
from tracegraph.numpy.reductions import Axis, kept, reduced_axes
from tracegraph.numpy.selecting import take_along_axis
from tracegraph.numpy.sorted_rows import along_last, at_places, nan_where_last_is, numbers_in
from tracegraph.numpy.sorting import sort
from tracegraph.numpy.statistics import mean
from tracegraph.numpy.ufuncs import equal, floor_divide, maximum, subtract

__all__ = ["median", "nanmedian"]


@numpy_function
@reduction(AVERAGED, "[[1, 4], [3, 2], [5, 6]], axis=0", "array([3., 4.])")
def median(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """Medians over axes: the middle of the sorted elements, or the mean of two; NaN if one is."""
    a = as_array(a)
    axes = reduced_axes(a, axis)
    rows = lifted(along_last(a, axes))
    count = rows.shape[-1]
    places = max(count - 1, 0) // 2, count // 2, count - 1
    rows, (first, last, _) = at_places(rows, places)
    found = mean(rows[..., first : last + 1], -1)
    if rows.dtype.kind not in "biu" and count:
        found = nan_where_last_is(rows, found)
    return stored("median", kept(found, a.shape, axes, keepdims), out)


@numpy_function
@reduction(AVERAGED, "[[1, tnp.nan], [3, 2], [5, 6]], axis=0", "array([3., 4.])")
def nanmedian(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """Medians over axes of the elements that are not NaN; NaN if there are none."""
    a = as_array(a)
    if a.dtype.kind in "biu":
        return median(a, axis, out, overwrite_input, keepdims)
    if a.size == 0:
        return nanmean(a, axis, out=out, keepdims=keepdims)
    axes = reduced_axes(a, axis)
    rows = sort(along_last(a, axes))
    count = numbers_in(rows)
    low, high = floor_divide(maximum(subtract(count, 1), 0), 2), floor_divide(count, 2)
    both = take_along_axis(rows, stack([low, high], -1), -1)
    found = where(equal(low, high), both[..., 0], mean(both, -1))
    return stored("nanmedian", kept(found, a.shape, axes, keepdims), out)
