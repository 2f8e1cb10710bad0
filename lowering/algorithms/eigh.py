"""Eigenvalues of Hermitian matrices by parallel cyclic Jacobi rotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.algorithms.jacobi import (
    SWEEPS,
    Round,
    ascending,
    columns_at,
    evened,
    largest,
    rotation,
)
from lowering.algorithms.parts import adjoint, diagonal, identity, numbers, scaled, squared, taken
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop, while_loop


def eigh(a: Any, *, vectors: bool = True) -> Any:
    """The eigenvalues in ascending order, and the eigenvectors as columns, from lower triangles.

    A matrix that is not finite gives NaN.
    """
    *batch, n, _ = a.shape
    if n == 0 or 0 in batch:
        values = tnp.zeros((*batch, n), a.real.dtype)
        return (values, a) if vectors else values
    lower = tnp.tril(a)
    matrix = lower + adjoint(tnp.tril(a, -1))
    matrix = tnp.where(identity(n, n, np.bool_), matrix.real, matrix).astype(a.dtype)
    scale = largest(matrix)
    is_bad = ~tnp.isfinite(scale)
    matrix = tnp.where(is_bad, 0, scaled(matrix, scale))
    values, basis = _by_sweeps(matrix, vectors)
    order = ascending(values)
    values = taken(values, order) * scale[..., 0]
    values = tnp.where(is_bad[..., 0], tnp.nan, values).astype(scale.dtype)
    if not vectors:
        return values
    return values, tnp.where(is_bad, tnp.nan, columns_at(basis, order)).astype(a.dtype)


def _by_sweeps(a: Any, vectors: bool) -> tuple[Any, Any]:
    """The diagonal in the end, and the product of all rotations; elements of `a` are 1 at most."""
    n = a.shape[-1]
    a = adjoint(evened(adjoint(evened(a))))
    size = a.shape[-1]
    eye = tnp.broadcast_to(identity(n, size, a.dtype), (*a.shape[:-2], n, size))
    basis = eye if vectors else eye[..., :0, :]
    row = numbers(size)
    is_off = row[:, None] != row
    turn = Round(size)
    unit = float(np.finfo(a.dtype).eps)

    def is_coupled(carry: Any) -> Any:
        """Whether some matrix has more off its diagonal than √n units of rounding of its norm."""
        sweep, a, _ = carry
        squares = squared(a)
        total = tnp.sum(squares, axis=(-2, -1))
        off = tnp.sum(tnp.where(is_off, squares, 0), axis=(-2, -1))
        return (sweep < SWEEPS) & tnp.any(off > n * unit * unit * total)

    def step(_: Any, carry: Any) -> Any:
        a, basis = carry
        first, last = turn.pair, turn.pair + turn.half
        between = a[..., first, last]
        angles = rotation(a[..., first, first].real, a[..., last, last].real, between)
        own, other = turn.weights(*angles)
        a = turn.rows(turn.columns(a, own, other), own, other)
        is_pair = turn.partner[:, None] == turn.place
        return tnp.where(is_pair, 0, a).astype(basis.dtype), turn.columns(basis, own, other)

    def sweep(carry: Any) -> Any:
        count, a, basis = carry
        return count + 1, *fori_loop(0, size - 1, step, (a, basis))

    _, a, basis = while_loop(is_coupled, sweep, (0, a, basis))
    return diagonal(a).real[..., :n], basis[..., :n]
