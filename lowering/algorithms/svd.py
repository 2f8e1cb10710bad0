"""Singular values by one-sided Jacobi rotations, and pseudo-inverses made of them.

The columns of a triangular factor are rotated until they are orthogonal: their lengths are the
singular values (Hestenes, 1958; with a QR factorization first: Drmač and Veselić, New fast and
accurate Jacobi SVD algorithm I, 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.algorithms.jacobi import (
    SWEEPS,
    Round,
    ascending,
    columns_at,
    evened,
    largest,
    negligible,
    rotation,
)
from lowering.algorithms.parts import adjoint, diagonal, identity, scaled, squared, taken
from lowering.algorithms.qr import qr
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop, while_loop
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Parts:
    """What the algorithm is made of.

    `qr` gives the reduced factors of matrices with at least as many rows as columns; `rotated`
    takes square matrices with elements of about 1 at most, and gives their columns, rotated until
    they are orthogonal, in descending order of length, and the lengths.
    """

    qr: Callable[[Any], tuple[Any, Any]]
    rotated: Callable[[Any], tuple[Any, Any]]


def svd(a: Any, *, vectors: bool = True, parts: Parts | None = None) -> Any:
    """U, the singular values in descending order, and Vᴴ of A = U S Vᴴ, reduced.

    A matrix that is not finite gives NaN. `parts` take the place of the loops here.
    """
    *batch, m, n = a.shape
    if m < n:
        found = svd(adjoint(a), vectors=vectors, parts=parts)
        return (adjoint(found[2]), found[1], adjoint(found[0])) if vectors else found
    dtype = a.real.dtype
    if 0 in a.shape:
        values = tnp.zeros((*batch, n), dtype)
        eye = tnp.broadcast_to(identity(m, n, a.dtype), (*batch, m, n))
        square = tnp.broadcast_to(identity(n, n, a.dtype), (*batch, n, n))
        return (eye, values, square) if vectors else values
    parts = parts or PROGRAMS
    scale = largest(a)
    is_bad = ~tnp.isfinite(scale)
    q, r = parts.qr(tnp.where(is_bad, 0, scaled(a, scale)).astype(a.dtype))
    columns, lengths = parts.rotated(adjoint(r))  # adjoint(R) = V S (rotations)ᴴ
    lengths = lengths * scale[..., 0]
    lengths = tnp.where(is_bad[..., 0], tnp.nan, lengths).astype(dtype)
    if not vectors:
        return lengths
    right = _unit_columns(columns, parts)
    left = q @ _unit_columns(r @ right, parts)
    left, right = (tnp.where(is_bad, tnp.nan, x).astype(a.dtype) for x in (left, right))
    return left, lengths, adjoint(right)


def _unit_columns(x: Any, parts: Parts) -> Any:
    """Orthogonal columns of descending length, divided by it; orthonormal ones in place of zeros.

    Dividing would make noise of columns that are short beside the first. So those of R V are as
    good as products of the rotations: what is wrong of them is as short.
    """
    q, r = parts.qr(x)
    is_negative = diagonal(r).real < 0
    return tnp.where(is_negative[..., None, :], -q, q)


def _by_sweeps(a: Any) -> tuple[Any, Any]:
    n = a.shape[-1]
    columns = evened(a)
    size = columns.shape[-1]
    turn = Round(size)
    unit, least = float(np.finfo(a.dtype).eps * n**0.5), negligible(a.real.dtype)

    def is_coupled(carry: Any) -> Any:
        sweep, coupled, *_ = carry
        return (sweep < SWEEPS) & coupled

    def step(_: Any, carry: Any) -> Any:
        coupled, columns = carry
        left, right = columns[..., : turn.half], columns[..., turn.half :]
        first, last = (tnp.sum(squared(x), axis=-2) for x in (left, right))
        back = tnp.conj(left) if left.dtype.kind == "c" else left
        between = tnp.sum(back * right, axis=-2)
        limit = unit * tnp.sqrt(first) * tnp.sqrt(last)
        is_off = tnp.abs(between) > tnp.maximum(limit, least)
        is_off = is_off & (tnp.minimum(first, last) > least)
        between = tnp.where(is_off, between, 0).astype(between.dtype)
        cosine, sine = (x[..., turn.pair] for x in rotation(first, last, between))
        own, other = turn.weights(cosine, sine)
        return coupled | tnp.any(is_off), turn.columns(columns, own, other)

    def sweep(carry: Any) -> Any:
        count, _, columns = carry
        return count + 1, *fori_loop(0, size - 1, step, (False, columns))

    columns = while_loop(is_coupled, sweep, (0, True, columns))[2][..., :n]
    lengths = tnp.sqrt(tnp.sum(squared(columns), axis=-2))
    order = ascending(-lengths)
    return columns_at(columns, order), taken(lengths, order)


PROGRAMS = Parts(qr, _by_sweeps)
"""Those that are programs themselves."""


def pinv(a: Any, rtol: Any, parts: Parts | None = None) -> Any:
    """V S⁺ Uᴴ, where S⁺ inverts the singular values above `rtol` of the largest."""
    u, values, vh = svd(a, parts=parts)
    if 0 in values.shape:
        return adjoint(a)
    keep = values > rtol[..., 0] * values[..., :1]
    inverse = tnp.where(keep, 1 / tnp.where(keep, values, 1), 0)
    inverse = tnp.where(tnp.isnan(values), values, inverse)
    return adjoint(vh) @ (inverse[..., :, None] * adjoint(u)).astype(a.dtype)
