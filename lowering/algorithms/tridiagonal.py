"""Tridiagonal systems by elimination with partial pivoting."""

from __future__ import annotations

from typing import Any

from tracegraph import numpy as tnp
from tracegraph.control import scan


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The solution: one pass down the rows, and one up."""
    if 0 in b.shape:
        return b
    dl, d, du = (tnp.moveaxis(x[..., None], -2, 0) for x in (dl, d, du))
    b = tnp.moveaxis(b, -2, 0)
    zero = tnp.zeros(d.shape[1:], d.dtype)

    def down(current: Any, following: Any) -> Any:
        """Eliminate one element of the following row; the larger pivot leads."""
        (d0, e0, b0), (l1, d1, u1, b1) = current, following
        swap = tnp.abs(l1) > tnp.abs(d0)
        pivot = tnp.where(swap, l1, d0)
        first, second = tnp.where(swap, d1, e0), tnp.where(swap, u1, 0).astype(d.dtype)
        right = tnp.where(swap, b1, b0)
        factor = tnp.where(swap, d0, l1) / pivot
        rest = (
            tnp.where(swap, e0, d1) - factor * first,
            tnp.where(swap, 0, u1).astype(d.dtype) - factor * second,
            tnp.where(swap, b0, b1) - factor * right,
        )
        return rest, (pivot, first, second, right)

    last, upper = scan(down, (d[0], du[0], b[0]), (dl[1:], d[1:], du[1:], b[1:]))

    def up(known: Any, row: Any) -> Any:
        (x1, x2), (pivot, first, second, right) = known, row
        x = (right - first * x1 - second * x2) / pivot
        return (x, x1), x

    end = last[2] / last[0]
    beyond = tnp.broadcast_to(zero, end.shape)
    _, above = scan(up, (end, beyond), upper, reverse=True)
    return tnp.moveaxis(tnp.concatenate([above, end[None]], axis=0), 0, -2)
