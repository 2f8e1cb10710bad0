"""The singular value decomposition."""

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
    diagonal,
    differences_inverted,
    distance,
    finite_part,
    identity,
    last_first,
    mixed,
    real_dtype,
    real_part,
    separated,
    well_conditioned,
)


def _type(
    a: ArrayType, *, vectors: bool = True, order: int = 0
) -> ArrayType | tuple[ArrayType, ...]:
    check_matrices("svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    values = ArrayType(real_dtype(a.dtype), (*batch, k))
    if not vectors:
        return values
    return ArrayType(a.dtype, (*batch, m, k)), values, ArrayType(a.dtype, (*batch, k, n))


def _reference(
    a: Any, *, vectors: bool = True, order: int = 0
) -> NDArray | tuple[NDArray, NDArray, NDArray]:
    a, is_finite = finite_part(a)
    if not vectors:
        values = np.linalg.svd(a, compute_uv=False)
        return np.where(is_finite[..., None], values, np.nan).astype(values.dtype)
    u, values, vh = np.linalg.svd(a, full_matrices=False)
    values = np.where(is_finite[..., None], values, np.nan).astype(values.dtype)
    is_finite = is_finite[..., None, None]
    u, vh = (np.where(is_finite, x, np.nan).astype(a.dtype) for x in (u, vh))
    return u, values, vh


def _samples() -> list[Sample]:
    not_finite = np.stack([np.ones((3, 2)), np.full((3, 2), np.nan), np.full((3, 2), np.inf)])
    arrays = [
        *(well_conditioned(5, dtype)[:, :3] for dtype in DTYPES),
        well_conditioned(4, np.complex128),
        mixed((2, 2, 3, 4)),
        np.ones((3, 4)),
        np.zeros((3, 0)),
        np.zeros((0, 2, 2)),
        not_finite,
    ]
    values_alone = [mixed((3, 5), np.complex64), np.zeros((2, 0, 3))]
    return [
        *(Sample((np.ascontiguousarray(a),), {"vectors": True}) for a in arrays),
        *(Sample((a,), {"vectors": False}) for a in values_alone),
    ]


def _results(f: Emitter, a: Any, *, vectors: bool = True, order: int = 0) -> Any:
    """The same, equal singular values being apart for the vectors, and those of 0 positive.

    As for `eigh`.
    """
    if not vectors:
        return f.svd(a, vectors=True, order=order)[1]
    u, s, vh = f.svd(a, vectors=True, order=order + 1)
    return u, _separated(f, s, order + 1), vh


def _separated(f: Emitter, s: Any, order: int) -> Any:
    """Singular values as they are but for a distance, that of 0 and the least being half of it."""
    k = s.shape[-1]
    if k == 0:
        return s
    found = last_first(f, separated(f, last_first(f, s), order))
    place = f.cast(f.iota(size=k, dtype=np.dtype(np.int64)), dtype=s.dtype)
    least = f.subtract(s.dtype.type(k - 0.5), place)
    least = f.multiply(distance(f, s, order), least)
    raised = f.maximum(found, least)
    return f.add(found, f.stop_gradient(f.subtract(raised, found)))


def _prepare(
    f: Emitter, out: Any, a: Any, *, vectors: bool = True, order: int = 0
) -> tuple[Any, ...]:
    if not vectors:
        u, s, vh = f.svd(a, vectors=True, order=order)
        return u, f.sign(s), vh
    u, s, vh = out
    return u, s, vh, f.divide(s.dtype.type(1), s), differences_inverted(f, s, squares=True)


def _tangent(
    f: Emitter, values: Any, tangents: Any, *, vectors: bool = True, order: int = 0
) -> Any:
    """S' = Re diag(X), where X = Uᴴ A' V; and with Fᵢⱼ = 1 / (sⱼ² - sᵢ²) off the diagonal,

    U' = U (F ∘ (X S + S Xᴴ) + i Im diag(X) / S) + (1 - U Uᴴ) A' V / S, and
    V' = V F ∘ (S X + Xᴴ S)                      + (1 - V Vᴴ) A'ᴴ U / S.

    Large for vectors of equal singular values, and those of 0, which are not functions of A. Alone,
    a singular value of 0 has the derivative 0, as an absolute value has.
    """
    (u, s, vh, *rest), (t,) = values, tangents
    left, v = adjoint(f, u), adjoint(f, vh)
    mapped = f.matmul(t, v)
    inner = f.matmul(left, mapped)
    of_values = real_part(f, diagonal(f, inner))
    if not vectors:
        return f.multiply(s, of_values)
    inverse, factor = rest
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    dtype = inner.dtype
    along_row = (*s.shape[:-1], 1, k)
    row = f.cast(f.reshape(s, shape=along_row), dtype=dtype)
    column = f.cast(f.reshape(s, shape=(*s.shape, 1)), dtype=dtype)
    over = f.cast(f.reshape(inverse, shape=along_row), dtype=dtype)
    factor = f.cast(factor, dtype=dtype)
    turned = adjoint(f, inner)
    of_u = f.multiply(factor, f.add(f.multiply(row, inner), f.multiply(column, turned)))
    of_v = f.multiply(factor, f.add(f.multiply(column, inner), f.multiply(row, turned)))
    if dtype.kind == "c":
        skew = f.multiply(dtype.type(0.5), f.subtract(inner, turned))
        phase = f.multiply(identity(f, k, dtype), f.multiply(skew, over))
        of_u = f.add(of_u, phase)
    of_u, of_v = f.matmul(u, of_u), f.matmul(v, of_v)
    if m > k:
        outside = f.subtract(mapped, f.matmul(u, inner))
        of_u = f.add(of_u, f.multiply(outside, over))
    if n > k:
        outside = f.subtract(f.matmul(adjoint(f, t), u), f.matmul(v, turned))
        of_v = f.add(of_v, f.multiply(outside, over))
    return of_u, of_values, adjoint(f, of_v)


svd = register(
    Op(
        "svd",
        "The singular values of matrices, descending, and with `vectors` U before and Vᴴ after "
        "them, of A = U S Vᴴ, reduced; NaN if one is not finite.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=along_lanes("svd"),
        derivative=Rewrite(_prepare, _tangent, results=_results),
    )
)
"""Pairs of vectors are determined up to a factor of size 1, and those of equal singular values up
to a rotation: backends differ in these."""
