"""Cross and outer products, powers of matrices; diagonals and traces of the last two axes."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph.numpy import selecting
from tracegraph.numpy.contractions import cross as cross_of_any
from tracegraph.numpy.contractions import matmul
from tracegraph.numpy.contractions import outer as outer_of_ravelled
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.generated import identity
from tracegraph.numpy.linalg.systems import inv
from tracegraph.numpy.shapes import broadcast_to

__all__ = ["cross", "diagonal", "matrix_power", "outer", "trace"]


@numpy_function
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Cross products of vectors of three elements.

    Shape: that to which the operands broadcast.
    Dtype: the common one of the operands.

    Raises:
        ValueError: an extent is not 3, or the shapes do not broadcast.
        AxisError: the axis is out of range.

    >>> tnp.linalg.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
    x1, x2 = as_array(x1), as_array(x2)
    extents = tuple([x.shape[normalize_axis_index(axis, x.ndim)] for x in (x1, x2)])
    if extents != (3, 3):
        raise ValueError(
            "numpy.linalg.cross takes vectors of 3 elements, got {} and {}".format(*extents)
        )
    return cross_of_any(x1, x2, axis=axis)


@numpy_function
def outer(x1: Any, x2: Any, /) -> Any:
    """All products of elements of two vectors, as a matrix.

    Shape: (m, n) of (m,) and (n,).
    Dtype: the common one of the operands.

    Raises:
        ValueError: an operand is not a vector.

    >>> tnp.linalg.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """
    x1, x2 = as_array(x1), as_array(x2)
    if (x1.ndim, x2.ndim) != (1, 1):
        raise ValueError(
            f"numpy.linalg.outer takes vectors, got arrays of {x1.ndim} and {x2.ndim} axes; "
            "numpy.outer ravels its operands"
        )
    return outer_of_ravelled(x1, x2)


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


@numpy_function
def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of square matrices, n static, by repeated squaring; of inverses, if negative.

    Shape: that of `a`.
    Dtype: that of `a`; float64 for integers if `n` is negative.

    Raises:
        LinAlgError: the matrices are not square.
        TypeError: `n` is not an integer.

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
