"""The eigenvalues and eigenvectors of Hermitian matrices."""

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
    diagonal,
    differences_inverted,
    finite_part,
    hermitian,
    mixed,
    positive_definite,
    real_dtype,
    real_part,
    separated,
)


def _type(
    a: ArrayType, *, vectors: bool = True, order: int = 0
) -> ArrayType | tuple[ArrayType, ...]:
    check_square("eigh", a)
    values = ArrayType(real_dtype(a.dtype), a.shape[:-1])
    return (values, ArrayType(a.dtype, a.shape)) if vectors else values


def _reference(
    a: Any, *, vectors: bool = True, order: int = 0
) -> NDArray | tuple[NDArray, NDArray]:
    a, is_finite = finite_part(np.tril(a))
    if not vectors:
        return np.where(is_finite[..., None], np.linalg.eigvalsh(a), np.nan).astype(a.real.dtype)
    values, basis = np.linalg.eigh(a)
    values = np.where(is_finite[..., None], values, np.nan)
    basis = np.where(is_finite[..., None, None], basis, np.nan)
    return values.astype(a.real.dtype), basis.astype(a.dtype)


def _samples() -> list[Sample]:
    not_finite = np.stack([np.eye(3), np.full((3, 3), np.nan), np.diag([1.0, np.inf, 2.0])])
    arrays = [
        *(positive_definite(5, dtype) for dtype in DTYPES),
        mixed((2, 2, 4, 4), np.complex128),
        np.full((1, 1), -2.0),
        np.diag([2.0, -1.0, 2.0, 0.0]),
        np.zeros((0, 0)),
        np.zeros((0, 2, 2)),
        not_finite,
    ]
    values_alone = [positive_definite(4, np.complex64), np.zeros((2, 0, 0))]
    return [
        *(Sample((a,), {"vectors": True}) for a in arrays),
        *(Sample((a,), {"vectors": False}) for a in values_alone),
    ]


def _results(f: Emitter, a: Any, *, vectors: bool = True, order: int = 0) -> Any:
    """The same, equal eigenvalues being apart for the vectors, whose `order` is one higher.

    Eigenvalues alone come with their vectors, which the next derivative keeps with them.
    """
    if not vectors:
        return f.eigh(a, vectors=True, order=order)[0]
    values, basis = f.eigh(a, vectors=True, order=order + 1)
    return separated(f, values, order + 1), basis


def _prepare(
    f: Emitter, out: Any, a: Any, *, vectors: bool = True, order: int = 0
) -> tuple[Any, ...]:
    if not vectors:
        return (f.eigh(a, vectors=True, order=order)[1],)
    values, basis = out
    return basis, differences_inverted(f, values)


def _tangent(
    f: Emitter, values: Any, tangents: Any, *, vectors: bool = True, order: int = 0
) -> Any:
    """The diagonal of X = Vᴴ A' V, and V (F ∘ X), where Fᵢⱼ = 1 / (wⱼ - wᵢ) off the diagonal.

    Large for vectors of equal eigenvalues, which are not functions of A.
    """
    (v, *rest), (t,) = values, tangents
    inner = f.matmul(f.matmul(adjoint(f, v), hermitian(f, t)), v)
    of_values = real_part(f, diagonal(f, inner))
    if not vectors:
        return of_values
    scaled = f.multiply(f.cast(rest[0], dtype=inner.dtype), inner)
    return of_values, f.matmul(v, scaled)


eigh = register(
    Op(
        "eigh",
        "The eigenvalues of Hermitian matrices, ascending, and with `vectors` the eigenvectors as "
        "columns, from lower triangles; NaN if one is not finite.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=along_lanes("eigh"),
        derivative=Rewrite(_prepare, _tangent, results=_results),
    )
)
"""Vectors are determined up to a factor of size 1, and those of equal eigenvalues up to a rotation:
backends differ in these."""
