"""Tridiagonal systems, by elimination with partial pivoting."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.linalg.matrices import operands, require_success

__all__ = ["tridiagonal_solve"]


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The x of A x = b, where A is tridiagonal.

    Row i of A is ``dl[i], d[i], du[i]`` in the columns i - 1, i and i + 1: the first element of
    `dl` and the last of `du` are not used. Elimination swaps two rows where that makes a pivot
    larger, as LAPACK's gtsv does (Golub and Van Loan, Matrix Computations, 4th ed., 4.3): all
    matrices that are not singular have a solution. Those give infinities and NaN if it is traced.
    The host calls gtsv. On a GPU, threads eliminate the inner unknowns of a few rows each, and what
    is left of neighbours is merged in pairs, with swaps of rows in each step: a system of n rows
    takes some log n steps that depend on each other. Only roundings differ.

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

    with np.errstate(all="ignore"):
        found = apply(get("tridiagonal_solve"), dl, d, du, b)
    return require_success(found, b, "Singular matrix")
