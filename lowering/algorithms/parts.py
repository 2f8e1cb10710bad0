"""What algorithms on matrices share. The axes before the last two are a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph import numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get

BLOCK = 64
"""Rows or columns that a loop goes through one by one; larger matrices are halved. A step of a loop
in one kernel takes a few µs whatever its size, so 64 take as long as some products, which a block
of this size has enough work for. Estimated, not measured."""


def numbers(n: int) -> Any:
    """0 … n - 1, computed where they are used: a program has no room for arrays of its own."""
    return apply(get("iota"), size=n, dtype=np.dtype(np.int64))


def identity(rows: int, columns: int, dtype: Any) -> Any:
    """Ones on the diagonal."""
    return (numbers(rows)[:, None] == numbers(columns)).astype(dtype)


def adjoint(x: Any) -> Any:
    """The matrices transposed and conjugated."""
    turned = tnp.matrix_transpose(x)
    return tnp.conj(turned) if x.dtype.kind == "c" else turned


def beside(left: Any, right: Any) -> Any:
    """Matrices with the same rows, as one."""
    return tnp.concatenate([left, right], axis=-1)


def above(top: Any, bottom: Any) -> Any:
    """Matrices with the same columns, as one."""
    return tnp.concatenate([top, bottom], axis=-2)


def squared(x: Any) -> Any:
    """The squares of sizes, real."""
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


def scaled(x: Any, size: Any) -> Any:
    """X / size, which is real. Complex numbers by parts: their own division overflows where the
    size is subnormal.
    """
    if x.dtype.kind != "c":
        return x / size
    return apply(get("complex"), x.real / size, x.imag / size)


def taken(x: Any, places: Any) -> Any:
    """Elements, or rows, at places of each matrix's own: places has the axes of the batch, and one
    more, which takes the place of the axis behind the batch.
    """
    rank = places.ndim - 1
    grid = [
        numbers(extent).reshape([extent if i == axis else 1 for i in range(places.ndim)])
        for axis, extent in enumerate(places.shape[:rank])
    ]
    return x[(*grid, places)]


def diagonal(x: Any, offset: int = 0) -> Any:
    """Elements on a diagonal of each matrix: the main one, or one above."""
    place = numbers(min(x.shape[-2], x.shape[-1] - offset))
    return x[..., place, place + offset]
