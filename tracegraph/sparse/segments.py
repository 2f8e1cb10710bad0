"""Folds of elements by segment, under JAX's names."""

from __future__ import annotations

from operator import index
from typing import Any

import ml_dtypes
import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.errors import ShapeDependentError
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.tracing.tracer import Tracer

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _folded(name: str, op: str, start: Any, data: Any, ids: Any, num_segments: int | None) -> Any:
    """Rows of data, folded by segment, from a start on."""
    data, ids = lifted(as_array(data)), as_array(ids)
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise TypeError(
            f"the segments of {name} are a vector of integers, got {ids.dtype}{list(ids.shape)}"
        )
    if data.shape[:1] != ids.shape:
        raise ValueError(
            f"{name} needs a segment for each row of data, got shapes {ids.shape} and {data.shape}"
        )
    if num_segments is None:
        if isinstance(ids, Tracer):
            raise ShapeDependentError(ids, name, f"{name}(data, segment_ids, num_segments=n)")
        num_segments = int(np.max(np.asarray(ids), initial=-1)) + 1
    count = index(num_segments)
    if count < 0:
        raise ValueError(f"the number of segments must not be negative, got {count}")
    # A scatter counts negative positions from the end; it drops those beyond it.
    ids = as_array(ids, np.int64)
    places = tnp.where((ids < 0) | (ids > count), np.int64(count), ids)
    rest = data.ndim - 1
    result = tnp.full((count, *data.shape[1:]), start, data.dtype)
    attrs = {"dims": (0,), "starts": (0,) * rest, "steps": (1,) * rest}
    return apply(get(op), lifted(result), data, lifted(places), **attrs)


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """The sums of the rows of each segment; 0 for an empty one.

    Args:
        data: an array; its rows are along the first axis.
        segment_ids: the segment of each row. Rows of segments out of range do not count.
        num_segments: how many segments there are; by default, one more than the largest of
            `segment_ids`, which must then be known.

    Shape: `(num_segments, *data.shape[1:])`.
    Dtype: that of `data`.

    Raises:
        ShapeDependentError: `segment_ids` is traced, and `num_segments` is not given.
        TypeError: `segment_ids` is not a vector of integers.
        ValueError: there is not one segment for each row, or `num_segments` is negative.

    >>> tracegraph.sparse.segment_sum([1.0, 2.0, 4.0], [0, 2, 0], 4)
    array([5., 0., 2., 0.])
    """
    return _folded("segment_sum", "scatter_add", 0, data, segment_ids, num_segments)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """The products of the rows of each segment; 1 for an empty one. As `segment_sum` otherwise.

    >>> tracegraph.sparse.segment_prod([2.0, 3.0, 4.0], [0, 2, 0], 4)
    array([8., 1., 3., 1.])
    """
    return _folded("segment_prod", "scatter_multiply", 1, data, segment_ids, num_segments)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """The least elements of each segment; the greatest number, or inf, for an empty one.

    NaN is the least if there is one. As `segment_sum` otherwise; complex numbers have no order.

    >>> tracegraph.sparse.segment_min([2.0, 3.0, 4.0], [0, 2, 0], 3)
    array([ 2., inf,  3.])
    """
    greatest = _ends("segment_min", data)[1]
    return _folded("segment_min", "scatter_minimum", greatest, data, segment_ids, num_segments)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """The greatest elements of each segment; the least number, or -inf, for an empty one.

    NaN is the greatest if there is one. As `segment_sum` otherwise; complex numbers have no order.

    >>> tracegraph.sparse.segment_max([2, 3, 4], [0, 1, 0], 2)
    array([4, 3])
    """
    least = _ends("segment_max", data)[0]
    return _folded("segment_max", "scatter_maximum", least, data, segment_ids, num_segments)


def _ends(name: str, data: Any) -> tuple[Any, Any]:
    """The least and the greatest number of a dtype.

    Raises:
        TypeError: it has none.
    """
    dtype = as_array(data).dtype
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min, limits.max
    if dtype.kind == "f" or dtype == ml_dtypes.bfloat16:
        return -np.inf, np.inf
    raise TypeError(f"{name} takes real numbers, got {dtype}")
