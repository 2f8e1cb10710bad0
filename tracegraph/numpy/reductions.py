"""Reductions and running folds, with NumPy's dtypes: small integers are summed in 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatch import as_array, copied, lifted, numpy_function
from tracegraph.numpy.docstrings import SAME, SUMMED, reduction
from tracegraph.numpy.output import target_of, written
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.ufuncs import (
    absolute,
    add,
    maximum,
    minimum,
    multiply,
    not_equal,
    square,
    subtract,
)

Axis = int | Sequence[int] | None


def reduced_axes(a: Any, axis: Axis) -> tuple[int, ...]:
    """The axes to reduce, sorted."""
    if axis is None:
        return tuple(range(a.ndim))
    if type(axis) is int:
        return (normalize_axis_index(axis, a.ndim),)
    return tuple(sorted(normalize_axis_tuple(axis, a.ndim)))


def kept(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result with the reduced axes kept as extents of 1, if asked for."""
    if not keepdims:
        return result
    return reshape(result, tuple(1 if k in axes else n for k, n in enumerate(shape)))


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's default dtype of sums and products."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def _folded_in(a: Any, dtype: DTypeLike | None, out: Any) -> Any:
    """An array in the dtype in which it is summed: that given, or that of `out`, or the default."""
    target = target_of(out)
    default = _sum_dtype(a.dtype) if target is None else target.dtype
    return as_array(a, default if dtype is None else dtype)


def masked(a: Any, where: Any, other: Any) -> Any:
    """The array, with another value where a mask is false."""
    return a if where is True else apply(get("where"), where, a, other)


def _folded_axes(a: Any, axis: Axis) -> tuple[int, ...]:
    """The same for a ufunc's reduction, which takes axis 0 or -1 of a 0-d array."""
    return () if a.ndim == 0 and axis in (0, -1) else reduced_axes(a, axis)


def _fold(name: str, a: Any, axis: Axis, keepdims: bool) -> Any:
    return folded(name, a, _folded_axes(a, axis), keepdims)


