"""Means and variances, with NumPy's dtypes: of integers in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import DTypeLike

from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.axes import transpose
from tracegraph.numpy.dispatching.dispatch import as_array, copied, lifted, numpy_function
from tracegraph.numpy.dispatching.docstrings import AVERAGED, SQUARED, reduction
from tracegraph.numpy.dispatching.families import numpy_family
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.elementwise import real
from tracegraph.numpy.elementwise import where as choose
from tracegraph.numpy.linalg.norms import of_squares
from tracegraph.numpy.reductions import Axis, reduced_axes, sum
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.ufuncs import conjugate, divide, maximum, multiply, sqrt, square, subtract
from tracegraph.tracing.tracer import Tracer

__all__ = ["average", "mean", "std", "var"]


def _count(a: Any, axis: Axis, keepdims: bool, where: Any) -> Any:
    """How many elements go into each result: static unless a mask chooses them."""
    if where is True:
        return int(np.prod([a.shape[k] for k in reduced_axes(a, axis)], dtype=np.int64))
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
@reduction(AVERAGED, "[[1, 2], [3, 4]], axis=0", "array([2., 3.])")
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
    return stored("mean", result, out, "unsafe")


def _divided(total: Any, count: Any, dtype: DTypeLike) -> Any:
    """`total / count`, computed in float64 where the dtype of the total does not hold the count."""
    exact = isinstance(count, (int, float)) and total.dtype.type(count) == count
    divisor = count if exact else as_array(count, np.float64)
    return as_array(divide(total, divisor), dtype)


@numpy_family
@reduction(SQUARED)
def _spread(
    name: str,
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """{what}"""
    if correction is not None and ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    a = as_array(a)
    within = np.dtype(np.float64) if dtype is None and a.dtype.kind in "biu" else dtype
    center = mean
    if center is None:
        total = sum(a, axis, within, None, True, None, where)
        center = _divided(total, _count(a, axis, True, where), total.dtype)
    distance = subtract(a, center)
    if a.dtype.kind in "iuf" or distance.dtype.kind != "c":  # of a real array, in a complex dtype
        squares = square(distance)
    else:
        squares = real(multiply(distance, conjugate(distance)))
    total = sum(squares, axis, within, None, keepdims, None, where)
    freedom = ddof if correction is None else correction
    left = _count(a, axis, keepdims, where) - freedom
    left = max(left, 0) if isinstance(left, (int, float)) else maximum(left, 0)
    result = _divided(total, left, total.dtype)
    if name == "std":
        result = as_norm(sqrt(result), a, axis, freedom, keepdims, where, mean)
    return stored(name, result, out, "unsafe")


_COLUMNS = {"call": "[[1, 2], [3, 4]], axis=0", "result": "array([1., 1.])"}

std = _spread("std", what="Standard deviations over axes: roots of `var`.", **_COLUMNS)
var = _spread(
    "var",
    what="Variances over axes: mean squared distances from the mean, with divisor `n - ddof`.\n\n"
    "    `correction` is another name of `ddof`. `mean` is the mean, with the axes kept, if it is "
    "known.",
    **_COLUMNS,
)


def as_norm(
    deviation: Any,
    a: Any,
    axis: Axis,
    freedom: float,
    keepdims: bool,
    where: Any,
    center: Any,
) -> Any:
    """A standard deviation with the derivative of the norm that it is, 0 where all are equal."""
    if not isinstance(deviation, Tracer) or deviation.dtype.kind == "c":
        return deviation
    a = as_array(a)
    dtype = deviation.dtype
    if a.dtype.kind == "c":
        dtype = np.result_type(dtype, np.complex64)
    if center is None:
        center = mean(a, axis, dtype, keepdims=True, where=where)
    distance = subtract(as_array(a, dtype), center)
    if where is not True:
        distance = choose(where, distance, dtype.type(0))
    left = _count(a, axis, keepdims, where) - freedom
    if isinstance(left, (int, float)):
        weight: Any = 1 / left if left else float("inf")
    else:
        weight = broadcast_to(as_array(1 / left, deviation.dtype), deviation.shape)
    axes = tuple([k - a.ndim for k in reduced_axes(a, axis)])
    return of_squares(deviation, distance, axes, keepdims, weight)


@numpy_function
def average(
    a: Any,
    axis: Axis = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted means over axes; `weights` has the shape of `a`, or that of the axes.

    With `returned`, the sums of the weights are a second result, of the same shape and dtype.

    Weights that sum to zero are no error: they give NaNs and infinities.

    Shape: that of `a` without the axes, all by default; with `keepdims`, they stay with extent
    1.
    Dtype: the common one of `a` and `weights`; float64 for integers.

    Raises:
        TypeError: the shapes differ and no axis is given.
        ValueError: `weights` has another shape.
        AxisError: an axis is out of range.

    >>> tnp.average([1.0, 4.0], weights=[2, 1])
    np.float64(2.0)
    """
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        if not returned:
            return result
        count = result.dtype.type(as_array(a).size / result.size)
        return result, copied(broadcast_to(lifted(count), result.shape))
    a, weights = as_array(a), as_array(weights)
    dtype = result_type(type_of(a), type_of(weights))
    if a.dtype.kind in "biu":
        dtype = np.result_type(dtype, np.float64)
    weights = as_array(_along(weights, a, axis), dtype)
    scale = sum(weights, axis, keepdims=keepdims)
    total = sum(multiply(as_array(a, dtype), weights), axis, keepdims=keepdims)
    result = divide(total, scale)
    return (result, copied(broadcast_to(scale, result.shape))) if returned else result


def _along(weights: Any, a: Any, axis: Axis) -> Any:
    """Weights of the shape of `a`, or of its shape along the axes, with extents of 1 elsewhere."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError(
            f"average needs an axis for weights of shape {weights.shape} and an array of shape "
            f"{a.shape}"
        )
    axes = normalize_axis_tuple(axis, a.ndim)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ValueError(
            f"average: weights of shape {weights.shape} do not fit axes {axes} of shape {a.shape}"
        )
    ordered = transpose(weights, sorted(range(len(axes)), key=lambda k: axes[k]))
    return reshape(ordered, tuple(n if k in axes else 1 for k, n in enumerate(a.shape)))
