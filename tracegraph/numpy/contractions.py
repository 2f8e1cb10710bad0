"""Contractions: products that sum over axes, by the `matmul` op or a multiplication."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod
from operator import index
from typing import Any, ParamSpec

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import broadcast_shapes, result_type, type_of
from tracegraph.modes import Precision, current_precision, matmul_precision
from tracegraph.numpy.axes import moveaxis, transpose
from tracegraph.numpy.dispatching.dispatch import as_array, laid_out, numpy_function
from tracegraph.numpy.dispatching.output import stored, written
from tracegraph.numpy.dispatching.statics import Static
from tracegraph.numpy.dispatching.ufunc_calls import ufunc_function
from tracegraph.numpy.joining import stack
from tracegraph.numpy.shapes import broadcast_to, reshape, squeeze
from tracegraph.numpy.ufuncs import conjugate, multiply, negative, subtract

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot",
    "vecmat",
]  # fmt: skip

_MATMUL = get("matmul")


P = ParamSpec("P")


def with_precision(fun: Callable[P, Any]) -> Callable[..., Any]:
    """Give a function of products the keyword `precision`, as a block of `matmul_precision`."""

    @wraps(fun)
    def function(*args: Any, precision: Precision | None = None, **options: Any) -> Any:
        if precision is None:
            return fun(*args, **options)
        with matmul_precision(precision):
            return fun(*args, **options)

    return function


_PRECISIONS = {("tf32", "float32"), ("tf32", "complex64"), ("bf16x3", "float32")}
"""Those that are not float32 or exact, and the dtypes that have them."""


def product(x: Any, y: Any) -> Any:
    """The op `matmul`, in the precision that the caller asks for."""
    precision = current_precision()
    if precision != "float32" and (precision, str(x.dtype)) in _PRECISIONS:
        return apply(_MATMUL, x, y, precision=precision)
    return apply(_MATMUL, x, y)


def unified(x: Any, y: Any) -> tuple[Any, Any]:
    """Two arrays in their common dtype."""
    x, y = as_array(x), as_array(y)
    if x.dtype == y.dtype:
        return x, y
    dtype = result_type(type_of(x), type_of(y))
    return as_array(x, dtype), as_array(y, dtype)


@with_precision
@ufunc_function(np.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """Matrix products of the last two axes, the others broadcast; a vector is one row or column.

    `precision` is as in `tracegraph.matmul_precision`.

    Shape: (batch…, m, n) of (batch…, m, k) and (batch…, k, n); a vector's axis of 1 goes.
    Dtype: the common one of the operands.

    Raises:
        ValueError: an operand has no axes, or the inner extents differ.

    >>> tnp.matmul([[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    x, y = unified(x1, x2)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(
            f"matmul: operands of shapes {x.shape} and {y.shape} must have axes; use multiply for "
            "scalars"
        )
    row, column = x.ndim == 1, y.ndim == 1
    x = reshape(x, (1, x.size)) if row else x
    y = reshape(y, (y.size, 1)) if column else y
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"matmul: shapes {np.shape(x1)} and {np.shape(x2)} do not fit: inner extents "
            f"{x.shape[-1]} and {y.shape[-2]} must be equal"
        )
    if x.ndim > 2 or y.ndim > 2:
        batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x, y = (broadcast_to(z, batch + z.shape[-2:]) for z in (x, y))
    result = product(x, y)
    if row or column:
        *outer, m, n = result.shape
        result = reshape(result, (*outer, *([] if row else [m]), *([] if column else [n])))
    return result


def _conjugated(x: Any) -> Any:
    """The conjugate of a complex operand; `conjugate` would widen bools."""
    return conjugate(x) if x.dtype.kind == "c" else x


@ufunc_function(np.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Dot products along an axis, the first operand conjugated.

    Shape: that to which the operands broadcast, without the axis.
    Dtype: the common one of the operands.

    Raises:
        AxisError: the axis is out of range.
        ValueError: the extents of the axis differ.

    >>> tnp.vecdot([[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    x, y = unified(x1, x2)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"vecdot: operands of shapes {x.shape} and {y.shape} must have axes")
    x, y = moveaxis(_conjugated(x), axis, -1), moveaxis(y, axis, -1)
    return matvec(reshape(x, (*x.shape[:-1], 1, x.shape[-1])), y)[..., 0]


@ufunc_function(np.matvec)
def matvec(x1: Any, x2: Any, /) -> Any:
    """Products of matrices and vectors, each in the last axes.

    Shape: (batch…, m) of (batch…, m, n) and (batch…, n).
    Dtype: the common one of the operands.

    Raises:
        ValueError: the extents do not fit.

    >>> tnp.matvec([[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    x2 = as_array(x2)
    return squeeze(matmul(x1, reshape(x2, (*x2.shape, 1))), -1)


@ufunc_function(np.vecmat)
def vecmat(x1: Any, x2: Any, /) -> Any:
    """Products of conjugated vectors and matrices, each in the last axes.

    Shape: (batch…, n) of (batch…, m) and (batch…, m, n).
    Dtype: the common one of the operands.

    Raises:
        ValueError: the extents do not fit.

    >>> tnp.vecmat([5, 6], [[1, 2], [3, 4]])
    array([23, 34])
    """
    x1 = _conjugated(as_array(x1))
    return squeeze(matmul(reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1])), x2), -2)


@with_precision
@numpy_function
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Sums of products over the last axis of `a` and the last but one of `b` (or its only one).

    `precision` is as in `tracegraph.matmul_precision`.

    Shape: the other axes of `a`, then those of `b`.
    Dtype: the common one of the operands.

    Raises:
        ValueError: the extents to sum over differ.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.dot([[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    x, y = unified(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return stored("dot", multiply(x, y), out)
    return stored("dot", tensordot(x, y, (-1, -2 if y.ndim > 1 else -1)), out)


@numpy_function
def vdot(a: Any, b: Any, /) -> Any:
    """The dot product of two ravelled arrays, the first conjugated.

    Shape: scalar.
    Dtype: the common one of the operands.

    Raises:
        ValueError: the numbers of elements differ.

    >>> tnp.vdot([1j, 2], [1j, 3])
    np.complex128(7+0j)
    """
    return dot(reshape(_conjugated(as_array(a)), -1), reshape(b, -1))


@numpy_function
def inner(a: Any, b: Any, /) -> Any:
    """Sums of products over the last axes of both arrays.

    Shape: the other axes of `a`, then those of `b`.
    Dtype: the common one of the operands.

    Raises:
        ValueError: the last extents differ.

    >>> tnp.inner([[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    x, y = unified(a, b)
    return multiply(x, y) if x.ndim == 0 or y.ndim == 0 else tensordot(x, y, (-1, -1))


@numpy_function
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """All products of elements of two ravelled arrays, as a matrix.

    Shape: (m, n) of m and n elements.
    Dtype: the common one of the operands.

    Raises:
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """
    x, y = unified(a, b)
    return written("outer", multiply(reshape(x, (-1, 1)), reshape(y, (1, -1))), out, True)


@with_precision
@numpy_function
def tensordot(a: Any, b: Any, axes: Static = 2) -> Any:
    """Sums of products over axes of `a` paired with axes of `b`.

    An int n pairs the last n of `a` with the first n of `b`. `precision` is as in
    `tracegraph.matmul_precision`.

    Shape: the other axes of `a`, then those of `b`.
    Dtype: the common one of the operands.

    Raises:
        ValueError: paired axes differ in extent.
        AxisError: an axis is out of range.

    >>> tnp.tensordot([[1, 2], [3, 4]], [5, 6], axes=1)
    array([17, 39])
    """
    x, y = unified(a, b)
    paired: Any = axes  # a number, also of NumPy's, or a pair
    if np.ndim(paired) == 0:
        count = index(paired)
        if count > min(x.ndim, y.ndim):
            raise np.exceptions.AxisError(
                f"tensordot over {count} axes of arrays of shapes {x.shape} and {y.shape}"
            )
        pairs: tuple[Any, Any] = (tuple(range(x.ndim - count, x.ndim)), tuple(range(count)))
    else:
        pairs = (paired[0], paired[1])
    of_x = normalize_axis_tuple(pairs[0], x.ndim)
    of_y = normalize_axis_tuple(pairs[1], y.ndim)
    if [x.shape[k] for k in of_x] != [y.shape[k] for k in of_y]:
        raise ValueError(
            f"tensordot: axes {of_x} of shape {x.shape} and axes {of_y} of shape {y.shape} must "
            "have equal extents"
        )
    free_x = tuple(k for k in range(x.ndim) if k not in of_x)
    free_y = tuple(k for k in range(y.ndim) if k not in of_y)
    shape = tuple(x.shape[k] for k in free_x) + tuple(y.shape[k] for k in free_y)
    inner_extent = prod(x.shape[k] for k in of_x)
    left = reshape(transpose(x, free_x + of_x), (prod(x.shape[k] for k in free_x), inner_extent))
    right = reshape(transpose(y, of_y + free_y), (inner_extent, prod(y.shape[k] for k in free_y)))
    return reshape(product(left, right), shape)


@numpy_function
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product.

    Shape: the products of the extents.
    Dtype: the common one of the operands.

    >>> tnp.kron([1, 10], [1, 2])
    array([ 1,  2, 10, 20])
    """
    x, y = unified(a, b)
    rank = max(x.ndim, y.ndim)
    left = (1,) * (rank - x.ndim) + x.shape
    right = (1,) * (rank - y.ndim) + y.shape
    x = reshape(x, tuple(n for extent in left for n in (extent, 1)))
    y = reshape(y, tuple(n for extent in right for n in (1, extent)))
    return reshape(multiply(x, y), tuple(l * r for l, r in zip(left, right, strict=True)))


@numpy_function
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Cross products of vectors of three elements, or of two, whose third is 0.

    Shape: that to which the operands broadcast, the axis in place `axisc`; without the axis if
    both have vectors of two elements; the result is the third element of the product.
    Dtype: the common one of the operands.

    Raises:
        ValueError: an extent is not 2 or 3, or the shapes do not broadcast.
        AxisError: an axis is out of range.

    >>> tnp.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = unified(a, b)
    x = moveaxis(x, normalize_axis_index(axisa, x.ndim), 0)
    y = moveaxis(y, normalize_axis_index(axisb, y.ndim), 0)
    extents = (x.shape[0], y.shape[0])
    if not {2, 3}.issuperset(extents):
        raise ValueError(
            f"cross needs vectors of 3 or 2 elements, got {extents[0]} and {extents[1]}"
        )
    if extents == (2, 2):
        return laid_out(subtract(multiply(x[0], y[1]), multiply(x[1], y[0])), None)
    parts = [_part_of_cross(x, y, i, j) for i, j in ((1, 2), (2, 0), (0, 1))]
    found = stack([laid_out(part, None) for part in parts], -1)
    return moveaxis(found, -1, axisc)


def _part_of_cross(x: Any, y: Any, i: int, j: int) -> Any:
    """x[i] * y[j] - x[j] * y[i] of vectors whose third element is 0 if it is missing."""
    if i >= min(x.shape[0], y.shape[0]):
        missing = x if x.shape[0] == 2 else y
        return negative(multiply(x[j], y[i])) if missing is x else multiply(x[i], y[j])
    if j >= min(x.shape[0], y.shape[0]):
        missing = x if x.shape[0] == 2 else y
        return multiply(x[i], y[j]) if missing is x else negative(multiply(x[j], y[i]))
    return subtract(multiply(x[i], y[j]), multiply(x[j], y[i]))
