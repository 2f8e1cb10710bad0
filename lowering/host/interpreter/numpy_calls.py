"""The NumPy calls of instructions. All take the output as the last argument.

Ufuncs write contiguous arrays only: into others, some loops of NumPy write wrong elements (2.4.6 on
x86-64: `isfinite`, `isinf`, `isnan` and `signbit` of 16 floats or more, and `negative`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.interpreter.dynamic_offsets import Offset
from tracegraph.ir.op import Op
from tracegraph.ir.types import row_major_strides


def of_op(
    op: Op, dtypes: Sequence[np.dtype[Any]], dtype: np.dtype[Any], attrs: Mapping[str, Any]
) -> Callable[..., object]:
    """An elementwise op as function(*operands, out)."""
    if op.name == "cast":
        return convert
    if op.name == "where":
        return where
    reference = op.reference
    ufunc = inspect.unwrap(reference)  # the wrapper silences warnings; a plan does so once a call
    if isinstance(ufunc, np.ufunc) and not attrs and yields(ufunc, dtypes, dtype):
        return ufunc

    def computed(*arrays: Array) -> None:
        convert(np.asarray(reference(*arrays[:-1], **attrs)), arrays[-1])

    return computed


def yields(ufunc: np.ufunc, dtypes: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    """Whether the ufunc maps these dtypes to this one without a cast."""
    if ufunc.nout != 1 or ufunc.nin != len(dtypes):
        return False
    try:
        return bool(ufunc.resolve_dtypes((*dtypes, None))[-1] == dtype)
    except TypeError:
        return False


def with_output_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; two ufuncs take the output by name only."""
    if function not in (np.maximum, np.minimum):
        return function
    return lambda left, right, out: function(left, right, out=out)


def convert(value: Array, out: Array) -> None:
    """A cast as `astype` does it; one to a real dtype drops the imaginary part."""
    if value.dtype.kind == "c" and out.dtype.kind not in "cb":
        value = value.real
    np.copyto(out, value, casting="unsafe")


def where(predicate: Array, chosen: Array, other: Array, out: Array) -> None:
    """`chosen` where the predicate holds, else `other`."""
    np.copyto(out, other)
    np.copyto(out, chosen, where=predicate)


def masked(value: Array, guard: Array, out: Array) -> None:
    """`value` where the guard holds, else zero."""
    out.fill(0)
    np.copyto(out, value, where=guard)


def number(value: Array) -> object:
    """The element of an array without axes, as a Python number."""
    return value.item()


def store(value: Array, out: Array) -> None:
    """A copy."""
    out[...] = value


def store_where(value: Array, guard: Array, out: Array) -> None:
    """A copy of the elements where the guard holds."""
    np.copyto(out, value, where=guard)


def window_at(
    shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...], offset: Offset
) -> Callable[..., Array]:
    """A function (flat source, *scalars) -> the window that starts at element `offset(scalars)`."""
    if not shape:
        return lambda source, *scalars: source[offset(scalars), ...]
    size, count = dtype.itemsize, prod(shape)
    dense = tuple(n * size for n in row_major_strides(shape))
    if all(n == 1 or s == d for n, s, d in zip(shape, strides, dense, strict=True)):

        def consecutive(source: Array, *scalars: Array) -> Array:
            first = offset(scalars)
            return source[first : first + count].reshape(shape)

        return consecutive  # half the time of the constructor

    def window(source: Array, *scalars: Array) -> Array:
        return np.ndarray(shape, dtype, source, offset(scalars) * size, strides)

    return window


def gathered(
    rank: int, position_axes: Sequence[int], window_axes: Sequence[int]
) -> Callable[[Array, Array], Array]:
    """A function (sliding window, positions) -> an open mesh of the window at every position."""
    squeeze = mesh_index(rank, position_axes)
    order = [*position_axes, *window_axes]
    transpose = tuple(int(i) for i in np.argsort(order))
    expand = tuple(slice(None) if axis in order else None for axis in range(rank))

    def gather(source: Array, positions: Array) -> Array:
        found: Array = source[positions[squeeze] if positions.ndim else positions]
        return found.transpose(transpose)[expand]

    return gather


