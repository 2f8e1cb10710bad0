"""Reductions and running folds, with NumPy's dtypes: small integers are summed in 64 bits."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    copied,
    is_ours,
    lifted,
    numpy_function,
    unchecked,
)
from tracegraph.numpy.dispatching.docstrings import SAME, SUMMED, reduction
from tracegraph.numpy.dispatching.families import numpy_family
from tracegraph.numpy.dispatching.output import Casting, mask_of, stored, target_of
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.ufuncs import (
    absolute,
    add,
    equal,
    logical_and,
    maximum,
    minimum,
    multiply,
    not_equal,
    signbit,
    square,
    subtract,
)

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "max",
    "min", "prod", "ptp", "sum",
]  # fmt: skip

Axis = int | Sequence[int] | None


def reduced_axes(a: Any, axis: Axis) -> tuple[int, ...]:
    """The axes to reduce, sorted."""
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(sorted(normalize_axis_tuple(axis, a.ndim)))


def folded_axes(a: Any, axis: Axis) -> tuple[int, ...]:
    """The axes that a ufunc reduces: a scalar has the axes 0 and -1, over which it is itself."""
    if axis is not None and a.ndim == 0 and not isinstance(axis, Sequence) and axis in (0, -1):
        return ()
    return reduced_axes(a, axis)


def kept(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result with the reduced axes kept as extents of 1, if asked for."""
    if not keepdims:
        return result
    return reshape(result, tuple(1 if k in axes else n for k, n in enumerate(shape)))


def in_fold_dtype(ufunc: np.ufunc, a: Any, dtype: DTypeLike | None, out: Any) -> Any:
    """An array in the dtype in which a ufunc folds it: that given, or NumPy's for it and `out`.

    Raises:
        TypeError: the ufunc does not fold in the dtype that is given.
    """
    target = target_of(out)
    if dtype is None:
        first = None if target is None else target.dtype
        casting: Casting = "same_kind" if target is None else "unsafe"
        return unchecked(
            a, ufunc.resolve_dtypes((first, a.dtype, None), casting=casting, reduction=True)[2]
        )
    wanted = np.dtype(dtype)
    if ufunc.resolve_dtypes((wanted, wanted, None))[2] != wanted:
        raise TypeError(f"numpy.{ufunc.__name__} does not fold in {wanted}")
    return unchecked(a, wanted)


def masked(a: Any, where: Any, other: Any) -> Any:
    """The array, with another value where a mask is false."""
    return a if where is True else apply(get("where"), mask_of(where), a, other)


def _fold(name: str, a: Any, axis: Axis, keepdims: bool) -> Any:
    return folded(name, a, folded_axes(a, axis), keepdims)


