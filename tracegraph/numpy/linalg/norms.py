"""Norms of vectors and matrices, and the condition of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.attached import derivative_rule, with_derivative
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import astype, real, where
from tracegraph.numpy.linalg.matrices import matrices, square
from tracegraph.numpy.linalg.spectra import svdvals
from tracegraph.numpy.linalg.systems import inverses
from tracegraph.numpy.reductions import any as any_of
from tracegraph.numpy.reductions import max as largest
from tracegraph.numpy.reductions import min as smallest
from tracegraph.numpy.reductions import sum, sum_of_squares
from tracegraph.numpy.shapes import expand_dims, reshape
from tracegraph.numpy.ufuncs import (
    absolute,
    conjugate,
    equal,
    isnan,
    not_equal,
    power,
    sign,
    sqrt,
)

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


@numpy_function
def norm(
    x: Any,
    ord: float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """Norms of vectors, of any order, or of matrices: "fro", "nuc", 1, -1, 2, -2, inf and -inf.

    Without `ord`, the root of the sum of squares over the axes.

    Shape: that of `x` without the axes, all by default; with `keepdims`, they stay with extent
    1.
    Dtype: that of `x`, real for complex; float64 for integers.

    Raises:
        AxisError: an axis is out of range.
        ValueError: `ord` does not fit the number of axes.

    >>> tnp.linalg.norm([3.0, 4.0])
    np.float64(5.0)
    """
    x = _inexact(x)
    if axis is None and ord is None:
        return euclidean(x, None, keepdims)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, (axes[0], axes[1]), keepdims)
    raise ValueError(f"numpy.linalg.norm with ord={ord!r} needs one or two axes, got {len(axes)}")


@numpy_function
def vector_norm(
    x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Any:
    """Norms of vectors over one axis, or over several together.

    Shape: that of `x` without the axes, all by default; with `keepdims`, they stay with extent
    1.
    Dtype: that of `x`, real for complex; float64 for integers.

    Raises:
        AxisError: an axis is out of range.
        ValueError: `ord` is not a number.

    >>> tnp.linalg.vector_norm([3.0, -4.0], ord=1)
    np.float64(7.0)
    """
    x = _inexact(x)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    flat = reshape(x.transpose(rest + axes), (*(x.shape[k] for k in rest), -1))
    result = _vector_norm(flat, ord, flat.ndim - 1, False)
    if not keepdims:
        return result
    return reshape(result, _ones_at(x.shape, axes))


@numpy_function
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: float | str = "fro") -> Any:
    """Norms of the matrices in the last two axes.

    Shape: that of `x` without the last two axes; with `keepdims`, they stay with extent 1.
    Dtype: that of `x`, real for complex; float64 for integers.

    Raises:
        ValueError: there are fewer than two axes, or no such norm.

    >>> tnp.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    np.float64(5.0)
    """
    x = _inexact(x)
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


@numpy_function
def cond(x: Any, p: Any = None) -> Any:
    """The conditions of matrices: the norm times that of the inverse; infinite if there is none.

    `p` is an order of `norm`. By default, and for 2 and -2, it is the ratio of the largest singular
    value to the smallest, or the reverse; matrices need not be square then.

    Shape: that of `x` without its last two axes.
    Dtype: that of `x`, real; float64 for integers.

    Raises:
        LinAlgError: the matrices are empty, or not square.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: `p` is not an order of a matrix norm.

    >>> tnp.linalg.cond([[2.0, 0.0], [0.0, 4.0]])
    np.float64(2.0)
    """
    x = matrices(x)
    if 0 in x.shape:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    with np.errstate(all="ignore"):
        if p in (None, 2, -2):
            values = svdvals(x)
            condition = values[..., 0] / values[..., -1]
            condition = 1 / condition if p == -2 else condition
        else:
            axes = (x.ndim - 2, x.ndim - 1)
            inverse = inverses(square(x))
            condition = _matrix_norm(x, p, axes, False) * _matrix_norm(inverse, p, axes, False)
    is_known = any_of(isnan(x), axis=(-2, -1))
    return where(isnan(condition) & ~is_known, np.inf, condition).astype(condition.dtype)


def _inexact(x: Any) -> Any:
    x = as_array(x)
    return as_array(x, np.float64) if x.dtype.kind in "biu" else x


def _vector_norm(x: Any, ord: float | str, axis: int, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"ord={ord!r} is not a norm of vectors")
    if ord == 2:
        return euclidean(x, axis, keepdims)
    size = absolute(x)
    if ord == np.inf:
        return _largest(size, axis, keepdims)
    if ord == -np.inf:
        return smallest(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum(astype(not_equal(x, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    value = power(sum(power(size, ord), axis, keepdims=keepdims), 1.0 / ord)
    place: dict[str, Any] = {"axis": axis - x.ndim, "keepdims": keepdims}
    return with_derivative(value, "vector_norm", x, ord=float(ord), **place)


@derivative_rule("vector_norm")
def _of_vector_norm(
    value: Any, x: Any, *, tangents: Any, ord: float, axis: int, keepdims: bool
) -> Any:
    """The sum of x' (|x| / norm)^(ord - 1) along x / |x|, and 0 where x is 0, or the norm.

    An even order takes x itself: its powers have all derivatives, also at 0.
    """
    place: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    norm = with_derivative(value, "vector_norm", x, ord=ord, **place)
    norm = norm if keepdims else expand_dims(norm, axis)
    inverse = _inverse(norm) if ord > 1 else 1 / norm  # infinite, the power of it being 0
    if x.dtype.kind != "c" and ord > 0 and ord % 2 == 0:
        slope = power(x * inverse, ord - 1)
    else:
        is_zero = equal(x, 0)
        size = where(is_zero, x.real.dtype.type(1), absolute(x))
        direction = where(is_zero, x.dtype.type(0), sign(x))
        slope = direction * power(size * inverse, ord - 1)
    return _along(slope, tangents[0], (axis,), keepdims)


def euclidean(x: Any, axis: int | Sequence[int] | None, keepdims: bool) -> Any:
    """Roots of sums of squares over axes."""
    value = sqrt(sum_of_squares(x, axis, keepdims))
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    return of_squares(value, x, tuple([k - x.ndim for k in axes]), keepdims)


def of_squares(value: Any, x: Any, axes: tuple[int, ...], keepdims: bool, weight: Any = 1.0) -> Any:
    """A value that is the root of the sum of squares of x, over axes counted from the end.

    The sum may be multiplied by a weight, a float or of the shape of the value; it is a constant.
    """
    attrs: dict[str, Any] = {"axes": axes, "keepdims": keepdims}
    if isinstance(weight, float):
        return with_derivative(value, "norm", x, **attrs, weight=weight)
    return with_derivative(value, "norm", x, constants=(weight,), **attrs, weight=1.0)


@derivative_rule("norm")
def _of_norm(
    value: Any,
    x: Any,
    *weights: Any,
    tangents: Any,
    axes: tuple[int, ...],
    keepdims: bool,
    weight: float,
) -> Any:
    """The sum of x x' over the norm; 0 where the norm is 0, as for absolute values."""
    scale = _inverse(of_squares(value, x, axes, keepdims, *(weights or (weight,))))
    for factor in (*weights, weight):
        scale = scale * factor
    return scale * _along(x, tangents[0], axes, keepdims)


