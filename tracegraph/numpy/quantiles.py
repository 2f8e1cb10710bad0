"""Quantiles: elements of sorted rows, or values between two of them.

They are NumPy's formulas, so that results agree to the last bit on the host. A quantile is at a
virtual index of a sorted row; a value between two elements is interpolated from the closer one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    is_python_number,
    lifted,
    unchecked,
)
from tracegraph.numpy.dispatching.families import numpy_family
from tracegraph.numpy.dispatching.output import written
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.nan_reductions import nanmean
from tracegraph.numpy.quantile_methods import METHODS, QuantileMethod
from tracegraph.numpy.reductions import Axis, cumsum, reduced_axes, sum
from tracegraph.numpy.selecting import take_along_axis
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.sorted_rows import (
    along_last,
    as_index,
    at_places,
    elements_of,
    nan_where_last_is,
    numbers_in,
)
from tracegraph.numpy.sorting import argsort, sort
from tracegraph.numpy.ufuncs import (
    add,
    divide,
    equal,
    floor,
    greater_equal,
    isnan,
    less,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    subtract,
)
from tracegraph.tracing.tracer import Tracer

__all__ = ["nanpercentile", "nanquantile", "percentile", "quantile"]


@numpy_family
def _quantiles(  # noqa: D417 - the name is not a parameter of the functions
    name: str,
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """{summary}

    Args:
        a: real numbers.
        q: one or several {noun}, {range_}.
        axis: the axes of `a`; all by default.
        out: as in NumPy.
        overwrite_input: changes nothing.
        method: how to interpolate, as NumPy has it.
        keepdims: keep the axes, with extent 1.
        weights: of the elements, for the method "inverted_cdf". Their sum must not be zero.

    Shape: that of `q`, then that of `a` without the axes.
    Dtype: float64 for integers, else that of `a`, and of an array `q`. Methods that choose
    elements keep that of `a`.

    Raises:
        TypeError: `a` is complex, or weights of another shape have no axis.
        ValueError: a static `q` is out of range, the method is unknown, or weights do not fit.
        IndexError: there are no elements along the axes.
        AxisError: an axis is out of range.

    >>> tnp.{name}({call})
    {result}
    """
    a = as_array(a)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    skip_nans, weak = name.startswith("nan"), is_python_number(q)
    q = as_array(q)
    if name.endswith("percentile"):
        q = divide(q, 100)
    if q.ndim > 2:
        raise ValueError("q must be a scalar or 1d")
    _check_range(name, q)
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"{method!r} is not a valid method. Use one of: {known}")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    axes = reduced_axes(a, axis)
    if skip_nans and a.size == 0:
        return nanmean(a, axis, out=out, keepdims=keepdims)
    rows = along_last(a, axes)
    if rows.shape[-1] == 0:
        raise IndexError(f"{name} needs elements along its axes, got shape {a.shape}")
    skip_nans = skip_nans and a.dtype.kind not in "biu"
    if weights is None:
        quantiles = _of_rows(rows, q, METHODS[method], method == "linear", weak, skip_nans)
    else:
        weights = along_last(_fitted(weights, a, axis, axes), axes)
        quantiles = _weighted(rows, weights, q, skip_nans)
    if keepdims:
        shape = tuple([1 if k in axes else n for k, n in enumerate(a.shape)])
        quantiles = reshape(quantiles, (*q.shape, *shape))
    return written(name, quantiles, out, True)


def _check_range(name: str, q: Any) -> None:
    if isinstance(q, Tracer) or q.size == 0:
        return
    known = np.asarray(q)
    if not (known.min() >= 0 and known.max() <= 1):
        range_ = "Percentiles must be in the range [0, 100]"
        quantiles = "Quantiles must be in the range [0, 1]"
        raise ValueError(range_ if name.endswith("percentile") else quantiles)


def _of_rows(
    rows: Any, q: Any, method: QuantileMethod, is_linear: bool, weak: bool, skip_nans: bool
) -> Any:
    """Quantiles of rows: the axes of `q`, then those of the rows."""
    space = rows.shape[:-1]
    aligned: Any = (1,) * len(space)
    count: Any = rows.shape[-1]
    if skip_nans:
        rows = sort(rows)
        count = numbers_in(rows)
        q = reshape(q, (*q.shape, *aligned))
        aligned = ()
        if q.dtype.kind in "fV":
            count = as_array(count, q.dtype)
    virtual = as_array(method.virtual(count, q))
    if method.gamma is None or (is_linear and virtual.dtype.kind in "iu"):
        rows, (virtual,) = _in_order(rows, [virtual], skip_nans)
        found = elements_of(rows, virtual, count, skip_nans)
    else:
        above = greater_equal(virtual, count - 1)
        if virtual.dtype.kind in "fV":
            above = logical_or(above, isnan(virtual))
        before = floor(virtual)
        outside = where(above, -1, 0)
        inside = logical_not(logical_or(above, less(virtual, 0)))
        low = as_index(where(inside, before, outside))
        high = as_index(where(inside, add(before, 1), outside))
        gamma = as_array(method.gamma(subtract(virtual, low), virtual))
        gamma = reshape(unchecked(gamma, virtual.dtype), (*virtual.shape, *aligned))
        rows, (low, high) = _in_order(rows, [low, high], skip_nans)
        one = elements_of(rows, low, count, skip_nans)
        other = elements_of(rows, high, count, skip_nans)
        found = _interpolated(one, other, gamma, weak)
    if rows.dtype.kind not in "biu" and not skip_nans:
        found = nan_where_last_is(rows, found)
    return found


def _in_order(rows: Any, indices: list[Any], are_sorted: bool) -> tuple[Any, list[Any]]:
    """Rows in order, unless they are, and indices of the same elements there.

    Where the indices are known, those elements are all there is, and the last one.
    """
    if are_sorted:
        return rows, indices
    if any(isinstance(each, Tracer) for each in (indices)):
        return sort(rows), indices
    known = [np.asarray(each) for each in indices]
    places = [int(place) for each in known for place in each.ravel()]
    rows, moved = at_places(lifted(rows), [*places, -1])
    flat = np.asarray(moved[:-1], np.int64)
    parts = np.split(flat, np.cumsum([each.size for each in known])[:-1])
    return rows, [part.reshape(each.shape) for part, each in zip(parts, known, strict=True)]


def _interpolated(a: Any, b: Any, t: Any, weak: bool) -> Any:
    """The value at `t` from a to b. A weak `t` does not decide on the dtype."""
    rest, from_b = subtract(1, t), greater_equal(t, 0.5)
    if weak:
        dtype = np.dtype(np.float64) if a.dtype.kind in "biu" else a.dtype
        t, rest = as_array(t, dtype), as_array(rest, dtype)
    distance = subtract(b, a)
    up = add(a, multiply(distance, t))
    return where(from_b, subtract(b, multiply(distance, rest)), up)


def _fitted(weights: Any, a: Any, axis: Axis, axes: tuple[int, ...]) -> Any:
    """Weights of the shape of `a`, given in that shape, or in its shape along the axes."""
    weights = as_array(weights)
    if not isinstance(weights, Tracer) and np.any(np.asarray(weights) < 0):
        raise ValueError("Weights must be non-negative.")
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    order = [k % a.ndim for k in given]
    if weights.shape != tuple(a.shape[k] for k in order):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    turned = lifted(weights).transpose(tuple(int(k) for k in np.argsort(order)))
    shape = tuple([n if k in axes else 1 for k, n in enumerate(a.shape)])
    return broadcast_to(reshape(turned, shape), a.shape)


def _weighted(rows: Any, weights: Any, q: Any, skip_nans: bool) -> Any:
    """Elements at which the running sum of weights, as part of their sum, reaches `q`."""
    order = argsort(rows)
    weights, ordered = take_along_axis(weights, order, -1), take_along_axis(rows, order, -1)
    is_nan = isnan(ordered) if rows.dtype.kind in "fV" else None
    last: Any = rows.shape[-1] - 1
    if skip_nans:
        weights = where(is_nan, weights.dtype.type(0), weights)
        last = maximum(subtract(numbers_in(ordered), 1), 0)[..., None]
    running = cumsum(weights, -1, np.float64)
    reached = divide(running, running[..., -1:])
    if q.dtype.kind in "fV":
        reached = as_array(reached, q.dtype)
    reached = where(equal(reached, 0), -1, reached)  # what has no weight is not found
    before = less(reached[..., None, :], reshape(q, (-1, 1)))
    found = take_along_axis(ordered, minimum(sum(before, -1), last), -1)
    found = reshape(moveaxis(found, -1, 0), (*q.shape, *rows.shape[:-1]))
    return found if is_nan is None or skip_nans else nan_where_last_is(ordered, found)


_QUANTILES = {"noun": "quantiles", "range_": "from 0 to 1"}
_PERCENTILES = {"noun": "percentiles", "range_": "from 0 to 100"}

quantile = _quantiles(
    "quantile",
    summary="Quantiles over axes; NaN if an element is.",
    call="[1.0, 2.0, 4.0], [0.5, 0.75]",
    result="array([2., 3.])",
    **_QUANTILES,
)
percentile = _quantiles(
    "percentile",
    summary="Percentiles over axes; NaN if an element is.",
    call="[1.0, 2.0, 4.0], [50, 75]",
    result="array([2., 3.])",
    **_PERCENTILES,
)
nanquantile = _quantiles(
    "nanquantile",
    summary="Quantiles over axes of the elements that are not NaN; NaN if there are none.",
    call="[1.0, tnp.nan, 2.0, 4.0], [0.5, 1]",
    result="array([2., 4.])",
    **_QUANTILES,
)
nanpercentile = _quantiles(
    "nanpercentile",
    summary="Percentiles over axes of the elements that are not NaN; NaN if there are none.",
    call="[1.0, tnp.nan, 3.0], [50]",
    result="array([2.])",
    **_PERCENTILES,
)
