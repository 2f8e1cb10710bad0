"""Positions of elements in contiguous arrays."""

from __future__ import annotations

from tracegraph.ir.scalar import Expr, linear
from tracegraph.ir.types import row_major_strides


def offset_in(shape: tuple[int, ...], indices: tuple[Expr, ...]) -> Expr:
    """The position of an element in a contiguous row-major array."""
    return linear(list(zip(indices, row_major_strides(shape), strict=True)))
