"""The order of rows after the swaps of an LU factorization."""

from __future__ import annotations

from typing import Any

from lowering.algorithms.parts import numbers, taken
from tracegraph import numpy as tnp
from tracegraph.control import fori_loop


def order_of_rows(pivots: Any, *, rows: int) -> Any:
    """One swap after the other."""
    place = numbers(rows)
    order = tnp.broadcast_to(place, (*pivots.shape[:-1], rows))
    if 0 in pivots.shape:
        return order

    def swap(i: Any, order: Any) -> Any:
        other = pivots[..., i][..., None]
        mine, theirs = order[..., i][..., None], taken(order, other)
        return tnp.where(place == i, theirs, tnp.where(place == other, mine, order))

    return fori_loop(0, pivots.shape[-1], swap, order)
