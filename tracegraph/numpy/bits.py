"""Bits of bytes as elements of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.joining import surrounded
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.shapes import atleast_1d, reshape
from tracegraph.numpy.ufuncs import bitwise_and, multiply, not_equal, right_shift

__all__ = ["packbits", "unpackbits"]


@numpy_function
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    """Elements of an array as bits of bytes, along an axis; of the ravelled array by default.

    Elements that are not zero are ones. The last byte is filled up with zeros.

    Shape: the extent of the axis divided by 8, rounded up.
    Dtype: uint8.

    Raises:
        AxisError: the axis is out of range.
        TypeError: for numbers that are no integers.
        ValueError: `bitorder` is neither "big" nor "little".

    >>> tnp.packbits([1, 0, 0, 0, 0, 0, 1, 1, 1])
    array([131, 128], dtype=uint8)
    """
    a = as_array(a)
    if a.dtype.kind not in "biu":
        raise TypeError(f"Expected an input array of integer or boolean data type, got {a.dtype}")
    places = _places(bitorder)
    a, axis = _along(a, axis)
    last = moveaxis(not_equal(a, a.dtype.type(0)), axis, -1)
    width = -last.shape[-1] % 8
    if width:
        last = surrounded(last, [(0, 0)] * (last.ndim - 1) + [(0, width)])
    bits = reshape(last, (*last.shape[:-1], last.shape[-1] // 8, 8))
    values = multiply(as_array(bits, np.uint8), np.uint8(1) << places)
    return moveaxis(sum(values, -1, dtype=np.uint8), -1, axis)


@numpy_function
def unpackbits(
    a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """The bits of bytes as elements, along an axis; of the ravelled array by default.

    `count` is the number of bits, zeros being added to them; a negative one drops bits at the end.

    Shape: the extent of the axis times 8, or `count`.
    Dtype: uint8.

    Raises:
        AxisError: the axis is out of range.
        TypeError: the dtype is not uint8.
        ValueError: `bitorder` is neither "big" nor "little", or more bits are dropped than exist.

    >>> tnp.unpackbits(np.array([131], np.uint8))
    array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    a = as_array(a)
    if a.dtype != np.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type, got {a.dtype}")
    places = _places(bitorder)
    a, axis = _along(a, axis)
    last = moveaxis(a, axis, -1)
    bits = bitwise_and(right_shift(reshape(last, (*last.shape, 1)), places), np.uint8(1))
    bits = reshape(bits, (*last.shape[:-1], 8 * last.shape[-1]))
    if count is not None:
        total = bits.shape[-1]
        if -count > total:
            raise ValueError(f"-count larger than number of elements: {-count} and {total}")
        bits = bits[..., : count if count >= 0 else total + count]
        if count > total:
            bits = surrounded(bits, [(0, 0)] * (bits.ndim - 1) + [(0, count - total)])
    return moveaxis(bits, -1, axis)


def _places(bitorder: str) -> Any:
    """How far the bits of a byte are shifted, in the order of elements."""
    if not isinstance(bitorder, str):
        raise TypeError(f"bitorder must be str, not {type(bitorder).__name__}")
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")
    places = np.arange(8, dtype=np.uint8)
    return places if bitorder == "little" else places[::-1]


def _along(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array with at least one axis, and the axis; the ravelled one without."""
    if axis is None:
        return reshape(a, -1), 0
    a = atleast_1d(a)
    return a, normalize_axis_index(axis, a.ndim)
