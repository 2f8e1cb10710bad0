"""The Cholesky factorization."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter, Rewrite
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import along_lanes
from tracegraph.ops.factorizations.matrices import (
    DTYPES,
    NDArray,
    adjoint,
    check_square,
    each_matrix,
    halved_triangle,
    hermitian,
    positive_definite,
)


def _type(a: ArrayType) -> ArrayType:
    check_square("cholesky", a)
    return ArrayType(a.dtype, a.shape)


def _reference(a: Any) -> NDArray:
    a = np.asarray(a)
    with np.errstate(all="ignore"):
        try:
            return np.asarray(np.linalg.cholesky(a))
        except np.linalg.LinAlgError:
            pass
        found: NDArray = np.full_like(a, np.nan)
        for index in each_matrix(a):
            try:
                found[index] = np.linalg.cholesky(a[index])
            except np.linalg.LinAlgError:
                continue
    return found


def _samples() -> list[Sample]:
    indefinite = np.stack([np.diag([1.0, -1.0]), np.array([[4.0, 9.0], [2.0, 5.0]]), np.eye(2)])
    arrays = [
        *(positive_definite(5, dtype) for dtype in DTYPES),
        positive_definite(3, np.float64, (2, 2)),
        np.full((1, 1), 9.0),
        np.zeros((0, 0)),
        np.zeros((0, 2, 2)),
        indefinite,
    ]
    return [Sample((a,)) for a in arrays]


def _prepare(f: Emitter, factor: Any, a: Any) -> tuple[Any, ...]:
    return (factor,)


def _tangent(f: Emitter, values: Any, tangents: Any) -> Any:
    """L Φ(L⁻¹ A' L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal."""
    (factor,), (t,) = values, tangents
    half = f.triangular_solve(factor, hermitian(f, t), lower=True)
    whole = f.triangular_solve(factor, adjoint(f, half), lower=True)
    return f.matmul(factor, halved_triangle(f, whole))


cholesky = register(
    Op(
        "cholesky",
        "The lower triangular L of A = L Lᴴ, from the lower triangle of A; else NaN.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=along_lanes("cholesky"),
        derivative=Rewrite(_prepare, _tangent),
    )
)
"""NaN stands in all elements where a matrix is not positive definite."""
