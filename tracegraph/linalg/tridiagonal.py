"""Tridiagonal systems, by elimination with partial pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.control import scan
from tracegraph.numpy.matrices import operands, require_success
from tracegraph.transforms.implicit import custom_linear_solve


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The x of A x = b, where A is tridiagonal.

    Row i of A is ``dl[i], d[i], du[i]`` in the columns i - 1, i and i + 1: the first element of
    `dl` and the last of `du` are not used. Elimination swaps two rows where that makes a pivot
    larger, as LAPACK's gtsv does (Golub and Van Loan, Matrix Computations, 4th ed., 4.3): all
    matrices that are not singular have a solution. Those give infinities and NaN if it is traced.
    Each of n steps depends on the one before; the batch and the columns of `b` are parallel.

    Args:
        dl: the lower diagonal, of shape (…, n).
        d: the diagonal, likewise.
        du: the upper diagonal, likewise.
        b: right-hand sides, of shape (…, n, k).

    Shape: that of `b`, with the batch of all.
    Dtype: the common one of all; float64 for integers.

    Raises:
        LinAlgError: a matrix is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: extents do not fit.

    >>> ones = np.ones(3)
    >>> tracegraph.linalg.tridiagonal_solve(ones, 2 * ones, ones, [[3.0], [4.0], [3.0]]).ravel()
    array([1., 1., 1.])
    """
    dl, d, du, b = operands(dl, d, du, b)
    if b.ndim < 2 or any(x.ndim < 1 or x.shape[-1] != b.shape[-2] for x in (dl, d, du)):
        shapes = ", ".join(str(x.shape) for x in (dl, d, du, b))
        raise ValueError(
            f"tridiagonal_solve: needs three diagonals of shape (…, n) and b of (…, n, k), got "
            f"{shapes}"
        )
    batch = np.broadcast_shapes(dl.shape[:-1], d.shape[:-1], du.shape[:-1], b.shape[:-2])
    n, k = b.shape[-2:]
    dl, d, du = (tnp.broadcast_to(x, (*batch, n)) for x in (dl, d, du))
    b = tnp.broadcast_to(b, (*batch, n, k))
    if 0 in b.shape:
        return b

    def matvec(x: Any) -> Any:
        return _product(dl, d, du, x)

    def solve(_: Any, b: Any) -> Any:
        return _eliminated(dl, d, du, b)

    def transpose_solve(_: Any, b: Any) -> Any:
        return _eliminated(_moved(du, 1), d, _moved(dl, -1), b)

    with np.errstate(all="ignore"):
        found = custom_linear_solve(matvec, b, solve, transpose_solve)
    return require_success(found, b, "Singular matrix")


def _product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    zero = tnp.zeros((*x.shape[:-2], 1, x.shape[-1]), x.dtype)
    before = tnp.concatenate([zero, x[..., :-1, :]], axis=-2)
    after = tnp.concatenate([x[..., 1:, :], zero], axis=-2)
    return dl[..., None] * before + d[..., None] * x + du[..., None] * after


def _moved(x: Any, by: int) -> Any:
    """The elements of a diagonal moved by one place, with 0 where none comes from."""
    zero = tnp.zeros((*x.shape[:-1], 1), x.dtype)
    parts = [zero, x[..., :-1]] if by > 0 else [x[..., 1:], zero]
    return tnp.concatenate(parts, axis=-1)


def _eliminated(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The solution: one pass down the rows, and one up."""
    rows = [tnp.moveaxis(x[..., None], -2, 0) for x in (dl, d, du)]
    dl, d, du = rows
    b = tnp.moveaxis(b, -2, 0)
    zero = tnp.zeros(d.shape[1:], d.dtype)

    def down(current: Any, following: Any) -> Any:
        """Eliminate one element of the following row; the larger pivot leads."""
        (d0, e0, b0), (l1, d1, u1, b1) = current, following
        swap = tnp.abs(l1) > tnp.abs(d0)
        pivot = tnp.where(swap, l1, d0)
        first, second = tnp.where(swap, d1, e0), tnp.where(swap, u1, 0).astype(d.dtype)
        right = tnp.where(swap, b1, b0)
        factor = tnp.where(swap, d0, l1) / pivot
        rest = (
            tnp.where(swap, e0, d1) - factor * first,
            tnp.where(swap, 0, u1).astype(d.dtype) - factor * second,
            tnp.where(swap, b0, b1) - factor * right,
        )
        return rest, (pivot, first, second, right)

    last, upper = scan(down, (d[0], du[0], b[0]), (dl[1:], d[1:], du[1:], b[1:]))

    def up(known: Any, row: Any) -> Any:
        (x1, x2), (pivot, first, second, right) = known, row
        x = (right - first * x1 - second * x2) / pivot
        return (x, x1), x

    end = last[2] / last[0]
    beyond = tnp.broadcast_to(zero, end.shape)
    _, above = scan(up, (end, beyond), upper, reverse=True)
    return tnp.moveaxis(tnp.concatenate([above, end[None]], axis=0), 0, -2)
