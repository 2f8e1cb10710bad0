"""Factorizations by LAPACK's routines, for backends whose library has them."""

from __future__ import annotations

from typing import Any

from tracegraph import numpy as tnp
from tracegraph.algorithms.lapack import geqrf, getrf, potrf, trsm, ungqr
from tracegraph.algorithms.parts import numbers
from tracegraph.arrays.eager import apply


def cholesky(a: Any) -> Any:
    """The lower triangular L of A = L Lᴴ; NaN in all of it if A is not positive definite."""
    factor, info = apply(potrf, a)
    row = numbers(a.shape[-1])
    lower = tnp.where(row[:, None] >= row, factor, 0)
    return tnp.where((info != 0)[..., None, None], tnp.nan, lower).astype(a.dtype)


def lu(a: Any) -> tuple[Any, Any, Any]:
    """The factors, packed, the pivots, and the rows in the order of the factors.

    Behind a pivot of 0 the library divides by it. Where that is 0 / 0, LAPACK leaves 0.
    """
    *batch, m, _ = a.shape
    rows = tnp.broadcast_to(numbers(m).astype("float32"), (*batch, m))  # exact: they are moved only
    packed, order, pivots, info = apply(getrf, tnp.matrix_transpose(a), rows)
    factors = tnp.matrix_transpose(packed)
    spoiled = (info != 0)[..., None, None] & tnp.isnan(factors)
    return tnp.where(spoiled, 0, factors), pivots - 1, order.astype("int32")


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
