"""Strides, and positions of elements in contiguous arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tracegraph.ir.scalar import Expr, linear
from tracegraph.ir.types import row_major_strides


def offset_in(shape: tuple[int, ...], indices: tuple[Expr, ...]) -> Expr:
    """The position of an element in a contiguous row-major array."""
    return linear(list(zip(indices, row_major_strides(shape), strict=True)))


def common_stride(extents: Sequence[int], strides: Sequence[int]) -> int | None:
    """The stride of some axes as a single one, if they have it; 0 of one element."""
    axes = [(n, s) for n, s in zip(extents, strides, strict=True) if n != 1]
    if any(outer != n * inner for (_, outer), (n, inner) in pairwise(axes)):
        return None
    return axes[-1][1] if axes else 0