def folded(name: str, a: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The array reduced over axes by the op of a name."""
    if axes:
        return kept(apply(get(name), a, axes=axes), a.shape, axes, keepdims)
    # as NumPy does: 0 + -0.0 is 0.0
    if name == "sum":
        return add(a, a.dtype.type(0))
    return multiply(a, a.dtype.type(1)) if name == "prod" else copied(a, "K")


def _is_negative_zero(x: Any) -> Any:
    return logical_and(equal(x, x.dtype.type(0)), signbit(x))


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
    a = in_fold_dtype(np.add, as_array(a), dtype, out)
    result = _fold("sum", masked(a, where, a.dtype.type(0)), axis, keepdims)
    if initial is not None:
        initial = as_array(initial, a.dtype)
        result = add(result, initial)
        if a.dtype.kind == "f" and (is_ours((initial,)) or np.any(np.signbit(initial))):
            zeros = masked(_is_negative_zero(a), where, True)
            stays = logical_and(_fold("all", zeros, axis, keepdims), _is_negative_zero(initial))
            result = apply(get("where"), stays, initial, result)
    return stored("sum", result, out, "unsafe")


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
    a = in_fold_dtype(np.multiply, as_array(a), dtype, out)
    result = _fold("prod", masked(a, where, a.dtype.type(1)), axis, keepdims)
    if initial is not None:
        result = multiply(result, as_array(initial, a.dtype))
    return stored("prod", result, out, "unsafe")


@numpy_family
@reduction(SAME, empty="no elements, or `where`, without `initial`.")
def _extreme(
    name: str,
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The {which} elements; NaN if there is one."""
    a = as_array(a)
    combine = minimum if name == "min" else maximum
    if where is not True and initial is None:
        raise ValueError(f"numpy.{name} with where= needs initial=, as it has no identity")
    if initial is not None:
        initial = as_array(initial, a.dtype)
        a = masked(a, where, initial)
    axes = folded_axes(a, axis)
    empty = 0 in [a.shape[k] for k in axes]
    if empty and initial is None:
        raise ValueError(f"zero-size array to reduction operation {name}, which has no identity")
    if empty:
        shape = tuple(n for k, n in enumerate(a.shape) if k not in axes)
        result = kept(copied(broadcast_to(lifted(initial), shape)), a.shape, axes, keepdims)
    else:
        result = folded(name, a, axes, keepdims)
        result = result if initial is None else combine(result, initial)
    return stored(name, result, out, "unsafe")


_ROWS = "[[1, 2], [3, 4]], axis=1"

min = _extreme("min", which="least", call=_ROWS, result="array([1, 3])")
max = _extreme("max", which="greatest", call=_ROWS, result="array([2, 4])")
amin, amax = min, max


def _as_bool(a: Any) -> Any:
    a = as_array(a)
    return a if a.dtype == np.bool_ else not_equal(a, a.dtype.type(0))


@numpy_family
@reduction("bool.")
def _truth(
    name: str,
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Whether {which} non-zero."""
    a = masked(_as_bool(a), where, name == "all")
    return stored(name, _fold(name, a, axis, keepdims), out, "unsafe")


any = _truth(
    "any",
    which="an element is",
    call="[[0, 1], [0, 0]], axis=1",
    result="array([ True, False])",
)
all = _truth(
    "all",
    which="all elements are",
    call="[[0, 1], [1, 1]], axis=1",
    result="array([False,  True])",
)


@numpy_family
@reduction("int64.", empty="no elements.")
def _position(
    name: str, a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    """Positions of the {which} elements, the first ones, as int64."""
    a = as_array(a)
    scalar = a.ndim == 0
    a = reshape(a, (1,)) if scalar else a
    axes = reduced_axes(a, axis)
    if 0 in [a.shape[k] for k in axes]:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    found = kept(apply(get(name), a, axes=axes), a.shape, axes, keepdims and not scalar)
    return stored(name, found, out, "unsafe")


_PAIRS = "[[3, 1], [2, 2]], axis=1"

argmin = _position("argmin", which="least", call=_PAIRS, result="array([1, 0])")
argmax = _position("argmax", which="greatest", call=_PAIRS, result="array([0, 0])")


@numpy_function
@reduction(SAME, "[[1, 5], [3, 4]], axis=1", "array([4, 1])", "no elements.")
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Greatest minus least elements."""
    result = subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
    return stored("ptp", result, out, "unsafe")


@numpy_function
@reduction("int64.", "[[0, 1], [2, 3]], axis=1", "array([1, 2])")
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Numbers of non-zero elements, as int64."""
    return sum(_as_bool(a), axis, keepdims=keepdims)


@numpy_family
def _running(
    name: str,
    a: Any,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Running {folds} along an axis, of the ravelled array by default; dtypes as `{fold}`.

    Shape: that of `a`; one axis without `axis`.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.{name}([1, 2, 3])
    {result}
    """
    ufunc = np.add if name == "cumsum" else np.multiply
    a = in_fold_dtype(ufunc, as_array(a), dtype, out)
    if axis is None:
        a, axis = reshape(a, -1), 0
    elif a.ndim == 0:
        a = reshape(a, -1)  # as NumPy does
    found = apply(get(name), a, axis=normalize_axis_index(operator.index(axis), a.ndim))
    return stored(name, found, out, "unsafe")


cumsum = _running("cumsum", folds="sums", fold="sum", result="array([1, 3, 6])")
cumprod = _running("cumprod", folds="products", fold="prod", result="array([1, 2, 6])")


def sum_of_squares(a: Any, axis: Axis, keepdims: bool) -> Any:
    """Sums of squared absolute values, in the real dtype."""
    a = as_array(a)
    size = absolute(a) if a.dtype.kind == "c" else a
    return sum(square(size), axis, keepdims=keepdims)
