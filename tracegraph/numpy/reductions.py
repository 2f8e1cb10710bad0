"""Reductions and running folds, with NumPy's dtypes: small integers are summed in 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.typing import DTypeLike

from tracegraph.numpy.dispatch import as_array, copied, lifted, numpy_function
from tracegraph.numpy.elementwise import (
    _written,
    absolute,
    add,
    conjugate,
    divide,
    equal,
    isclose,
    isnan,
    logical_and,
    logical_not,
    maximum,
    minimum,
    multiply,
    not_equal,
    real,
    sqrt,
    square,
    subtract,
)
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.op import get
from tracegraph.operators import ArrayOperators

Axis = int | Sequence[int] | None


def _axes(a: Any, axis: Axis) -> tuple[int, ...]:
    """The axes to reduce, sorted."""
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(sorted(normalize_axis_tuple(axis, a.ndim)))


def _kept(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result with the reduced axes kept as extents of 1, if asked for."""
    if not keepdims:
        return result
    return reshape(result, tuple(1 if k in axes else n for k, n in enumerate(shape)))


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's default dtype of sums and products."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def _masked(a: Any, where: Any, other: Any) -> Any:
    return a if where is True else get("where")(where, a, other)


def _fold(name: str, a: Any, axis: Axis, keepdims: bool) -> Any:
    axes = _axes(a, axis)
    return _kept(get(name)(a, axes=axes) if axes else copied(a), a.shape, axes, keepdims)


