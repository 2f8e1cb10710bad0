"""Strides of contiguous arrays, and the positions of their elements."""

from __future__ import annotations

from tracegraph.ir.scalar import Expr, linear


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous row-major array.

    >>> row_major_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def offset_in(shape: tuple[int, ...], indices: tuple[Expr, ...]) -> Expr:
    """The position of an element in a contiguous row-major array."""
    return linear(list(zip(indices, row_major_strides(shape), strict=True)))
