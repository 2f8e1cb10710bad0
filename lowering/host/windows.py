"""Views of a buffer at a place: registers that cost nothing."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from lowering.buffer import Buffer
from lowering.host.place import Place
from lowering.host.registers import View
from lowering.strides import row_major_strides
from tracegraph.scalar import const, modulo


def mesh(extents: tuple[int, ...], axes: Iterable[int]) -> tuple[int, ...]:
    """The open-mesh shape of what varies along `axes`."""
    chosen = set(axes)
    if not chosen:
        return ()
    return tuple(n if axis in chosen else 1 for axis, n in enumerate(extents))


def layout(
    where: Place, extents: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in bytes, of the elements at a place."""
    shape = mesh(extents, where.strides)
    return shape, tuple(where.strides.get(axis, 0) * itemsize for axis in range(len(shape)))


def whole(buffer: Buffer) -> View:
    """All elements of a buffer, in one dimension."""
    dtype, size = buffer.type.dtype, buffer.type.size
    return View(dtype, (size,), {}, buffer, (dtype.itemsize,), 0)


def window(buffer: Buffer, where: Place, extents: tuple[int, ...]) -> View:
    """The elements at a place whose rest is known."""
    assert where.fixed is not None
    size = buffer.type.dtype.itemsize
    shape, strides = layout(where, extents, size)
    dims = {axis: axis for axis in where.strides}
    return View(buffer.type.dtype, shape, dims, buffer, strides, where.fixed * size)


def sliding_window(buffer: Buffer, where: Place, extents: tuple[int, ...]) -> View:
    """A view whose first dimension is rest + low and whose others are the regular axes."""
    size = buffer.type.dtype.itemsize
    length = buffer.type.size - (where.high - where.low)
    shape = (length, *(extents[axis] for axis in where.strides))
    strides = (size, *(stride * size for stride in where.strides.values()))
    dims = {axis: 1 + i for i, axis in enumerate(where.strides)}
    return View(buffer.type.dtype, shape, dims, buffer, strides, -where.low * size)


def row_length(buffer: Buffer, where: Place, extents: tuple[int, ...]) -> int:
    """The n for which a place is whole rows of n elements that begin at multiples of n; or 1.

    The axes along the rows come after those that the rest varies on.
    """
    shape = tuple(extents[axis] for axis in where.strides)
    length = prod(shape)
    if tuple(where.strides.values()) != row_major_strides(shape) or buffer.type.size % length:
        return 1
    aligned = modulo(where.rest, length) is const(0)
    after = max(where.axes, default=-1)
    return length if aligned and all(axis > after for axis in where.strides) else 1


def rows(buffer: Buffer, where: Place, extents: tuple[int, ...]) -> View:
    """The rows of `row_length` elements of a buffer, each in the shape of the regular axes."""
    sliding = sliding_window(buffer, where, extents)
    size, length = buffer.type.dtype.itemsize, prod(sliding.shape[1:])
    shape = (buffer.type.size // length, *sliding.shape[1:])
    strides = (length * size, *sliding.strides[1:])
    return View(sliding.dtype, shape, sliding.dims, buffer, strides, 0)
