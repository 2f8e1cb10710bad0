"""The QR factorization."""

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
    check_matrices,
    halved_triangle,
    mixed,
    swapped,
    triangle,
    well_conditioned,
)


def _type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    check_matrices("qr", a)
    *batch, m, n = a.shape
    k = min(m, n)
    return ArrayType(a.dtype, (*batch, m, k)), ArrayType(a.dtype, (*batch, k, n))


def _reference(a: Any) -> tuple[NDArray, NDArray]:
    with np.errstate(all="ignore"):
        q, r = np.linalg.qr(np.asarray(a))
    return q, r


def _samples() -> list[Sample]:
    arrays = [
        *(well_conditioned(5, dtype)[:, :3] for dtype in DTYPES),
        *(well_conditioned(4, dtype) for dtype in DTYPES),
        well_conditioned(5, np.complex128)[:3],
        mixed((2, 2, 4, 3)),
        np.full((1, 1), -2.0),
        np.array([[1.0], [1e-3]]),
        np.zeros((3, 0)),
        np.zeros((0, 2, 2)),
    ]
    return [Sample((np.ascontiguousarray(a),)) for a in arrays]


def _first(f: Emitter, x: Any, k: int) -> Any:
    """The first k columns."""
    rank = x.ndim
    return f.slice(x, starts=(0,) * rank, steps=(1,) * rank, sizes=(*x.shape[:-1], k))


def _prepare(f: Emitter, out: Any, a: Any) -> tuple[Any, ...]:
    q, r = out
    return q, r


def _tangent(f: Emitter, values: Any, tangents: Any) -> Any:
    """Q' = X + Q (S - M) and R' = Qᴴ A' - S R, where X = A' R⁻¹ for the columns that make Q.

    M = Qᴴ X, and S = Qᴴ Q' is skew-Hermitian: below the diagonal that of M, so that R' is
    triangular, with a real diagonal.
    """
    (q, r), (t,) = values, tangents
    k = q.shape[-1]
    turned = swapped(f, _first(f, r, k))
    x = swapped(f, f.triangular_solve(turned, swapped(f, _first(f, t, k)), lower=True))
    inner = f.matmul(adjoint(f, q), x)
    half = halved_triangle(f, inner)
    skew = f.subtract(half, adjoint(f, half))
    of_q = f.add(x, f.matmul(q, f.subtract(skew, inner)))
    of_r = f.subtract(f.matmul(adjoint(f, q), t), f.matmul(skew, r))
    return of_q, triangle(f, of_r, lower=False)


qr = register(
    Op(
        "qr",
        "Q with orthonormal columns and upper triangular R of A = Q R, reduced.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=along_lanes("qr"),
        derivative=Rewrite(_prepare, _tangent),
    )
)
