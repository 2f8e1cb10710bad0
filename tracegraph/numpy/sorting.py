"""Sorting: arrays in order, and the order itself; both stable whichever kind is asked for."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.axes import swapaxes
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    extended_function,
    laid_out,
    lifted,
    numpy_function,
)
from tracegraph.numpy.dispatching.statics import static_parameters
from tracegraph.numpy.flips import flip
from tracegraph.numpy.selecting import take_along_axis
from tracegraph.numpy.shapes import reshape, with_axis
from tracegraph.numpy.ufuncs import subtract
from tracegraph.tracing.layouts import copy_order
from tracegraph.tracing.tracer import Tracer

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex", "top_k"]

_SORT, _ARGSORT, _LARGEST = get("sort"), get("argsort"), get("largest")

MOST_SELECTED = 256
"""Elements of a row that `top_k` selects; for more, it sorts the row. On a GPU, each thread of a
block contributes one to the threshold (`lowering.plan.selection`)."""

LEAST_SELECTED_FROM = 1 << 11
"""Elements of an array from which `top_k` selects: sorting fewer takes as long on a GPU, and less
on a CPU."""

_KINDS = ("quick", "heap", "stable", "merge")


@extended_function("descending")
def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Any:
    """The elements in ascending order along an axis; None: of the ravelled array.

    NaNs come last, and with `descending` first. Every `kind` gives the same.

    Shape: that of `a`, or one axis.
    Dtype: that of `a`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: `kind` is unknown, or given with `stable`, or an `order` of fields is.

    >>> tnp.sort([[3, 1, 2], [6, 5, 4]])
    array([[1, 2, 3],
           [4, 5, 6]])
    """
    _check_kind(kind, stable, order)
    a, axis = _along(a, axis)
    if descending:
        return flip(_applied(_SORT, flip(a, axis), axis), axis)
    return laid_out(_applied(_SORT, a, axis), copy_order(a, "K"))


@extended_function("descending")
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Any:
    """The positions that the elements in order come from, equal ones in their own order.

    Otherwise as `sort`. The `stable` order is always that.

    Shape: that of `a`, or one axis.
    Dtype: int64.

    Raises:
        AxisError: the axis is out of range.
        ValueError: `kind` is unknown, or given with `stable`, or an `order` of fields is.

    >>> tnp.argsort([30, 10, 20])
    array([1, 2, 0])
    """
    _check_kind(kind, stable, order)
    a, axis = with_axis(lifted(as_array(a)), axis)
    if not descending:
        return _positions_in_order(a, axis)
    # equal elements stay in their order: they are found from behind, and turned again
    found = _applied(_ARGSORT, flip(a, axis), axis)
    return flip(subtract(a.shape[axis] - 1, found), axis)


def _check_kind(kind: str | None, stable: bool | None, order: None) -> None:
    """Check the arguments that change nothing here."""
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time. "
                         "Use only one of them.")  # fmt: skip
    if kind is not None and not (kind and any(k[:1] == kind[:1].lower() for k in _KINDS)):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


def _along(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array to sort, and the axis along which."""
    a = lifted(as_array(a))
    if axis is None:
        return reshape(a, (-1,)), 0
    return a, normalize_axis_index(axis, a.ndim)


def _applied(op: Any, a: Any, axis: int) -> Any:
    """An op of the last axis, along another one."""
    if axis == a.ndim - 1:
        return apply(op, a)
    return swapaxes(apply(op, swapaxes(a, axis, -1)), axis, -1)


def _positions_in_order(a: Any, axis: int) -> Any:
    return laid_out(_applied(_ARGSORT, a, axis), None)


@numpy_function
def sort_complex(a: Any) -> Any:
    """The elements in order along the last axis, as complex numbers.

    Shape: that of `a`.
    Dtype: complex64 for 8 and 16-bit integers and complex64, else complex128.

    Raises:
        AxisError: `a` has no axes.

    >>> tnp.sort_complex([2, 1])
    array([1.+0.j, 2.+0.j])
    """
    a = sort(a)
    if a.dtype.kind == "c":
        return a
    small = a.dtype.kind in "iu" and a.dtype.itemsize <= 2
    return as_array(a, np.complex64 if small else np.complex128)


