"""Selection along the last axis: the positions of the largest elements, the largest first.

The order is that of `tracegraph.ops.sorting`, turned: NaNs come first, and are equal to each other,
as are -0.0 and 0.0. Equal elements stay in their own order.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Constant
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import along_lanes
from tracegraph.ops.sorting import comparable, samples

_INDEX = np.dtype(np.int64)
NDArray = np.ndarray[Any, Any]

MOST = 1024
"""What a block of a GPU holds of a tile (`lowering.plan.selection`)."""

_FEW, _MANY = 8, 2048
"""Elements of a row for each that is selected, and elements in all, from which rows are partitioned
and not sorted."""


def _type(x: ArrayType, *, count: int) -> ArrayType:
    if x.ndim == 0:
        raise ValueError(f"largest: needs an axis to select along, got the scalar {x}")
    most = min(x.shape[-1], MOST)
    if not 0 <= count <= most:
        raise ValueError(f"largest: count must be from 0 to {most}, got {count} of {x}")
    return ArrayType(_INDEX, (*x.shape[:-1], count))


def _largest(x: Any, *, count: int) -> NDArray:
    array = comparable(x)
    *batch, length = array.shape
    few = _FEW * count <= length and array.size >= _MANY and array.dtype.kind != "c"
    if not few or not count:
        return _descending(array, count)
    rows = array.reshape(prod(batch), length)
    places = _unordered(rows, count)
    order = _descending(np.take_along_axis(rows, places, -1), count)
    return np.take_along_axis(places, order, -1).reshape(*batch, count)


def _descending(array: NDArray, count: int) -> NDArray:
    """The first of the order of whole rows."""
    from_behind = np.argsort(array[..., ::-1], axis=-1, kind="stable")
    found: NDArray = array.shape[-1] - 1 - from_behind[..., from_behind.shape[-1] - count :]
    return found[..., ::-1].astype(_INDEX, copy=False)


def _unordered(rows: NDArray, count: int) -> NDArray:
    """The positions of the largest elements, in order of the positions."""
    place = rows.shape[1] - count
    least = np.partition(rows, place, axis=-1)[:, place, None]
    above, equal = rows > least, rows == least
    if rows.dtype.kind == "f" and np.isnan(np.max(rows)):
        missing, none_left = np.isnan(rows), np.isnan(least)
        above |= missing & ~none_left
        equal |= missing & none_left
    wanted = count - above.sum(-1, keepdims=True)
    if (equal.sum(-1, keepdims=True) > wanted).any():
        equal &= equal.cumsum(-1) <= wanted  # of equal ones the first
    return np.nonzero(above | equal)[1].reshape(len(rows), count)


def _samples() -> list[Sample]:
    found = []
    for sample in samples():
        (array,) = sample.operands
        length = array.shape[-1]
        counts = {0, min(1, length), length // 2, length}
        found += [Sample((array,), {"count": count}) for count in sorted(counts)]
    long = np.random.default_rng(1).integers(-9, 9, (3, _MANY))
    long_floats = np.where(long > 7, np.nan, long / 2)
    return [*found, Sample((long,), {"count": 5}), Sample((long_floats,), {"count": 12})]


largest = register(
    Op(
        "largest",
        "The positions of the largest elements of each row, the largest first.",
        _type,
        _largest,
        Opaque(),
        _samples,
        batch=along_lanes("largest"),
        derivative=Constant(),
    )
)
