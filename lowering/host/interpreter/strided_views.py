"""Strided views: the windows of a buffer that access maps describe."""

from __future__ import annotations

from collections.abc import Iterable

from lowering.host.interpreter.access_maps import AccessMap
from lowering.host.interpreter.instructions import View
from lowering.plan.nests.buffer import Buffer


def mesh(extents: tuple[int, ...], axes: Iterable[int]) -> tuple[int, ...]:
    """The open-mesh shape of what varies along `axes`."""
    chosen = set(axes)
    if not chosen:
        return ()
    return tuple(n if axis in chosen else 1 for axis, n in enumerate(extents))


def layout(
    where: AccessMap, extents: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in bytes, of the elements of an access map."""
    shape = mesh(extents, where.strides)
    return shape, tuple(where.strides.get(axis, 0) * itemsize for axis in range(len(shape)))


def whole(buffer: Buffer) -> View:
    """All elements of a buffer, in one dimension."""
    dtype, size = buffer.type.dtype, buffer.type.size
    return View(dtype, (size,), {}, buffer, (dtype.itemsize,), 0)


def window(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> View:
    """The elements of an access map whose residual is a constant."""
    assert where.fixed is not None
    size = buffer.type.dtype.itemsize
    shape, strides = layout(where, extents, size)
    dims = {axis: axis for axis in where.strides}
    return View(buffer.type.dtype, shape, dims, buffer, strides, where.fixed * size)


def sliding_window(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> View:
    """A view whose first dimension is residual + low and whose others are the axes with strides."""
    size = buffer.type.dtype.itemsize
    length = buffer.type.size - (where.high - where.low)
    shape = (length, *(extents[axis] for axis in where.strides))
    strides = (size, *(stride * size for stride in where.strides.values()))
    dims = {axis: 1 + i for i, axis in enumerate(where.strides)}
    return View(buffer.type.dtype, shape, dims, buffer, strides, -where.low * size)
