"""The Moore-Penrose pseudo-inverse."""

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
    finite_part,
    identity,
    mixed,
    real_dtype,
    well_conditioned,
)


def _type(a: ArrayType, rtol: ArrayType) -> ArrayType:
    check_matrices("pinv", a)
    *batch, m, n = a.shape
    if rtol.dtype != real_dtype(a.dtype) or rtol.shape != tuple(batch):
        wanted = ArrayType(real_dtype(a.dtype), tuple(batch))
        raise TypeError(f"pinv: rtol must be {wanted} for {a}, got {rtol}")
    return ArrayType(a.dtype, (*batch, n, m))


def _reference(a: Any, rtol: Any) -> NDArray:
    a, is_finite = finite_part(a)
    found = np.linalg.pinv(a, rcond=np.asarray(rtol))
    return np.where(is_finite[..., None, None], found, np.nan).astype(a.dtype)


def _samples() -> list[Sample]:
    not_finite = np.stack([np.ones((3, 2)), np.full((3, 2), np.nan), np.full((3, 2), np.inf)])
    arrays = [
        *(well_conditioned(5, dtype)[:, :3] for dtype in DTYPES),
        *(well_conditioned(4, dtype) for dtype in DTYPES),
        mixed((3, 5), np.complex128),
        mixed((2, 2, 4, 3)),
        np.full((1, 1), -2.0),
        np.ones((3, 4)),
        np.zeros((3, 4)),
        np.zeros((3, 0)),
        np.zeros((0, 2, 2)),
        not_finite,
    ]
    return [
        Sample((np.ascontiguousarray(a), np.full(a.shape[:-2], 1e-5, a.real.dtype))) for a in arrays
    ]


def _prepare(f: Emitter, out: Any, a: Any, rtol: Any) -> tuple[Any, ...]:
    return a, out


def _tangent(f: Emitter, values: Any, tangents: Any) -> Any:
    """-P A' P + P Pᴴ A'ᴴ (1 - A P) + (1 - P A) A'ᴴ Pᴴ P, at a constant rank (Golub and Pereyra, The
    differentiation of pseudo-inverses and nonlinear least squares problems, 1973).
    """
    (a, p), (t, _) = values, tangents
    if t is None:
        return None
    turned, up = adjoint(f, t), adjoint(f, p)
    inner = f.negative(f.matmul(f.matmul(p, t), p))
    right = f.matmul(f.matmul(f.matmul(p, up), turned), _rest(f, a, p))
    left = f.matmul(_rest(f, p, a), f.matmul(turned, f.matmul(up, p)))
    return f.add(inner, f.add(right, left))


def _rest(f: Emitter, x: Any, y: Any) -> Any:
    """1 - X Y."""
    product = f.matmul(x, y)
    return f.subtract(identity(f, product.shape[-1], product.dtype), product)


pinv = register(
    Op(
        "pinv",
        "The pseudo-inverses of matrices; singular values up to `rtol` of the largest count as 0.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=along_lanes("pinv"),
        derivative=Rewrite(_prepare, _tangent),
    )
)
"""NaN in place of a pseudo-inverse if a matrix is not finite."""