@numpy_function
def sum(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Sums over axes; of booleans and small integers in 64 bits unless `dtype` is given."""
    a = as_array(a)
    a = as_array(a, _sum_dtype(a.dtype) if dtype is None else dtype)
    result = _fold("sum", _masked(a, where, a.dtype.type(0)), axis, keepdims)
    if initial is not None:
        result = add(result, as_array(initial, a.dtype))
    return _written("sum", result, out, True)


@numpy_function
def prod(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Products over axes; of booleans and small integers in 64 bits unless `dtype` is given."""
    a = as_array(a)
    a = as_array(a, _sum_dtype(a.dtype) if dtype is None else dtype)
    result = _fold("prod", _masked(a, where, a.dtype.type(1)), axis, keepdims)
    if initial is not None:
        result = multiply(result, as_array(initial, a.dtype))
    return _written("prod", result, out, True)


def _extreme(name: str, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Any:
    a = as_array(a)
    combine = minimum if name == "min" else maximum
    if where is not True and initial is None:
        raise ValueError(f"numpy.{name} with where= needs initial=, as it has no identity")
    if initial is not None:
        initial = as_array(initial, a.dtype)
        a = _masked(a, where, initial)
    axes = _axes(a, axis)
    empty = 0 in [a.shape[k] for k in axes]
    if empty and initial is None:
        raise ValueError(f"zero-size array to reduction operation {name}, which has no identity")
    if empty:
        shape = tuple(n for k, n in enumerate(a.shape) if k not in axes)
        return _kept(copied(broadcast_to(lifted(initial), shape)), a.shape, axes, keepdims)
    result = _fold(name, a, axis, keepdims)
    return result if initial is None else combine(result, initial)


@numpy_function
def min(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The least elements; NaN if there is one."""
    return _written("min", _extreme("min", a, axis, keepdims, initial, where), out, True)


@numpy_function
def max(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The greatest elements; NaN if there is one."""
    return _written("max", _extreme("max", a, axis, keepdims, initial, where), out, True)


amin, amax = min, max


def _as_bool(a: Any) -> Any:
    a = as_array(a)
    return a if a.dtype == np.bool_ else not_equal(a, a.dtype.type(0))


@numpy_function
def any(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether an element is non-zero."""
    result = _fold("any", _masked(_as_bool(a), where, False), axis, keepdims)
    return _written("any", result, out, True)


@numpy_function
def all(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether all elements are non-zero."""
    result = _fold("all", _masked(_as_bool(a), where, True), axis, keepdims)
    return _written("all", result, out, True)


def _position(name: str, a: Any, axis: int | None, keepdims: bool) -> Any:
    a = as_array(a)
    a = reshape(a, (1,)) if a.ndim == 0 else a
    axes = _axes(a, axis)
    if 0 in [a.shape[k] for k in axes]:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    return _kept(get(name)(a, axes=axes), a.shape, axes, keepdims)


@numpy_function
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Positions of the least elements, the first ones, as int64."""
    return _written("argmin", _position("argmin", a, axis, keepdims), out, True)


@numpy_function
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Positions of the greatest elements, the first ones, as int64."""
    return _written("argmax", _position("argmax", a, axis, keepdims), out, True)


def _count(a: Any, axis: Axis, keepdims: bool, where: Any) -> Any:
    """How many elements go into each result: static unless a mask chooses them."""
    if where is True:
        return int(np.prod([a.shape[k] for k in _axes(a, axis)], dtype=np.int64))
    mask = broadcast_to(as_array(where), a.shape)
    return sum(mask, axis, keepdims=keepdims)


def _mean_dtypes(a: Any, dtype: DTypeLike | None) -> tuple[Any, Any]:
    """The dtypes in which means are summed and returned: float16 is summed in float32."""
    if dtype is not None:
        return dtype, dtype
    if a.dtype.kind in "biu":
        return np.float64, np.float64
    return (np.float32 if a.dtype == np.float16 else a.dtype), a.dtype


@numpy_function
def mean(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Means over axes; of integers in float64."""
    a = as_array(a)
    within, final = _mean_dtypes(a, dtype)
    total = sum(a, axis, within, None, keepdims, None, where)
    result = _divided(total, _count(a, axis, keepdims, where), final)
    return _written("mean", result, out, True)


def _divided(total: Any, count: Any, dtype: DTypeLike) -> Any:
    """`total / count`, computed in float64 where the dtype of the total does not hold the count."""
    exact = not isinstance(count, ArrayOperators) and total.dtype.type(count) == count
    divisor = count if exact else as_array(count, np.float64)
    return as_array(divide(total, divisor), dtype)


@numpy_function
def var(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    correction: float | None = None,
) -> Any:
    """Variances over axes: mean squared distances from the mean, with divisor `n - ddof`.

    `correction` is another name of `ddof`.
    """
    a = as_array(a)
    within = np.dtype(np.float64) if dtype is None and a.dtype.kind in "biu" else dtype
    center = sum(a, axis, within, None, True, None, where)
    center = _divided(center, _count(a, axis, True, where), center.dtype)
    distance = subtract(a, center)
    complex_ = distance.dtype.kind == "c"
    squares = real(multiply(distance, conjugate(distance))) if complex_ else square(distance)
    total = sum(squares, axis, None if complex_ else within, None, keepdims, None, where)
    freedom = ddof if correction is None else correction
    count = _count(a, axis, keepdims, where)
    left = count - freedom
    if isinstance(left, ArrayOperators):
        left = maximum(left, 0)
    elif left < 0:
        left = 0
    return _written("var", _divided(total, left, total.dtype), out, True)


@numpy_function
def std(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    correction: float | None = None,
) -> Any:
    """Standard deviations over axes: roots of `var`."""
    result = sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, correction=correction))
    return _written("std", result, out, True)


@numpy_function
def average(a: Any, axis: Axis = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    """Weighted means over axes; `weights` has the shape of `a`, or is a vector along the axis."""
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    a, weights = as_array(a), as_array(weights)
    if weights.ndim == 1 and a.ndim > 1 and isinstance(axis, int):
        along = normalize_axis_index(axis, a.ndim)
        weights = reshape(weights, (-1,) + (1,) * (a.ndim - along - 1))
    weighted = multiply(a, weights)
    scale = sum(broadcast_to(weights, weighted.shape), axis, keepdims=keepdims)
    return divide(sum(weighted, axis, keepdims=keepdims), scale)


@numpy_function
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Greatest minus least elements."""
    result = subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
    return _written("ptp", result, out, True)


@numpy_function
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Numbers of non-zero elements, as int64."""
    return sum(_as_bool(a), axis, keepdims=keepdims)


def _without_nans(a: Any, other: float) -> Any:
    a = as_array(a)
    return a if a.dtype.kind in "biu" else get("where")(isnan(a), a.dtype.type(other), a)


@numpy_function
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
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Means over axes of the elements that are not NaN; NaN if there are none."""
    a = as_array(a)
    return mean(a, axis, dtype, out, keepdims, where=logical_not(isnan(a)))


@numpy_function
def nanmin(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """The least elements that are not NaN; NaN if there are none."""
    return _written("nanmin", _nan_extreme("min", a, axis, keepdims), out, True)


@numpy_function
def nanmax(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """The greatest elements that are not NaN; NaN if there are none."""
    return _written("nanmax", _nan_extreme("max", a, axis, keepdims), out, True)


def _nan_extreme(name: str, a: Any, axis: Axis, keepdims: bool) -> Any:
    a = as_array(a)
    if a.dtype.kind in "biu":
        return _extreme(name, a, axis, keepdims, None, True)
    filled = _without_nans(a, np.inf if name == "min" else -np.inf)
    none_left = all(isnan(a), axis, keepdims=keepdims)
    result = _extreme(name, filled, axis, keepdims, None, True)
    return get("where")(none_left, a.dtype.type(np.nan), result)


@numpy_function
def cumsum(a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
    """Running sums along an axis, of the ravelled array by default; dtypes as `sum`."""
    return _written("cumsum", _running("cumsum", a, axis, dtype), out, True)


@numpy_function
def cumprod(
    a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None
) -> Any:
    """Running products along an axis, of the ravelled array by default; dtypes as `prod`."""
    return _written("cumprod", _running("cumprod", a, axis, dtype), out, True)


def _running(name: str, a: Any, axis: int | None, dtype: DTypeLike | None) -> Any:
    a = as_array(a)
    a = as_array(a, _sum_dtype(a.dtype) if dtype is None else dtype)
    if axis is None:
        a, axis = reshape(a, -1), 0
    return get(name)(a, axis=normalize_axis_index(axis, a.ndim))


@numpy_function
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as `isclose` has it."""
    return all(isclose(a, b, rtol, atol, equal_nan))


@numpy_function
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have the same shape and elements."""
    a1, a2 = as_array(a1), as_array(a2)
    if a1.shape != a2.shape:
        return False
    same = equal(a1, a2)
    if equal_nan:
        same = same | logical_and(isnan(a1), isnan(a2))
    return all(same)


@numpy_function
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule."""
    from tracegraph.numpy.selecting import diff

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


def sum_of_squares(a: Any, axis: Axis, keepdims: bool) -> Any:
    """Sums of squared absolute values, in the real dtype."""
    return sum(square(absolute(a)), axis, keepdims=keepdims)
