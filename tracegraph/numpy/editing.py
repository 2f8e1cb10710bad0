"""Functions that insert and delete along an axis, and that assemble arrays from blocks.

Positions are static. NumPy's own function, applied to the numbers of an axis, says where each
element of the result comes from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph.arrays.eager import as_numpy
from tracegraph.errors import TracerArrayError
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatch import as_array, lifted, numpy_function
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.statics import Static
from tracegraph.tracing.tracer import Tracer


@numpy_function
def insert(arr: Any, obj: Static, values: Any, axis: int | None = None) -> Any:
    """Values inserted before static positions along an axis, or in the ravelled array.

    `obj` is an integer, a slice, or a sequence of integers or booleans; as in NumPy, one integer
    may stand before several values. Values are cast to the dtype of `arr`.

    Shape: that of `arr` with a longer axis; one axis without `axis`.
    Dtype: that of `arr`.

    Raises:
        StaticArgumentError: `obj` is traced.
        AxisError: the axis is out of range.
        IndexError: a position is out of range.
        ValueError: the values do not broadcast to what is inserted.

    >>> tnp.insert([1, 2, 3], 1, [7, 8])
    array([1, 7, 8, 2, 3])
    """
    arr, axis = _along(arr, axis)
    where, extent = _static("insert", obj), arr.shape[axis]
    values = as_array(values, arr.dtype)
    one = not isinstance(where, slice) and _positions(where).size == 1
    if one:
        values = reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        if np.ndim(where) == 0:
            values = moveaxis(values, 0, axis)
        count = values.shape[axis]
    else:
        count = np.insert(np.zeros(extent), where, 0).size - extent
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    extra = values.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in values.shape[:extra]):
        values = reshape(values, values.shape[extra:])
    new = broadcast_to(lifted(values), shape)
    numbers = np.insert(np.arange(extent), where, extent + np.arange(count))
    return lifted(concatenate((arr, new), axis))[(*(slice(None),) * axis, numbers)]


def _positions(where: Any) -> Any:
    """The positions that a sequence or an integer names."""
    positions = np.asarray(where)
    return np.flatnonzero(positions) if positions.dtype == np.bool_ else positions


@numpy_function
def delete(arr: Any, obj: Static, axis: int | None = None) -> Any:
    """The array without static positions along an axis, or without elements of the ravelled one.

    `obj` is an integer, a slice, or a sequence of integers or booleans.

    Shape: that of `arr` with a shorter axis; one axis without `axis`.
    Dtype: that of `arr`.

    Raises:
        StaticArgumentError: `obj` is traced.
        AxisError: the axis is out of range.
        IndexError: a position is out of range.

    >>> tnp.delete([5, 6, 7], 1)
    array([5, 7])
    """
    arr, axis = _along(arr, axis)
    numbers = np.delete(np.arange(arr.shape[axis]), _static("delete", obj))
    return lifted(arr)[(*(slice(None),) * axis, numbers)]


def _along(arr: Any, axis: int | None) -> tuple[Any, int]:
    arr = as_array(arr)
    if axis is None:
        return reshape(arr, (arr.size,)), 0
    return arr, normalize_axis_index(axis, arr.ndim)


def _static(name: str, obj: Any) -> Any:
    """Positions, which must be known while tracing."""
    if isinstance(obj, (list, tuple)):
        return [_static(name, part) for part in obj]
    if isinstance(obj, Tracer):
        raise TracerArrayError(obj, f"numpy.{name} at traced positions")
    return as_numpy(obj)


@numpy_function
def block(arrays: Any) -> Any:
    """Nested lists of arrays joined: the innermost along the last axis, and so on outwards.

    Shape: that of the blocks side by side.
    Dtype: the common one of the arrays.

    Raises:
        TypeError: a tuple among the lists.
        ValueError: the lists are nested to different depths, or a list is empty, or extents differ.

    >>> tnp.block([np.array([1, 2]), np.array([3])])
    array([1, 2, 3])
    """
    depth, rank = _depth(arrays)
    return _joined_blocks(arrays, depth, max(depth, rank))


def _depth(arrays: Any) -> tuple[int, int]:
    """How deep lists are nested, and the largest number of axes in them."""
    if isinstance(arrays, tuple):
        raise TypeError("block takes nested lists of arrays, got a tuple; only lists are nested")
    if not isinstance(arrays, list):
        return 0, np.ndim(arrays) if not isinstance(arrays, Tracer) else arrays.ndim
    if not arrays:
        raise ValueError("block: lists cannot be empty")
    found = [_depth(part) for part in arrays]
    if len({depth for depth, _ in found}) > 1:
        raise ValueError("block: list depths are mismatched")
    return found[0][0] + 1, max(rank for _, rank in found)


def _joined_blocks(arrays: Any, depth: int, rank: int) -> Any:
    if depth == 0:
        a = as_array(arrays)
        return reshape(a, (1,) * (rank - a.ndim) + a.shape)
    return concatenate([_joined_blocks(part, depth - 1, rank) for part in arrays], -depth)
