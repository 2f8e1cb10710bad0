"""Functions that insert and delete along an axis, and that assemble arrays from blocks.

For static positions, NumPy's own function, applied to the numbers of an axis, says where each
element of the result comes from. For traced ones a sort does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph.arrays.eager import as_numpy
from tracegraph.errors import ShapeDependentError
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array, copied, laid_out, lifted, numpy_function
from tracegraph.numpy.dispatching.statics import tracers_in
from tracegraph.numpy.elementwise import clip, where
from tracegraph.numpy.index_checks import require_in_range
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.sorting import argsort
from tracegraph.numpy.ufuncs import add, greater_equal, less, multiply, subtract
from tracegraph.tracing.layouts import copy_order
from tracegraph.tracing.tracer import Tracer

__all__ = ["block", "delete", "insert"]


@numpy_function
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Values inserted before positions along an axis, or in the ravelled array.

    `obj` is an integer, a slice, or a sequence of integers or booleans; as in NumPy, one integer
    may stand before several values. Values are cast to the dtype of `arr`. Integers may be traced;
    they are limited to the axis.

    Shape: that of `arr` with a longer axis; one axis without `axis`.
    Dtype: that of `arr`.

    Raises:
        ShapeDependentError: `obj` is a traced mask.
        AxisError: the axis is out of range.
        IndexError: a static position is out of range.
        ValueError: the values do not broadcast to what is inserted.

    >>> tnp.insert([1, 2, 3], 1, [7, 8])
    array([1, 7, 8, 2, 3])
    """
    arr, axis = _along(arr, axis)
    places, extent = _known("insert", obj), arr.shape[axis]
    values = as_array(values, arr.dtype)
    traced = isinstance(places, Tracer)
    one = places.size == 1 if traced else _is_one_position(places)
    if one:
        values = reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        if np.ndim(places) == 0:
            values = moveaxis(values, 0, axis)
        count = values.shape[axis]
    else:
        count = places.size if traced else np.insert(np.zeros(extent), places, 0).size - extent
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    extra = values.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in values.shape[:extra]):
        values = reshape(values, values.shape[extra:])
    new = broadcast_to(lifted(values), shape)
    if traced:
        numbers = _inserted_numbers(_limited(places, extent, extent), extent, count)
    else:
        numbers = np.insert(np.arange(extent), places, extent + np.arange(count))
    made = lifted(concatenate((arr, new), axis))[(*(slice(None),) * axis, numbers)]
    return laid_out(made, copy_order(arr, "A"))


def _is_one_position(places: Any) -> bool:
    """Whether static positions are an integer, or a sequence that names one."""
    if isinstance(places, slice):
        return False
    positions = np.asarray(places)
    return bool(positions.sum() == 1 if positions.dtype == np.bool_ else positions.size == 1)


def _limited(positions: Any, extent: int, last: int) -> Any:
    """Traced positions on an axis, negative ones from the end, limited to those up to a last."""
    require_in_range({0: positions}, (last + 1,), "positions are limited to it")
    from_start = where(less(positions, 0), add(positions, extent), positions)
    return clip(from_start, 0, last)


def _inserted_numbers(positions: Any, extent: int, count: int) -> Any:
    """Which of the elements, and of the new ones behind them, is where in the result.

    In order of their positions, new ones are before the element there, in their own order.
    """
    if positions.size == 1:
        place, k = reshape(positions, ()), np.arange(extent + count)
        behind = where(less(k, add(place, count)), subtract(k + extent, place), k - count)
        return where(less(k, place), k, behind)
    places = multiply(positions, 2)
    elements = 2 * np.arange(extent) + 1
    order = argsort(concatenate([places, elements]))
    return where(less(order, count), add(order, extent), subtract(order, count))


@numpy_function
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without positions along an axis, or without elements of the ravelled one.

    `obj` is an integer, a slice, or a sequence of integers or booleans. A single integer may be
    traced; it is limited to the axis.

    Shape: that of `arr` with a shorter axis; one axis without `axis`.
    Dtype: that of `arr`.

    Raises:
        ShapeDependentError: `obj` is a traced mask, or several traced integers.
        AxisError: the axis is out of range.
        IndexError: a static position is out of range.

    >>> tnp.delete([5, 6, 7], 1)
    array([5, 7])
    """
    arr, axis = _along(arr, axis)
    places, extent = _known("delete", obj), arr.shape[axis]
    if not isinstance(places, Tracer):
        numbers: Any = np.delete(np.arange(extent), places)
    elif places.size != 1:
        raise ShapeDependentError(places, "numpy.delete at several traced positions")
    elif not extent:
        raise IndexError(f"axis {axis} of shape {arr.shape} has no element to delete")
    else:
        kept = np.arange(extent - 1)
        at = reshape(_limited(places, extent, extent - 1), ())
        numbers = add(kept, as_array(greater_equal(kept, at), np.int64))
    return laid_out(lifted(arr)[(*(slice(None),) * axis, numbers)], copy_order(arr, "A"))


def _along(arr: Any, axis: int | None) -> tuple[Any, int]:
    arr = as_array(arr)
    if axis is None:
        return reshape(arr, (arr.size,)), 0
    return arr, normalize_axis_index(axis, arr.ndim)


def _known(name: str, obj: Any) -> Any:
    """Positions as NumPy takes them; or as traced integers.

    Raises:
        ShapeDependentError: they are a traced mask.
        IndexError: they are traced, and neither integers nor booleans.
    """
    if isinstance(obj, (list, tuple)) and any(True for _ in tracers_in(obj)):
        obj = as_array(obj)
    if isinstance(obj, (list, tuple)):
        return [_known(name, part) for part in obj]
    if not isinstance(obj, Tracer):
        return as_numpy(obj)
    if obj.dtype == np.bool_:
        raise ShapeDependentError(obj, f"numpy.{name} at a traced mask")
    if obj.dtype.kind not in "iu" or obj.ndim > 1:
        raise IndexError(f"numpy.{name} takes integers, got {obj.dtype} of shape {obj.shape}")
    return as_array(obj, np.int64)


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
    joined = _joined_blocks(arrays, depth, max(depth, rank))
    return copied(joined) if joined is arrays else joined


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
