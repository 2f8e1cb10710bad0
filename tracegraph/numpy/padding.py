"""Padding: elements added before and after each axis."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    copied,
    laid_out,
    lifted,
    numpy_function,
    unchecked,
)
from tracegraph.numpy.dispatching.statics import Static
from tracegraph.numpy.elementwise import round as rounded
from tracegraph.numpy.flips import flip
from tracegraph.numpy.generated import linspace
from tracegraph.numpy.joining import concatenate, surrounded
from tracegraph.numpy.medians import median
from tracegraph.numpy.reductions import max, min
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.statistics import mean
from tracegraph.numpy.ufuncs import multiply, subtract
from tracegraph.tracing.layouts import copy_order

__all__ = ["pad"]

Widths = list[tuple[int, int]]
"""How many elements to add before and after each axis."""

_STATISTICS: Mapping[str, Callable[..., Any]] = {
    "maximum": max,
    "minimum": min,
    "mean": mean,
    "median": median,
}

_OPTION: Mapping[str, str | None] = {
    "constant": "constant_values",
    "edge": None,
    "empty": None,
    "linear_ramp": "end_values",
    **dict.fromkeys(_STATISTICS, "stat_length"),
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": None,
}
"""The modes, and the keyword that each takes."""


@numpy_function
def pad(array: Any, pad_width: Static, mode: Any = "constant", **kwargs: Any) -> Any:
    """The array with elements added before and after each axis, in one of NumPy's modes.

    They are "constant" (`constant_values`), "edge", "empty" (zeros), "linear_ramp" (`end_values`),
    "maximum", "mean", "median", "minimum" (`stat_length`), "reflect" and "symmetric"
    (`reflect_type`), and "wrap"; or a function that writes to each vector along an axis.
    `pad_width` and `stat_length` are static: a number, a pair, a pair for each axis, or a
    dictionary of axes.

    Shape: each extent plus its two widths.
    Dtype: that of `array`.

    Raises:
        TypeError: a width is not an integer.
        ValueError: a width is negative, the mode is unknown or has no such keyword, or an axis
            without elements is extended by its own.

    >>> tnp.pad([1, 2], (1, 2))
    array([0, 1, 2, 0, 0])
    >>> tnp.pad(np.array([1, 2, 5]), 2, "reflect", reflect_type="odd")
    array([-3,  0,  1,  2,  5,  8,  9])
    """
    array = as_array(array)
    widths = _widths(pad_width, array.ndim)
    if callable(mode):
        return _written_by(mode, surrounded(array, widths), widths, kwargs)
    found = _padded(array, widths, mode, kwargs)
    order = copy_order(array, "A")
    return copied(lifted(found), "A") if found is array else laid_out(found, order)


def _padded(array: Any, widths: Widths, mode: str, kwargs: Mapping[str, Any]) -> Any:
    option = _option(mode, kwargs)
    if mode == "constant":
        return _with_constants(array, widths, kwargs.get("constant_values", 0))
    if mode == "empty":
        return surrounded(array, widths)
    for axis, pair in enumerate(widths):
        if array.size == 0 and array.shape[axis] == 0 and any(pair):
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
            )
    if 0 in array.shape:
        return surrounded(array, widths)
    if mode == "linear_ramp":
        return _with_ramps(array, widths, kwargs.get("end_values", 0))
    if mode in _STATISTICS:
        return _with_statistics(array, widths, mode, option)
    if option == "odd":
        return _reflected_oddly(array, widths, with_edge=mode == "symmetric")
    for axis, (low, high) in enumerate(widths):
        if low or high:
            along: Any = np.arange(array.shape[axis])
            positions = np.pad(along, (low, high), mode=mode)  # type: ignore[call-overload]
            array = array[(*(slice(None),) * axis, positions)]
    return array


def _widths(pad_width: Any, rank: int) -> Widths:
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pairs[axis] = np.broadcast_to(width, 2)
        pad_width = pairs
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "i":
        raise TypeError(f"`pad_width` must be of integral type, got {pad_width!r}")
    return _pairs_of_sizes("pad_width", widths, rank)


def _pairs_of_sizes(name: str, sizes: Any, rank: int) -> Widths:
    sizes = np.asarray(sizes)
    if sizes.size and sizes.min() < 0:
        raise ValueError(f"`{name}` must not be negative, got {sizes.tolist()}")
    if sizes.size == 1:
        sizes = sizes.reshape(())
    return [(int(low), int(high)) for low, high in np.broadcast_to(sizes, (rank, 2))]


def _option(mode: Any, kwargs: Mapping[str, Any]) -> Any:
    """The value of the keyword of a mode.

    Raises:
        ValueError: there is no such mode, or it does not take a keyword.
    """
    if mode not in _OPTION:
        listed = ", ".join(map(repr, _OPTION))
        raise ValueError(f"mode {mode!r} of pad is not supported; it is one of {listed}")
    others = set(kwargs) - {_OPTION[mode]}
    if others:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {', '.join(others)}")
    return kwargs.get(_OPTION[mode] or "")


def _around(array: Any, axis: int, before: Any, after: Any) -> Any:
    """The array between two others, in its dtype; None stands for none."""
    parts = [unchecked(p, array.dtype) for p in (before, array, after) if p is not None]
    return concatenate(parts, axis) if len(parts) > 1 else array


def _part(array: Any, axis: int, start: int, stop: int) -> Any:
    return array[(*(slice(None),) * axis, slice(start, stop))]


def _repeated(values: Any, array: Any, axis: int, width: int) -> Any:
    """Values with an extent of 1 along an axis, `width` times; none for no elements."""
    if not width:
        return None
    return broadcast_to(values, (*array.shape[:axis], width, *array.shape[axis + 1 :]))


def _pairs_of_values(values: Any, rank: int) -> Iterator[tuple[Any, Any]]:
    if type(values) is complex:  # NumPy drops the imaginary part here, unlike in assignments
        values = np.complex128(values)
    values = as_array(values)
    if values.size == 1:
        values = reshape(values, ())
    values = broadcast_to(values, (rank, 2))
    return ((values[k, 0], values[k, 1]) for k in range(rank))


def _with_constants(array: Any, widths: Widths, values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        values = as_array(values)
    if np.ndim(values) == 0:
        value = np.complex128(values) if type(values) is complex else values
        return surrounded(array, widths, value)
    for axis, pair in enumerate(_pairs_of_values(values, array.ndim)):
        for side in (0, 1):
            own = [(0, 0)] * array.ndim
            own[axis] = (0, widths[axis][1]) if side else (widths[axis][0], 0)
            if any(own[axis]):
                array = surrounded(array, own, pair[side])
    return array


def _with_ramps(array: Any, widths: Widths, values: Any) -> Any:
    pairs = _pairs_of_values(values, array.ndim)
    for axis, ((low, high), ends) in enumerate(zip(widths, pairs, strict=True)):
        edges = (array[(*(slice(None),) * axis, k)] for k in (0, -1))
        before, after = (
            lifted(linspace(end, edge, width, endpoint=False, dtype=array.dtype, axis=axis))
            if width
            else None
            for end, edge, width in zip(ends, edges, (low, high), strict=True)
        )
        array = _around(array, axis, before, None if after is None else flip(after, axis))
    return array


def _with_statistics(array: Any, widths: Widths, mode: str, lengths: Any) -> Any:
    rank = array.ndim
    pairs: Any = [(None, None)] * rank
    if lengths is not None:
        pairs = _pairs_of_sizes("stat_length", np.round(lengths).astype(int), rank)
    compute = _STATISTICS[mode]
    for axis, ((low, high), given) in enumerate(zip(widths, pairs, strict=True)):
        extent = array.shape[axis]
        first, last = (extent if n is None or n > extent else n for n in given)
        if 0 in (first, last) and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        found = [
            compute(_part(array, axis, start, stop), axis=axis, keepdims=True) if width else None
            for start, stop, width in ((0, first, low), (extent - last, extent, high))
        ]
        if array.dtype.kind in "iu":
            found = [None if x is None else rounded(x) for x in found]
        before, after = (
            _repeated(x, array, axis, n) for x, n in zip(found, (low, high), strict=True)
        )
        array = _around(array, axis, before, after)
    return array


def _reflected_oddly(array: Any, widths: Widths, with_edge: bool) -> Any:
    """Reflections minus twice the edge, as often as needed: NumPy's steps, one for each chunk."""
    for axis, (low, high) in enumerate(widths):
        period = array.shape[axis]
        if period == 1:
            before, after = (_repeated(array, array, axis, n) for n in (low, high))
            array = _around(array, axis, before, after)
            continue
        skipped = 0 if with_edge else 1
        while low > 0 or high > 0:
            extent = array.shape[axis]
            whole = (extent - skipped) // (period - skipped) * (period - skipped)
            if low > 0:
                count = builtins.min(whole, low)
                chunk = flip(_part(array, axis, skipped, skipped + count), axis)
                edge = _part(array, axis, 0, 1)
                array = _around(array, axis, _mirrored(edge, chunk), None)
                low -= count
            if high > 0:
                count = builtins.min(whole, high)
                stop = array.shape[axis] - skipped
                chunk = flip(_part(array, axis, stop - count, stop), axis)
                edge = _part(array, axis, array.shape[axis] - 1, array.shape[axis])
                array = _around(array, axis, None, _mirrored(edge, chunk))
                high -= count
    return array


def _mirrored(edge: Any, chunk: Any) -> Any:
    return subtract(multiply(edge, 2), chunk)


def _written_by(function: Any, padded: Any, widths: Widths, options: dict[str, Any]) -> Any:
    """A padded array, to whose vectors along each axis a function has written."""
    padded = copied(lifted(padded))
    for axis in range(padded.ndim):
        rows = moveaxis(padded, axis, -1)
        for place in product(*map(range, rows.shape[:-1])):
            function(rows[(*place, Ellipsis)], widths[axis], axis, options)
    return padded
