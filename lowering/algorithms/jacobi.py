"""What the Jacobi methods share: rotations, the pairing of columns, the order of results.

n columns are split into a left and a right half, and column i of one is paired with column i of the
other: n / 2 rotations that touch no common column are one step. Between steps the columns move
around a circle with one of them fixed, as players do in a round-robin tournament, so that n - 1
steps pair all (Brent and Luk, The solution of singular-value and symmetric eigenvalue problems on
multiprocessor arrays, 1985). After those, a sweep, all columns are where they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.algorithms.parts import beside, numbers, taken
from tracegraph import numpy as tnp

SWEEPS = 60
"""A limit on sweeps. Convergence is quadratic in the end: random matrices of up to 300 columns have
needed 12 at most, those with many equal values 23, and a Hilbert matrix 28."""


def rotation(first: Any, last: Any, between: Any) -> tuple[Any, Any]:
    """The cosines and sines that diagonalize [[first, between], [conj(between), last]].

    Elements are scaled: 1 is large. The sine is complex if `between` is: columns x, y become
    c x - conj(s) y and s x + c y. Angles are 45° at most, without which sweeps do not converge
    (Golub and Van Loan, Matrix Computations, 4th ed., 8.5.2).
    """
    size = tnp.abs(between)
    is_done = size <= negligible(size.dtype)
    safe = tnp.where(is_done, 1, size)
    ratio = (last - first) / (2 * safe)
    sign, steep = tnp.where(ratio < 0, -1, 1), tnp.abs(ratio)
    most = tnp.minimum(steep, float(1 / np.finfo(size.dtype).eps))  # its square does not overflow
    tangent = sign / (steep + tnp.maximum(steep, tnp.sqrt(1 + most * most)))
    tangent = tnp.where(is_done, 0, tangent)
    cosine = 1 / tnp.sqrt(1 + tangent * tangent)
    sine = (tangent * cosine / safe) * between
    return cosine.astype(size.dtype), sine.astype(between.dtype)


def negligible(dtype: Any) -> float:
    """What counts as zero beside 1: numbers so small that products with them lose digits."""
    return float(np.finfo(dtype).tiny / np.finfo(dtype).eps)


class Round:
    """One step for matrices of an even number of columns: where each place gets its column from.

    Places 1, 2, … of the left half move to the right, all but the first of the right half to the
    left, and the ends between the halves.
    """

    def __init__(self, size: int) -> None:
        half, to = size // 2, numbers(size)
        left = tnp.where(to == 1, half, tnp.maximum(to - 1, 0))
        right = tnp.where(to == size - 1, half - 1, to + 1)
        self.half = half
        self.place = tnp.where((to < half) | (to == 1), left, right)
        """Where the column comes from that moves to each place."""
        self.partner = (self.place + half) % size
        """Where the one is that it is rotated with."""
        self.pair = self.place % half
        """The number of their pair."""

    def weights(self, cosine: Any, sine: Any) -> tuple[Any, Any]:
        """What columns and their partners are multiplied by, of the rotation at each place."""
        back = tnp.conj(sine) if sine.dtype.kind == "c" else sine
        return cosine, tnp.where(self.place < self.half, -back, sine)

    def columns(self, x: Any, own: Any, other: Any) -> Any:
        """The columns rotated and moved."""
        return own[..., None, :] * x[..., self.place] + other[..., None, :] * x[..., self.partner]

    def rows(self, x: Any, own: Any, other: Any) -> Any:
        """The rows, likewise, by the conjugates."""
        back = tnp.conj(other) if other.dtype.kind == "c" else other
        mine, theirs = x[..., self.place, :], x[..., self.partner, :]
        return own[..., :, None] * mine + back[..., :, None] * theirs


def evened(x: Any) -> Any:
    """The matrices with an even number of columns: a column of zeros, which no rotation moves."""
    *shape, n = x.shape
    return x if n % 2 == 0 else beside(x, tnp.zeros((*shape, 1), x.dtype))


def ascending(x: Any) -> Any:
    """The places of the elements of vectors in ascending order; equal ones keep their order.

    Each element is compared with all: n² comparisons, which the sweeps before make many times.
    """
    n = x.shape[-1]
    place = numbers(n)
    mine, other = x[..., :, None], x[..., None, :]
    is_before = (other < mine) | ((other == mine) & (place < place[:, None]))
    rank = tnp.sum(is_before, axis=-1)
    return tnp.argmax(rank[..., None, :] == place[:, None], axis=-1)


def columns_at(x: Any, places: Any) -> Any:
    """The columns of matrices, at places of each matrix's own."""
    return tnp.matrix_transpose(taken(tnp.matrix_transpose(x), places))


def largest(x: Any) -> Any:
    """The largest size of a part of an element of each matrix, NaN if one is; 1 if all are zero."""
    is_complex = x.dtype.kind == "c"
    size = tnp.maximum(tnp.abs(x.real), tnp.abs(x.imag)) if is_complex else tnp.abs(x)
    found = tnp.max(size, axis=(-2, -1), keepdims=True)
    return tnp.where(found == 0, 1, found)
