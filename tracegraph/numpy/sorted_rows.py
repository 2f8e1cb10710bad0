"""Rows in order: what medians and quantiles read of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array, lifted, unchecked
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.selecting import take, take_along_axis
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.ufuncs import isnan, less, logical_not, maximum, minimum, subtract


def along_last(a: Any, axes: Sequence[int]) -> Any:
    """The array with these axes, in their order, as one last axis."""
    others = [k for k in range(a.ndim) if k not in axes]
    moved = apply(get("transpose"), lifted(a), axes=(*others, *axes))
    shape = (*[a.shape[k] for k in others], prod([a.shape[k] for k in axes]))
    return reshape(moved, shape)


MOST_RANKED = 16
"""Places of the order at which elements are found without sorting rows."""

LONG_ROW = 1 << 13
"""Elements of a row up to which it is sorted nevertheless: one block of a GPU does that, and reads
them once (`lowering.plan.sort`)."""


def at_places(rows: Any, places: Sequence[int]) -> tuple[Any, Sequence[int]]:
    """Some elements of the rows in ascending order: those at `places`, and where each is now.

    Places from behind are negative. All elements are there if rows are short, or places many.
    """
    length = rows.shape[-1]
    wanted = sorted({place % length for place in places}) if length else []
    if not wanted or len(wanted) > MOST_RANKED or length <= LONG_ROW:
        return apply(get("sort"), rows), places
    found = apply(get("ranked"), rows, places=tuple(wanted))
    return found, [wanted.index(place % length) for place in places]


def numbers_in(rows: Any) -> Any:
    """How many elements of each row are not NaN."""
    return sum(logical_not(isnan(rows)), -1)


def nan_where_last_is(rows: Any, found: Any) -> Any:
    """What was found for sorted rows, or the last element, if that is NaN."""
    last = rows[..., -1]
    return where(isnan(last), as_array(last, found.dtype), found)


def as_index(x: Any) -> Any:
    """Numbers as integers."""
    return unchecked(x, np.int64)


def elements_of(rows: Any, indices: Any, count: Any, by_row: bool) -> Any:
    """Elements of sorted rows: at the same indices of each row, or at indices of its own.

    An index of -1 is that of the last element, of those that count.
    """
    if not by_row:
        space = len(rows.shape) - 1
        found = take(rows, indices, -1)
        front = range(space, space + indices.ndim)
        return moveaxis(found, tuple(front), tuple(range(indices.ndim)))
    space = rows.shape[:-1]
    last = as_index(maximum(subtract(count, 1), 0))
    at = where(less(indices, 0), last, minimum(indices, last))
    shape = at.shape
    flat = reshape(at, (-1, *space))
    found = take_along_axis(rows, moveaxis(flat, 0, -1), -1)
    return reshape(moveaxis(found, -1, 0), shape)
