"""Cholesky factorization by blocks, and column by column within a block."""

from __future__ import annotations

from typing import Any

from lowering.algorithms.parts import BLOCK, above, adjoint, beside, numbers
from lowering.algorithms.triangular_solve import solve_triangle
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop


def cholesky(a: Any) -> Any:
    """The lower triangular L of A = L Lᴴ; NaN in all of it if A is not positive definite."""
    if not a.shape[-1]:
        return a
    factor = _by_blocks(a)
    last = factor[..., -1:, -1:]  # NaN spreads from a failed column to the last one
    return tnp.where(tnp.isnan(last), last, factor)


def _by_blocks(a: Any) -> Any:
    n = a.shape[-1]
    if n <= BLOCK:
        return _by_columns(a)
    half = n // 2
    first = _by_blocks(a[..., :half, :half])
    left = adjoint(solve_triangle(first, adjoint(a[..., half:, :half]), lower=True))
    rest = _by_blocks(a[..., half:, half:] - left @ adjoint(left))
    zeros = tnp.zeros((*a.shape[:-2], half, n - half), a.dtype)
    return above(beside(first, zeros), beside(left, rest))


def _by_columns(a: Any) -> Any:
    """Left-looking: a column is computed from the columns before it, and written once."""
    n = a.shape[-1]
    row = numbers(n)

    def step(k: Any, factor: Any) -> Any:
        known = tnp.conj(factor[..., k, :])  # zero from column k on
        column = a[..., :, k] - tnp.sum(factor * known[..., None, :], axis=-1)
        square = column[..., k].real[..., None]
        pivot = tnp.sqrt(tnp.where(square > 0, square, tnp.nan)).astype(square.dtype)
        below = tnp.where(row > k, column / pivot, 0)
        column = tnp.where(row == k, pivot, below).astype(a.dtype)
        return factor.at[..., :, k].set(column)

    return fori_loop(0, n, step, tnp.zeros(a.shape, a.dtype))
