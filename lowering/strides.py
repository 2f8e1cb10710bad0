"""Strides of contiguous arrays."""

from __future__ import annotations


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous row-major array.

    >>> row_major_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)
