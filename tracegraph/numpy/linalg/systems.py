"""Systems of linear equations and inverses, by LU factorization."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import numpy_function
from tracegraph.numpy.generated import identity
from tracegraph.numpy.linalg.matrices import (
    operands,
    require_square,
    require_success,
    square,
    with_batch,
)
from tracegraph.numpy.selecting import take_along_axis
from tracegraph.numpy.shapes import reshape

__all__ = ["inv", "solve", "tensorinv", "tensorsolve"]

_LU, _TRIANGULAR_SOLVE = get("lu"), get("triangular_solve")


def solve_factored(factors: Any, rows: Any, b: Any) -> Any:
    """The solution for matrices factored by the op lu, of one batch with b."""
    moved = take_along_axis(b, rows[..., None], axis=-2)
    half = apply(_TRIANGULAR_SOLVE, factors, moved, lower=True, unit=True)
    return apply(_TRIANGULAR_SOLVE, factors, half, lower=False)


@numpy_function
def solve(a: Any, b: Any) -> Any:
    """The x of a @ x = b, by LU factorization with partial pivoting.

    `b` is a vector if it has one axis, or else matrices; axes before the last two broadcast. A
    singular matrix gives infinities and NaN if it is traced.

    Shape: that of `b`, with the batch of both.
    Dtype: the common one of both; float64 for integers.

    Raises:
        LinAlgError: the matrices are not square; or one is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: extents do not fit.

    >>> tnp.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    array([1. , 0.5])
    """
    a, b = operands(a, b)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"solve: needs matrices, got shape {a.shape}")
    require_square(a)
    right = b[:, None] if b.ndim == 1 else b
    if right.ndim < 2 or right.shape[-2] != a.shape[-1]:
        raise ValueError(f"solve: {a.shape} and {b.shape} do not fit: rows of both must agree")
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    factors, _, rows = apply(_LU, a)
    rows = with_batch(rows[..., None], batch)[..., 0]
    found = solve_factored(with_batch(factors, batch), rows, with_batch(right, batch))
    found = require_success(found, right, "Singular matrix")
    return found[..., 0] if b.ndim == 1 else found


@numpy_function
def inv(a: Any) -> Any:
    """The inverses of square matrices. A singular one gives infinities and NaN if it is traced.

    Shape: that of `a`.
    Dtype: that of `a`; float64 for integers.

    Raises:
        LinAlgError: the matrices are not square; or one is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    a = square(a)
    return require_success(inverses(a), a, "Singular matrix")


def inverses(a: Any) -> Any:
    """The inverses; infinities and NaN if there is none."""
    factors, _, rows = apply(_LU, a)
    eye = with_batch(identity(a.shape[-1], a.dtype), a.shape[:-2])
    return solve_factored(factors, rows, eye)


@numpy_function
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    """The x of tensordot(a, x, x.ndim) = b; `axes` of `a` are moved to its end before.

    Shape: that of the axes of `a` behind those of `b`.
    Dtype: the common one of both; float64 for integers.

    Raises:
        LinAlgError: `a` is not square, seen as a matrix; or it is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.tensorsolve(np.eye(4).reshape(2, 2, 4), np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    a, b = operands(a, b)
    if axes is not None:
        moved = [axis % a.ndim for axis in axes]
        a = moveaxis(a, moved, range(a.ndim - len(moved), a.ndim))
    shape = a.shape[b.ndim :]
    count = prod(shape)
    if prod(a.shape) != count * count or b.size != count:
        raise np.linalg.LinAlgError(
            f"tensorsolve: {a.shape} and {b.shape} do not fit: prod(a.shape[:b.ndim]) must be "
            "prod(a.shape[b.ndim:])"
        )
    return reshape(solve(reshape(a, (count, count)), reshape(b, (-1,))), shape)


@numpy_function
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse for tensordot(…, ind), the first `ind` axes being the rows of a matrix.

    Shape: the axes of `a` from `ind` on, then those before.
    Dtype: that of `a`; float64 for integers.

    Raises:
        LinAlgError: `a` is not square, seen as a matrix; or it is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: `ind` is not positive.

    >>> tnp.linalg.tensorinv(2 * np.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    (a,) = operands(a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}")
    left, right = a.shape[:ind], a.shape[ind:]
    return reshape(inv(reshape(a, (prod(left), prod(right)))), (*right, *left))