def folded(name: str, a: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The array reduced over axes by the op of a name."""
    if axes:
        return kept(apply(get(name), a, axes=axes), a.shape, axes, keepdims)
    # as NumPy does: 0 + -0.0 is 0.0
    if name == "sum":
        return add(a, a.dtype.type(0))
    return multiply(a, a.dtype.type(1)) if name == "prod" else copied(a)


@numpy_function
@reduction(SUMMED, "[[1, 2], [3, 4]], axis=0", "array([4, 6])")
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
    a = _folded_in(as_array(a), dtype, out)
    result = _fold("sum", masked(a, where, a.dtype.type(0)), axis, keepdims)
    if initial is not None:
        result = add(result, as_array(initial, a.dtype))
    return written("sum", result, out, True)


@numpy_function
@reduction(SUMMED, "[[1, 2], [3, 4]], axis=0", "array([3, 8])")
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
    a = _folded_in(as_array(a), dtype, out)
    result = _fold("prod", masked(a, where, a.dtype.type(1)), axis, keepdims)
    if initial is not None:
        result = multiply(result, as_array(initial, a.dtype))
    return written("prod", result, out, True)


def _extreme(name: str, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Any:
    a = as_array(a)
    combine = minimum if name == "min" else maximum
    if where is not True and initial is None:
        raise ValueError(f"numpy.{name} with where= needs initial=, as it has no identity")
    if initial is not None:
        initial = as_array(initial, a.dtype)
        a = masked(a, where, initial)
    axes = _folded_axes(a, axis)
    empty = 0 in [a.shape[k] for k in axes]
    if empty and initial is None:
        raise ValueError(f"zero-size array to reduction operation {name}, which has no identity")
    if empty:
        shape = tuple(n for k, n in enumerate(a.shape) if k not in axes)
        return kept(copied(broadcast_to(lifted(initial), shape)), a.shape, axes, keepdims)
    result = folded(name, a, axes, keepdims)
    return result if initial is None else combine(result, initial)


@numpy_function
@reduction(
    SAME, "[[1, 2], [3, 4]], axis=1", "array([1, 3])", "no elements, or `where`, without `initial`."
)
def min(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The least elements; NaN if there is one."""
    return written("min", _extreme("min", a, axis, keepdims, initial, where), out, True)


@numpy_function
@reduction(
    SAME, "[[1, 2], [3, 4]], axis=1", "array([2, 4])", "no elements, or `where`, without `initial`."
)
def max(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The greatest elements; NaN if there is one."""
    return written("max", _extreme("max", a, axis, keepdims, initial, where), out, True)


amin, amax = min, max


def _as_bool(a: Any) -> Any:
    a = as_array(a)
    return a if a.dtype == np.bool_ else not_equal(a, a.dtype.type(0))


@numpy_function
@reduction("bool.", "[[0, 1], [0, 0]], axis=1", "array([ True, False])")
def any(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether an element is non-zero."""
    result = _fold("any", masked(_as_bool(a), where, False), axis, keepdims)
    return written("any", result, out, True)


@numpy_function
@reduction("bool.", "[[0, 1], [1, 1]], axis=1", "array([False,  True])")
def all(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether all elements are non-zero."""
    result = _fold("all", masked(_as_bool(a), where, True), axis, keepdims)
    return written("all", result, out, True)


def _position(name: str, a: Any, axis: int | None, keepdims: bool) -> Any:
    a = as_array(a)
    scalar = a.ndim == 0
    a = reshape(a, (1,)) if scalar else a
    axes = reduced_axes(a, axis)
    if 0 in [a.shape[k] for k in axes]:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    return kept(apply(get(name), a, axes=axes), a.shape, axes, keepdims and not scalar)


@numpy_function
@reduction("int64.", "[[3, 1], [2, 2]], axis=1", "array([1, 0])", "no elements.")
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Positions of the least elements, the first ones, as int64."""
    return written("argmin", _position("argmin", a, axis, keepdims), out, True)


@numpy_function
@reduction("int64.", "[[3, 1], [2, 2]], axis=1", "array([0, 0])", "no elements.")
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Positions of the greatest elements, the first ones, as int64."""
    return written("argmax", _position("argmax", a, axis, keepdims), out, True)


@numpy_function
@reduction(SAME, "[[1, 5], [3, 4]], axis=1", "array([4, 1])", "no elements.")
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Greatest minus least elements."""
    result = subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
    return written("ptp", result, out, True)


@numpy_function
@reduction("int64.", "[[0, 1], [2, 3]], axis=1", "array([1, 2])")
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Numbers of non-zero elements, as int64."""
    return sum(_as_bool(a), axis, keepdims=keepdims)


@numpy_function
def cumsum(a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
    """Running sums along an axis, of the ravelled array by default; dtypes as `sum`.

    Shape: that of `a`; one axis without `axis`.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.cumsum([1, 2, 3])
    array([1, 3, 6])
    """
    return written("cumsum", _running("cumsum", a, axis, dtype, out), out, True)


@numpy_function
def cumprod(
    a: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: Any = None
) -> Any:
    """Running products along an axis, of the ravelled array by default; dtypes as `prod`.

    Shape: that of `a`; one axis without `axis`.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.cumprod([1, 2, 3])
    array([1, 2, 6])
    """
    return written("cumprod", _running("cumprod", a, axis, dtype, out), out, True)


def _running(name: str, a: Any, axis: int | None, dtype: DTypeLike | None, out: Any) -> Any:
    a = _folded_in(as_array(a), dtype, out)
    if axis is None:
        a, axis = reshape(a, -1), 0
    elif a.ndim == 0:
        a = reshape(a, -1)  # as NumPy does
    return apply(get(name), a, axis=normalize_axis_index(axis, a.ndim))


def sum_of_squares(a: Any, axis: Axis, keepdims: bool) -> Any:
    """Sums of squared absolute values, in the real dtype."""
    a = as_array(a)
    size = absolute(a) if a.dtype.kind == "c" else a
    return sum(square(size), axis, keepdims=keepdims)
