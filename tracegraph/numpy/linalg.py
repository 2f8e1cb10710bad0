"""`numpy.linalg`: products, norms and powers here, and what is made of factorizations."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import DTypeLike

from tracegraph.errors import UnsupportedByTracerError
from tracegraph.numpy import selecting
from tracegraph.numpy.axes import matrix_transpose
from tracegraph.numpy.chains import multi_dot
from tracegraph.numpy.contractions import cross, matmul, outer, tensordot, vecdot
from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import astype
from tracegraph.numpy.factorizations import cholesky, qr
from tracegraph.numpy.generated import identity
from tracegraph.numpy.reductions import max as largest
from tracegraph.numpy.reductions import min as smallest
from tracegraph.numpy.reductions import sum, sum_of_squares
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.systems import det, inv, slogdet, solve, tensorinv, tensorsolve
from tracegraph.numpy.ufuncs import absolute, not_equal, power, sqrt

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "qr",
    "slogdet",
    "solve",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


@numpy_function
def norm(
    x: Any,
    ord: float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """Norms of vectors, of any order, or of matrices: "fro", 1, -1, inf and -inf.

    Without `ord`, the root of the sum of squares over the axes.

    Shape: that of `x` without the axes, all by default; with `keepdims`, they stay with extent
    1.
    Dtype: that of `x`, real for complex; float64 for integers.

    Raises:
        UnsupportedByTracerError: a matrix norm that needs singular values.
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
        UnsupportedByTracerError: a norm that needs singular values.
        ValueError: there are fewer than two axes.

    >>> tnp.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    np.float64(5.0)
    """
    x = _inexact(x)
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Diagonals of the matrices in the last two axes.

    Shape: that of `x` without its last two axes, then the diagonal's length.
    Dtype: that of `x`.

    Raises:
        ValueError: there are fewer than two axes.

    >>> tnp.linalg.diagonal([[1, 2], [3, 4]])
    array([1, 4])
    """
    return selecting.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Any:
    """Sums of the diagonals of the matrices in the last two axes.

    Shape: that of `x` without its last two axes.
    Dtype: 64-bit integers for bools and integers, else that of `x`; or `dtype`.

    Raises:
        ValueError: there are fewer than two axes.

    >>> tnp.linalg.trace([[1, 2], [3, 4]])
    np.int64(5)
    """
    return selecting.trace(x, offset, -2, -1, dtype)


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
    if ord not in (1, -1, np.inf, -np.inf):
        raise UnsupportedByTracerError(
            f"the matrix norm ord={ord!r}", 'use "fro", 1, -1, inf or -inf'
        )
    row, column = axes
    totals = sum(absolute(x), row if ord in (1, -1) else column, keepdims=True)
    extreme = largest if ord in (1, np.inf) else smallest
    result = extreme(totals, axes)
    return reshape(result, _ones_at(x.shape, axes)) if keepdims else result


def _ones_at(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(shape))


@numpy_function
def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of square matrices, n static, by repeated squaring; of inverses, if negative.

    Shape: that of `a`.
    Dtype: that of `a`; float64 for integers if `n` is negative.

    Raises:
        LinAlgError: the matrices are not square.
        TypeError: `n` is no integer.

    >>> tnp.linalg.matrix_power([[1, 1], [0, 1]], 3)
    array([[1, 3],
           [0, 1]])
    """
    a, n = as_array(a), index(n)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"matrix_power: needs square matrices, got shape {a.shape}")
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return broadcast_to(identity(a.shape[-1], a.dtype), a.shape).copy()
    result: Any = None
    while n:
        if n % 2:
            result = a if result is None else matmul(result, a)
        n //= 2
        a = matmul(a, a) if n else a
    return result