def mesh_index(rank: int, axes: Sequence[int]) -> tuple[Any, ...]:
    """The index that keeps these dimensions of an open mesh and drops the others."""
    return tuple(slice(None) if axis in axes else 0 for axis in range(rank))


def scattered(
    extents: tuple[int, ...],
    position_axes: Sequence[int],
    window_axes: Sequence[int],
    combine: np.ufunc | None,
    spread: Array | None,
) -> Callable[..., None]:
    """A function (positions, values[, guard], sliding window) that stores or combines values.

    If positions repeat, values are applied in row-major order of the axes: the last store wins.
    Repeated positions combine through `ufunc.at`, which is fast in one dimension only. The target
    is then flat, and `spread` has the distance of each element of the window from its first.
    """
    rank = len(extents)
    squeeze = mesh_index(rank, position_axes)
    mesh = tuple(n if axis in position_axes else 1 for axis, n in enumerate(extents))
    used = (*position_axes, *window_axes)
    order = (*used, *(axis for axis in range(rank) if axis not in used))
    shape = tuple(extents[axis] for axis in used)

    def scatter(positions: Array, value: Array, *rest: Array) -> None:
        *guard, target = rest
        index = _broadcast(positions, mesh)[squeeze]
        values = value  # a scalar is not broadcast: NumPy stores it in a third of the time
        if value.ndim:
            values = _broadcast(value, extents).transpose(order).reshape(shape)
        if guard:
            kept = _broadcast(guard[0], mesh)[squeeze]
            if not kept.all():
                index, values = index[kept], values[kept] if value.ndim else value
        if combine is None:
            target[index] = values
        elif spread is not None:
            places = np.add.outer(index, spread).reshape(-1)
            combine.at(target, places, values.reshape(-1) if value.ndim else value)
        else:
            target[index] = combine(target[index], values)

    return scatter


def _broadcast(value: Array, shape: tuple[int, ...]) -> Array:
    return value if value.shape == shape else np.broadcast_to(value, shape)


def combined(combine: np.ufunc) -> Callable[..., None]:
    """A function (values[, guard], target view) that combines; no element of the view repeats."""

    def combine_in_place(value: Array, *rest: Array) -> None:
        *guard, out = rest
        combine(out, value, out=out, where=guard[0] if guard else True)

    return combine_in_place


def broadcast(shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """A function that broadcasts an open mesh, without a copy."""
    return lambda value: np.broadcast_to(value, shape)


def folded(
    ufunc: np.ufunc, dtype: np.dtype[Any], axes: tuple[int, ...] | None
) -> Callable[[Array, Array], object]:
    """A function (values, out) that folds over `axes`, which stay as extents of 1; None: over all.

    Sums and products of 16-bit floats are folded in float32 and rounded once.
    """
    keep = axes is not None
    if not (_is_half(dtype) and ufunc in (np.add, np.multiply)):
        return lambda value, out: ufunc.reduce(value, axes, None, out=out, keepdims=keep)
    wide = np.dtype(np.float32)

    def fold_wide(value: Array, out: Array) -> None:
        folded: Array = np.empty(out.shape, wide)
        ufunc.reduce(value, axes, wide, out=folded, keepdims=keep)
        convert(folded, out)

    return fold_wide


def _is_half(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 2 and dtype.kind in "fV"


def positioned(ufunc: np.ufunc, kept: int) -> Callable[[Array, Array], object]:
    """A function (values, out): the first extreme over the dimensions after the first `kept`."""
    search = np.ndarray.argmin if ufunc is np.minimum else np.ndarray.argmax

    def position(value: Array, out: Array) -> None:
        found = search(value.reshape(*value.shape[:kept], -1), -1)
        out[...] = found.reshape(out.shape)

    return position


def accumulated(ufunc: np.ufunc, axis: int) -> Callable[[Array, Array], object]:
    """A function (values, out) that folds along an axis and keeps every partial result."""
    return lambda value, out: ufunc.accumulate(value, axis, None, out)
