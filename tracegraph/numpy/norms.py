"""Norms of vectors and matrices, and the condition of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import astype, where
from tracegraph.numpy.matrices import matrices, square
from tracegraph.numpy.reductions import any as any_of
from tracegraph.numpy.reductions import max as largest
from tracegraph.numpy.reductions import min as smallest
from tracegraph.numpy.reductions import sum, sum_of_squares
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.spectra import svdvals
from tracegraph.numpy.systems import inverses
from tracegraph.numpy.ufuncs import absolute, isnan, not_equal, power, sqrt


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
    if ord is None:
        return sqrt(sum_of_squares(x, axis, keepdims))
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, (axes[0], axes[1]), keepdims)
    raise ValueError(f"ord={ord!r} needs one or two axes, got {len(axes)}")


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
        ValueError: `ord` is no number.

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
        ValueError: `p` is no order of a matrix norm.

    >>> tnp.linalg.cond([[2.0, 0.0], [0.0, 4.0]])
    np.float64(2.0)
    """
    x = matrices(x)
    if 0 in x.shape:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    with np.errstate(all="ignore"):
        if p in (None, 2, -2):
            values = svdvals(x)
            found = values[..., 0] / values[..., -1]
            found = 1 / found if p == -2 else found
        else:
            axes = (x.ndim - 2, x.ndim - 1)
            inverse = inverses(square(x))
            found = _matrix_norm(x, p, axes, False) * _matrix_norm(inverse, p, axes, False)
    is_known = any_of(isnan(x), axis=(-2, -1))
    return where(isnan(found) & ~is_known, np.inf, found).astype(found.dtype)


def _inexact(x: Any) -> Any:
    x = as_array(x)
    return as_array(x, np.float64) if x.dtype.kind in "biu" else x


def _vector_norm(x: Any, ord: float | str, axis: int, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"ord={ord!r} is not a norm of vectors")
    if ord == 2:
        return sqrt(sum_of_squares(x, axis, keepdims))
    size = absolute(x)
    if ord == np.inf:
        return largest(size, axis, keepdims=keepdims)
    if ord == -np.inf:
        return smallest(size, axis, keepdims=keepdims)
    if ord == 0:
        return sum(astype(not_equal(x, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    return power(sum(power(size, ord), axis, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: float | str, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return sqrt(sum_of_squares(x, axes, keepdims))
    row, column = axes
    if row == column:
        raise ValueError("Duplicate axes given.")
    if ord in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        fold: Any = {2: largest, -2: smallest, "nuc": sum}[ord]
        result = fold(values, axis=-1)
        return reshape(result, _ones_at(x.shape, axes)) if keepdims else result
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"ord={ord!r} is not a norm of matrices")
    totals = sum(absolute(x), row if ord in (1, -1) else column, keepdims=True)
    extreme = largest if ord in (1, np.inf) else smallest
    result = extreme(totals, axes)
    return reshape(result, _ones_at(x.shape, axes)) if keepdims else result


def _ones_at(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(shape))