@numpy_function
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by several keys: by the last one, then by the one before it, and so on.

    Args:
        keys: arrays of one shape, or the rows of one array.
        axis: along which each is sorted.

    Shape: that of a key.
    Dtype: int64.

    Raises:
        TypeError: there are no keys.
        ValueError: the keys have several shapes.
        AxisError: the axis is out of range.

    >>> tnp.lexsort(([2, 1, 3], [5, 5, 4]))
    array([2, 1, 0])
    """
    rows = keys if isinstance(keys, (list, tuple)) else list(as_array(keys))
    if not len(rows):
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    arrays = [lifted(as_array(row)) for row in rows]
    if any(array.shape != arrays[0].shape for array in arrays):
        raise ValueError("all keys need to be the same shape")
    if arrays[0].ndim == 0:
        normalize_axis_index(axis, 1)
        return as_array(0, np.int64)
    axis = normalize_axis_index(axis, arrays[0].ndim)
    found = _positions_in_order(arrays[0], axis)
    for array in arrays[1:]:
        then = _applied(_ARGSORT, take_along_axis(array, found, axis), axis)
        found = take_along_axis(found, then, axis)
    return found


@numpy_function
def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """The array with element `kth` where it is in order, smaller ones before and larger behind.

    Here all elements are in order, as `sort` has them.

    Shape: that of `a`; one axis if `axis` is None.
    Dtype: that of `a`.

    Raises:
        TypeError: `kth` is not an integer, nor several.
        ValueError: a static `kth` is out of range, or `kind` is unknown.
        AxisError: the axis is out of range.

    >>> tnp.partition([3, 1, 2], 1)[1:2]
    array([2])
    """
    a, axis = _along(a, axis)
    _check_kth(kth, a.shape[axis], kind)
    return sort(a, axis, order=order)


@numpy_function
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """The positions that the elements of `partition` come from. Here that is `argsort`.

    Shape: that of `a`; one axis if `axis` is None.
    Dtype: int64.

    Raises:
        TypeError: `kth` is not an integer, nor several.
        ValueError: a static `kth` is out of range, or `kind` is unknown.
        AxisError: the axis is out of range.

    >>> tnp.argpartition([30, 10, 20], 1)[1:2]
    array([2])
    """
    a, axis = with_axis(lifted(as_array(a)), axis)
    _check_kth(kth, a.shape[axis], kind)
    return argsort(a, axis, order=order)


def _check_kth(kth: Any, extent: int, kind: str) -> None:
    if not isinstance(kind, str):
        raise TypeError(f"select kind must be str, not {type(kind).__name__}")
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    given = as_array(kth)
    if given.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if isinstance(given, Tracer) or extent == 0:
        return
    for k in np.ravel(np.asarray(given)):
        if not -extent <= k < extent:
            raise ValueError(f"kth(={k}) out of bounds ({extent})")


@static_parameters
def top_k(a: Any, k: int, axis: int = -1) -> tuple[Any, Any]:
    """The `k` largest elements along an axis, the largest first, and their positions.

    Of equal elements the first ones are taken. NaN is the largest.

    Shape: that of `a`, with `k` along the axis.
    Dtype: that of `a`, and int64.

    Raises:
        ValueError: `k` is negative, or more than there are elements.
        AxisError: the axis is out of range.

    >>> tnp.top_k([10, 30, 20], 2)
    (array([30, 20]), array([1, 2]))
    """
    a = as_array(a)
    axis = normalize_axis_index(axis, a.ndim)
    count, extent = index(k), a.shape[axis]
    if not 0 <= count <= extent:
        raise ValueError(f"k must be from 0 to {extent}, the elements along the axis, got {count}")
    if count <= MOST_SELECTED and a.size >= LEAST_SELECTED_FROM:
        rows = swapaxes(lifted(a), axis, -1)
        first = swapaxes(apply(_LARGEST, rows, count=count), axis, -1)
    else:
        order = argsort(a, axis, descending=True)
        first = order[(*(slice(None),) * axis, slice(count))]
    return take_along_axis(a, first, axis), first
