"""Views of a buffer at a place: registers that cost nothing."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from lowering.host.access_maps import AccessMap
from lowering.host.instructions import View
from lowering.plan.buffer import Buffer
from tracegraph.ir.scalar import bounds, const, modulo
from tracegraph.ir.types import row_major_strides


def mesh(extents: tuple[int, ...], axes: Iterable[int]) -> tuple[int, ...]:
    """The open-mesh shape of what varies along `axes`."""
    chosen = set(axes)
    if not chosen:
        return ()
    return tuple(n if axis in chosen else 1 for axis, n in enumerate(extents))


def layout(
    where: AccessMap, extents: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in bytes, of the elements at a place."""
    shape = mesh(extents, where.strides)
    return shape, tuple(where.strides.get(axis, 0) * itemsize for axis in range(len(shape)))


def whole(buffer: Buffer) -> View:
    """All elements of a buffer, in one dimension."""
    dtype, size = buffer.type.dtype, buffer.type.size
    return View(dtype, (size,), {}, buffer, (dtype.itemsize,), 0)


def window(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> View:
    """The elements at a place whose rest is known."""
    assert where.fixed is not None
    size = buffer.type.dtype.itemsize
    shape, strides = layout(where, extents, size)
    dims = {axis: axis for axis in where.strides}
    return View(buffer.type.dtype, shape, dims, buffer, strides, where.fixed * size)


def sliding_window(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> View:
    """A view whose first dimension is rest + low and whose others are the regular axes."""
    size = buffer.type.dtype.itemsize
    length = buffer.type.size - (where.high - where.low)
    shape = (length, *(extents[axis] for axis in where.strides))
    strides = (size, *(stride * size for stride in where.strides.values()))
    dims = {axis: 1 + i for i, axis in enumerate(where.strides)}
    return View(buffer.type.dtype, shape, dims, buffer, strides, -where.low * size)


class Rows(NamedTuple):
    """Rows of `length` elements that begin at multiples of that: one after the other, or in each
    part of a buffer that the axes `outer` go through. The axes `inner` go along them. Axes are in
    the order of memory.
    """

    length: int
    outer: tuple[int, ...]
    inner: tuple[int, ...]


def rows_at(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> Rows | None:
    """The rows that a place consists of, if it does."""
    length, inner = 1, list[int]()
    outer = sorted(where.strides, key=lambda axis: where.strides[axis])
    while outer and where.strides[outer[0]] == length:
        length *= extents[outer[0]]
        inner.insert(0, outer.pop(0))
    part = buffer.type.size // prod(extents[axis] for axis in outer)
    found = Rows(length, tuple(reversed(outer)), tuple(inner))
    whole = part
    for axis in outer:
        if where.strides[axis] != whole:
            return None
        whole *= extents[axis]
    if whole != buffer.type.size or part % length or modulo(where.residual, length) is not const(0):
        return None
    ends = bounds(where.residual) if outer else (0, 0)
    if ends is None or ends[0] < 0 or ends[1] >= part:
        return None  # it may begin in a part before or after
    return found


def rows(buffer: Buffer, extents: tuple[int, ...], of: Rows) -> View:
    """All rows of a buffer, each in the shape of the axes along it."""
    outer, inner = (tuple(extents[axis] for axis in axes) for axes in (of.outer, of.inner))
    shape = (*outer, buffer.type.size // prod(outer) // of.length, *inner)
    size = buffer.type.dtype.itemsize
    strides = tuple(n * size for n in row_major_strides(shape))
    dims = {axis: i for i, axis in enumerate(of.outer)}
    dims |= {axis: len(outer) + 1 + i for i, axis in enumerate(of.inner)}
    return View(buffer.type.dtype, shape, dims, buffer, strides, 0)
