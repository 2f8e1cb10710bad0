"""LU factorization with partial pivoting, by blocks of columns."""

from __future__ import annotations

from typing import Any

from lowering.algorithms.parts import BLOCK, above, beside, numbers, taken
from lowering.algorithms.triangular_solve import solve_triangle
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop


def lu(a: Any) -> tuple[Any, Any, Any]:
    """The factors, packed, the pivots, and the rows in the order of the factors."""
    *batch, m, n = a.shape
    if 0 in a.shape:
        rows = tnp.broadcast_to(numbers(m).astype("int32"), (*batch, m))
        return a, tnp.zeros((*batch, min(m, n)), "int32"), rows
    factors, pivots, rows = _by_blocks(a)
    return factors, pivots.astype("int32"), rows.astype("int32")


def _by_blocks(a: Any) -> tuple[Any, Any, Any]:
    k = min(a.shape[-2:])
    if k <= BLOCK:
        return _by_columns(a)
    half = k // 2
    left, pivots, rows = _by_blocks(a[..., :half])
    right = taken(a[..., half:], rows)
    top = solve_triangle(left[..., :half, :], right[..., :half, :], lower=True, unit=True)
    below = left[..., half:, :]
    bottom, later, order = _by_blocks(right[..., half:, :] - below @ top)
    factors = above(
        beside(left[..., :half, :], top),
        beside(taken(below, order), bottom),
    )
    moved = taken(rows[..., half:], order)
    return factors, beside(pivots, later + half), beside(rows[..., :half], moved)


def _by_columns(a: Any) -> tuple[Any, Any, Any]:
    """Right-looking: each step swaps two rows and subtracts a product of a column and a row.

    Both are one pass over the matrix, which reads rows from where they were.
    """
    *batch, m, n = a.shape
    row, column = numbers(m), numbers(n)

    def step(k: Any, carry: Any) -> Any:
        factors, pivots, rows = carry
        size = tnp.where(row >= k, _size(factors[..., :, k]), -1)
        pivot = tnp.argmax(size, axis=-1)[..., None]
        source = tnp.where(row == k, pivot, tnp.where(row == pivot, k, row))
        moved = taken(factors, source)
        top = taken(factors, pivot)
        first = top[..., :, k]
        below = taken(factors[..., :, k], source)
        below = below / tnp.where(first == 0, 1, first)
        below = tnp.where(row > k, below, 0)[..., None]
        reduced = moved - below * tnp.where(column > k, top, 0)
        is_factor = (row > k)[:, None] & (column == k)
        factors = tnp.where(is_factor, below, reduced)
        pivots = pivots.at[..., k].set(pivot[..., 0])
        return factors, pivots, taken(rows, source)

    pivots = tnp.zeros((*batch, min(m, n)), "int64")
    rows = tnp.broadcast_to(row, (*batch, m))
    factors, pivots, rows = fori_loop(0, min(m, n), step, (a, pivots, rows))
    return factors, pivots, rows


def _size(x: Any) -> Any:
    """What LAPACK compares pivots by."""
    return tnp.abs(x.real) + tnp.abs(x.imag) if x.dtype.kind == "c" else tnp.abs(x)
