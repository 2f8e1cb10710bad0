"""LAPACK's routines as ops, in which programs for backends with such a library are written.

They are not registered: planning puts them in the place of others. Each updates its first operands,
of which planning makes copies, and takes column-major matrices: `x` transposed, where this module
writes xᵀ. The axes before the last two are a batch.

    potrf(aᵀ)            Lᵀ in the upper triangle, the rest of aᵀ as it is; info
    getrf(aᵀ, order)     the packed factors, transposed; order with its rows swapped; pivots from 1;
                         info
    geqrf(aᵀ)            R and the reflectors below it, transposed; their factors τ
    ungqr(hᵀ, τ)         Q of the reflectors, transposed
    trsm(b, a)           the x of a x = b, from one triangle of `a`

Those with `_batched` do the same for a whole batch at once; getrf_batched has no order, and takes
square matrices.

An info is 0, or else the number of the first column at which a factorization fails.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracegraph.ir.op import Op, Opaque, get
from tracegraph.ir.types import ArrayType

NDArray = np.ndarray[Any, Any]
_INT32 = np.dtype(np.int32)


def _op(name: str, doc: str, type_rule: Callable[..., Any], reference: Callable[..., Any]) -> Op:
    return Op(name, doc, type_rule, reference, Opaque(), lambda: ())


def _numbers(*batch: int) -> ArrayType:
    return ArrayType(_INT32, batch)


def _swapped(x: NDArray) -> NDArray:
    return np.swapaxes(x, -1, -2)


def _potrf_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    return a, _numbers(*a.shape[:-2])


def _potrf(a: NDArray) -> tuple[NDArray, NDArray]:
    lower: NDArray = get("cholesky").reference(_swapped(a))
    failed: NDArray = np.asarray(np.isnan(lower).any((-2, -1)))
    factored = np.triu(_swapped(lower)) + np.tril(a, -1)
    return np.where(failed[..., None, None], a, factored), np.asarray(failed, _INT32)


potrf = _op("potrf", "The Cholesky factorization of LAPACK.", _potrf_type, _potrf)


def _getrf_type(a: ArrayType, order: ArrayType) -> tuple[ArrayType, ...]:
    *batch, n, m = a.shape
    return a, order, _numbers(*batch, min(m, n)), _numbers(*batch)


def _getrf(a: NDArray, order: NDArray) -> tuple[NDArray, ...]:
    factors, pivots, rows = get("lu").reference(_swapped(a))
    zero = np.diagonal(factors, axis1=-2, axis2=-1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(_INT32)
    return _swapped(factors), np.take_along_axis(order, rows, -1), pivots + 1, info


getrf = _op("getrf", "The LU factorization of LAPACK.", _getrf_type, _getrf)


def _geqrf_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    *batch, n, m = a.shape
    return a, ArrayType(a.dtype, (*batch, min(m, n)))


def _geqrf(a: NDArray) -> tuple[NDArray, NDArray]:
    reflectors, factors = np.linalg.qr(_swapped(a), mode="raw")
    return reflectors, factors


geqrf = _op("geqrf", "The QR factorization of LAPACK, packed.", _geqrf_type, _geqrf)


def _ungqr_type(h: ArrayType, tau: ArrayType) -> ArrayType:
    return h


def _ungqr(h: NDArray, tau: NDArray) -> NDArray:
    """The first columns of H₁ H₂ …, each I - τ v vᴴ."""
    *batch, k, m = h.shape
    found = np.empty((prod(batch), k, m), h.dtype)
    for q, reflectors, factors in zip(found, h.reshape(-1, k, m), tau.reshape(-1, k), strict=True):
        columns = np.eye(m, k, dtype=h.dtype)
        for i in reversed(range(k)):
            v = np.concatenate([np.zeros(i), np.ones(1), reflectors[i, i + 1 :]]).astype(h.dtype)
            columns -= factors[i] * np.outer(v, np.conj(v) @ columns)
        q[...] = columns.T
    return found.reshape(h.shape)


ungqr = _op("ungqr", "Q of the reflectors of geqrf.", _ungqr_type, _ungqr)


def _trsm_type(b: ArrayType, a: ArrayType, *, lower: bool, unit: bool) -> ArrayType:
    return b


def _trsm(b: NDArray, a: NDArray, *, lower: bool, unit: bool) -> NDArray:
    found: NDArray = get("triangular_solve").reference(a, b, lower=lower, unit=unit)
    return found


trsm = _op("trsm", "The solution of a triangular system, of BLAS.", _trsm_type, _trsm)

potrf_batched = _op("potrf_batched", potrf.doc, _potrf_type, _potrf)
trsm_batched = _op("trsm_batched", trsm.doc, _trsm_type, _trsm)


def _getrf_batched_type(a: ArrayType) -> tuple[ArrayType, ...]:
    *batch, n, _ = a.shape
    return a, _numbers(*batch, n), _numbers(*batch)


def _getrf_batched(a: NDArray) -> tuple[NDArray, ...]:
    factors, _, pivots, info = _getrf(a, np.zeros(a.shape[:-1]))
    return factors, pivots, info


getrf_batched = _op("getrf_batched", getrf.doc, _getrf_batched_type, _getrf_batched)

BATCHED = (potrf_batched, getrf_batched, trsm_batched)

UPDATED = {potrf: 1, getrf: 2, geqrf: 1, ungqr: 1, trsm: 1, **dict.fromkeys(BATCHED, 1)}
"""All of them: how many operands each updates."""
