"""Triangular systems by blocks, and by substitution within a block."""

from __future__ import annotations

from typing import Any

from lowering.algorithms.parts import BLOCK, above, numbers
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop


def triangular_solve(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The x of A x = b, from one triangle of A."""
    return solve_triangle(a, b, lower=lower, unit=unit) if 0 not in b.shape else b


def solve_triangle(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The same where there is something to solve."""
    n = a.shape[-1]
    if n <= BLOCK:
        return _substituted(a, b, lower, unit)
    half = n // 2
    first, last = a[..., :half, :half], a[..., half:, half:]
    if lower:
        top = solve_triangle(first, b[..., :half, :], lower=True, unit=unit)
        right = b[..., half:, :] - a[..., half:, :half] @ top
        return above(top, solve_triangle(last, right, lower=True, unit=unit))
    bottom = solve_triangle(last, b[..., half:, :], lower=False, unit=unit)
    right = b[..., :half, :] - a[..., :half, half:] @ bottom
    return above(solve_triangle(first, right, lower=False, unit=unit), bottom)


def _substituted(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    n = a.shape[-1]
    column = numbers(n)

    def step(k: Any, x: Any) -> Any:
        i = k if lower else n - 1 - k
        known = column < i if lower else column > i
        row = tnp.where(known, a[..., i, :], 0)
        right = b[..., i, :] - tnp.sum(row[..., :, None] * x, axis=-2)
        if not unit:
            right = right / a[..., i, i][..., None]
        return x.at[..., i, :].set(right)

    return fori_loop(0, n, step, tnp.zeros(b.shape, b.dtype))