def _along(x: Any, t: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of x t, of complex numbers the inner product of vectors in the plane."""
    terms = real(conjugate(x) * t) if x.dtype.kind == "c" else x * t
    return sum(terms, axes, keepdims=keepdims)


@derivative_rule("power_of_norm")
def _of_power(
    value: Any,
    x: Any,
    *,
    tangents: Any,
    axes: tuple[int, ...],
    exponent: float,
    keepdims: bool,
    weight: float,
) -> Any:
    """Exponent * norm^(exponent - 2) times the sum of x x': no quotient, which 0 would leave open.

    Passes put it in the place of powers of norms.
    """
    along = exponent * weight * _along(x, tangents[0], axes, keepdims)
    if exponent == 2:
        return along
    norm = sqrt(weight * sum_of_squares(x, axes, keepdims))
    return power(of_squares(norm, x, axes, keepdims, weight), exponent - 2) * along


def _inverse(norm: Any) -> Any:
    """1 / norm, and 0 for 0, where this has no derivative: NaN, by the slope of the root."""
    return where(equal(norm, 0), sqrt(norm), 1 / norm)


def _matrix_norm(x: Any, ord: float | str, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return euclidean(x, axes, keepdims)
    row, column = axes
    if row == column:
        raise ValueError("Duplicate axes given.")
    if ord in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        fold: Any = {2: _largest, -2: smallest, "nuc": sum}[ord]
        result = fold(values, axis=-1)
        return reshape(result, _ones_at(x.shape, axes)) if keepdims else result
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"ord={ord!r} is not a norm of matrices")
    totals = sum(absolute(x), row if ord in (1, -1) else column, keepdims=True)
    extreme = _largest if ord in (1, np.inf) else smallest
    result = extreme(totals, axes)
    return reshape(result, _ones_at(x.shape, axes)) if keepdims else result


def _largest(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The largest of magnitudes over axes; of none, 0."""
    return largest(x, axis, keepdims=keepdims, initial=None if x.size else 0)


def _ones_at(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(shape))
