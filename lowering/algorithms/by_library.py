"""Factorizations by LAPACK's routines, for backends whose library has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.algorithms.lapack import (
    geqrf,
    getrf,
    getrf_batched,
    potrf,
    potrf_batched,
    trsm,
    trsm_batched,
    ungqr,
)
from lowering.algorithms.parts import numbers
from tracegraph import numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op


def cholesky(a: Any) -> Any:
    """The lower triangular L of A = L Lᴴ; NaN in all of it if A is not positive definite."""
    return _cholesky(potrf, a)


def cholesky_at_once(a: Any) -> Any:
    """The same for a batch of many matrices."""
    return _cholesky(potrf_batched, a)


def _cholesky(routine: Op, a: Any) -> Any:
    factor, info = apply(routine, tnp.matrix_transpose(a))
    row = numbers(a.shape[-1])
    lower = tnp.where(row[:, None] >= row, tnp.matrix_transpose(factor), 0)
    return tnp.where((info != 0)[..., None, None], tnp.nan, lower).astype(a.dtype)


def lu(a: Any) -> tuple[Any, Any, Any]:
    """The factors, packed, the pivots, and the rows in the order of the factors.

    Behind a pivot of 0 the library divides by it. Where that is 0 / 0, LAPACK leaves 0.
    """
    *batch, m, _ = a.shape
    rows = tnp.broadcast_to(numbers(m).astype("float32"), (*batch, m))  # exact: they are moved only
    packed, order, pivots, info = apply(getrf, tnp.matrix_transpose(a), rows)
    return _mended(packed, info), pivots - 1, order.astype("int32")


def lu_at_once(a: Any) -> tuple[Any, Any, Any]:
    """The same for a batch of many square matrices."""
    *batch, n, _ = a.shape
    packed, pivots, info = apply(getrf_batched, tnp.matrix_transpose(a))
    pivots = pivots - 1
    row = tnp.broadcast_to(numbers(n).astype("int32"), (*batch, n))
    for k in reversed(range(n)):  # where each row was before the swap: one kernel in all
        pivot = pivots[..., k, None]
        row = tnp.where(row == k, pivot, tnp.where(row == pivot, np.int32(k), row))
    return _mended(packed, info), pivots, row


def _mended(packed: Any, info: Any) -> Any:
    factors = tnp.matrix_transpose(packed)
    return tnp.where((info != 0)[..., None, None] & tnp.isnan(factors), 0, factors)


def qr(a: Any) -> tuple[Any, Any]:
    """Q with orthonormal columns and upper triangular R of A = Q R."""
    *_, m, n = a.shape
    k = min(m, n)
    packed, tau = apply(geqrf, tnp.matrix_transpose(a))
    r = tnp.matrix_transpose(packed)[..., :k, :]
    r = tnp.where(numbers(k)[:, None] <= numbers(n), r, 0)
    q = apply(ungqr, packed[..., :k, :], tau)
    return tnp.matrix_transpose(q), r


def triangular_solve(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The x of A x = b, from one triangle of A."""
    return apply(trsm, b, a, lower=lower, unit=unit)


def triangular_solve_at_once(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The same for a batch of many systems."""
    return apply(trsm_batched, b, a, lower=lower, unit=unit)
