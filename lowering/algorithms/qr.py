"""QR factorization by Householder reflections, with the signs of LAPACK."""

from __future__ import annotations

from typing import Any

from lowering.algorithms.parts import identity, numbers, scaled, squared
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop


def qr(a: Any) -> tuple[Any, Any]:
    """Q with orthonormal columns and upper triangular R, reduced."""
    *batch, m, n = a.shape
    k = min(m, n)
    eye = tnp.broadcast_to(identity(m, k, a.dtype), (*batch, m, k))
    if 0 in a.shape:
        return eye, tnp.zeros((*batch, k, n), a.dtype)
    row, column = numbers(m), numbers(n)

    def step(j: Any, carry: Any) -> Any:
        r, vectors, factors = carry
        vector, factor, diagonal = _reflection(r[..., :, j], j)
        product = tnp.sum(tnp.conj(vector)[..., :, None] * r, axis=-2)
        reduced = r - tnp.conj(factor)[..., None] * vector[..., :, None] * product[..., None, :]
        own = tnp.where((row > j)[:, None], 0, diagonal[..., None])
        is_own = (column == j) & (row >= j)[:, None]
        r = tnp.where(is_own, own, reduced).astype(a.dtype)
        return (
            r,
            vectors.at[..., j, :].set(vector),
            factors.at[..., j].set(factor[..., 0]),
        )

    vectors = tnp.zeros((*batch, k, m), a.dtype)
    factors = tnp.zeros((*batch, k), a.dtype)
    r, vectors, factors = fori_loop(0, k, step, (a, vectors, factors))

    def back(j: Any, q: Any) -> Any:
        vector = vectors[..., k - 1 - j, :]
        factor = factors[..., k - 1 - j][..., None, None]
        product = tnp.sum(tnp.conj(vector)[..., :, None] * q, axis=-2)
        return q - factor * vector[..., :, None] * product[..., None, :]

    q = fori_loop(0, k, back, eye)
    return q, tnp.triu(r[..., :k, :])


def _reflection(x: Any, j: Any) -> tuple[Any, Any, Any]:
    """The vector v and the factor t of H = 1 - t v vᴴ, where Hᴴ x is zero below j; and its element
    at j, which is real.

    Everything but that element is computed from numbers scaled by the largest. So no square
    overflows or vanishes, and subnormal columns also give an orthogonal reflection.
    """
    row = numbers(x.shape[-1])
    size = tnp.where(row >= j, tnp.abs(x), 0)
    largest = tnp.max(size, axis=-1, keepdims=True)
    scale = tnp.where(largest == 0, 1, largest)
    x = scaled(x, scale)
    first = x[..., j][..., None]
    tail = tnp.sum(tnp.where(row > j, squared(x), 0), axis=-1, keepdims=True)
    norm = tnp.sqrt(tail + squared(first))
    is_done = (tail == 0) & (first.imag == 0)
    diagonal = tnp.where(is_done, first.real, -tnp.copysign(norm, first.real))
    below = x / tnp.where(is_done, 1, first - diagonal)
    vector = tnp.where(row > j, below, tnp.where(row == j, 1, 0)).astype(x.dtype)
    factor = tnp.where(is_done, 0, (diagonal - first) / tnp.where(is_done, 1, diagonal))
    return vector, factor.astype(x.dtype), scale * diagonal
