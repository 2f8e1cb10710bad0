"""Reductions that skip NaNs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.numpy.docstrings import AVERAGED, SAME, SQUARED, SUMMED, reduction
from tracegraph.numpy.output import written
from tracegraph.numpy.reductions import Axis, all, cumprod, cumsum, max, min, prod, sum
from tracegraph.numpy.statistics import mean, var
from tracegraph.numpy.ufuncs import isnan, less_equal, logical_not, sqrt


def _without_nans(a: Any, other: float) -> Any:
    a = as_array(a)
    return a if a.dtype.kind in "biu" else apply(get("where"), isnan(a), a.dtype.type(other), a)


def _no_nan(a: Any) -> Any:
    return logical_not(isnan(as_array(a)))


@numpy_function
@reduction(SUMMED, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([1., 7.])")
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Sums over axes, NaNs counting as zero."""
    return sum(_without_nans(a, 0), axis, dtype, out, keepdims)


@numpy_function
@reduction(SUMMED, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([ 1., 12.])")
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Products over axes, NaNs counting as one."""
    return prod(_without_nans(a, 1), axis, dtype, out, keepdims)


@numpy_function
@reduction(AVERAGED, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([1. , 3.5])")
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Means over axes of the elements that are not NaN; NaN if there are none."""
    return mean(a, axis, dtype, out, keepdims, where=_no_nan(a))


@numpy_function
@reduction(SQUARED, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([0.  , 0.25])")
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Any:
    """Variances over axes of the elements that are not NaN; NaN where these are `ddof` or fewer."""
    a = as_array(a)
    if a.dtype.kind in "biu":
        return var(a, axis, dtype, out, ddof, keepdims)
    mask = _no_nan(a)
    result = var(a, axis, dtype, None, ddof, keepdims, where=mask)
    too_few = less_equal(sum(mask, axis, keepdims=keepdims), ddof)
    result = apply(get("where"), too_few, result.dtype.type(np.nan), result)
    return written("nanvar", result, out, True)


@numpy_function
@reduction(SQUARED, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([0. , 0.5])")
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Any:
    """Standard deviations over axes of the elements that are not NaN."""
    return written("nanstd", sqrt(nanvar(a, axis, dtype, None, ddof, keepdims)), out, True)


@numpy_function
@reduction(SAME, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([1., 3.])", "no elements.")
def nanmin(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """The least elements that are not NaN; NaN if there are none."""
    return written("nanmin", _nan_extreme(min, np.inf, a, axis, keepdims), out, True)


@numpy_function
@reduction(SAME, "[[1.0, tnp.nan], [3.0, 4.0]], axis=1", "array([1., 4.])", "no elements.")
def nanmax(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """The greatest elements that are not NaN; NaN if there are none."""
    return written("nanmax", _nan_extreme(max, -np.inf, a, axis, keepdims), out, True)


def _nan_extreme(of: Callable[..., Any], other: float, a: Any, axis: Axis, keepdims: bool) -> Any:
    a = as_array(a)
    result = of(_without_nans(a, other), axis, keepdims=keepdims)
    if a.dtype.kind in "biu":
        return result
    none_left = all(isnan(a), axis, keepdims=keepdims)
    return apply(get("where"), none_left, a.dtype.type(np.nan), result)


@numpy_function
def nancumsum(
    a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None
) -> Any:
    """Running sums along an axis, of the ravelled array by default, NaNs as zero.

    Shape: that of `a`; one axis without `axis`.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.nancumsum([2.0, tnp.nan, 3.0])
    array([2., 2., 5.])
    """
    return cumsum(_without_nans(a, 0), axis, dtype, out)


@numpy_function
def nancumprod(
    a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None
) -> Any:
    """Running products along an axis, of the ravelled array by default, NaNs as one.

    Shape: that of `a`; one axis without `axis`.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.nancumprod([2.0, tnp.nan, 3.0])
    array([2., 2., 6.])
    """
    return cumprod(_without_nans(a, 1), axis, dtype, out)
