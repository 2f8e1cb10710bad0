"""Matrix chains: products of several matrices in the order that needs the fewest operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tracegraph.numpy.contractions import dot
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.shapes import reshape

__all__ = ["multi_dot"]


@numpy_function
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of two or more matrices; the first and the last may be vectors.

    Shape: the rows of the first, if it is a matrix, and the columns of the last, if it is one.
    Dtype: the common one of the arrays.

    Raises:
        ValueError: there are fewer than two arrays, or extents do not fit.

    >>> tnp.linalg.multi_dot([np.array([[1, 2]]), np.array([[3], [4]]), np.array([5])])
    array([55])
    """
    factors = [as_array(a) for a in arrays]
    if len(factors) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(factors) == 2:  # which may have more axes
        return stored("linalg.multi_dot", dot(*factors), out)
    row, column = factors[0].ndim == 1, factors[-1].ndim == 1
    if row:
        factors[0] = reshape(factors[0], (1, -1))
    if column:
        factors[-1] = reshape(factors[-1], (-1, 1))
    for place, factor in enumerate(factors):
        if factor.ndim != 2:
            raise ValueError(f"multi_dot: array {place} has {factor.ndim} axes, and needs two")
    for left, right in pairwise(factors):
        if left.shape[1] != right.shape[0]:
            raise ValueError(f"multi_dot: shapes {left.shape} and {right.shape} do not fit")
    splits = _splits([factors[0].shape[0], *(f.shape[1] for f in factors)])

    def product(first: int, last: int) -> Any:
        if first == last:
            return factors[first]
        at = splits[first, last]
        return dot(product(first, at), product(at + 1, last))

    whole = product(0, len(factors) - 1)
    whole = whole[0] if row else whole
    whole = whole[..., 0] if column else whole
    return stored("linalg.multi_dot", whole, out)


def _splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of a chain, by dynamic programming.

    Source: Cormen et al., Introduction to Algorithms, section 15.2.
    """
    count = len(extents) - 1
    costs = {(k, k): 0 for k in range(count)}
    splits = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            ways = [
                costs[first, k]
                + costs[k + 1, last]
                + extents[first] * extents[k + 1] * extents[last + 1]
                for k in range(first, last)
            ]
            costs[first, last] = min(ways)
            splits[first, last] = first + ways.index(min(ways))
    return splits
