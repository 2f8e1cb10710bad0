"""Derivatives of scatters. A write out of range is dropped, and so is its cotangent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Derivative, Emitter, Linear, Rewrite
from tracegraph.ir.types import ArrayType
from tracegraph.ops.cotangents import Types, filled, in_range, indicator, number, wrapped

Attrs = Mapping[str, Any]
Repeats = Callable[[Attrs, Sequence[ArrayType]], int]
Values = Sequence[Any]


def of_scatter(name: str, repeats: Repeats) -> Derivative:
    """The derivative of a scatter; `repeats` says whether one element may be hit twice."""
    match name:
        case "scatter_add":
            return Linear(_add_transpose, (0, 1))
        case "scatter_set":
            return Linear(_set_transpose(repeats), (0, 1))
        case "scatter_multiply":
            return Rewrite(_factors(repeats), _sum_of_products)
        case _:
            return Rewrite(_shares, _sum_of_products)


def taken(f: Emitter, x: Any, indices: Values, attrs: Attrs, sizes: Sequence[int]) -> Any:
    """The elements of x where a scatter writes updates, whose trailing extents are `sizes`.

    Where an index is out of range, they are those at the nearest place.
    """
    if not indices:
        steps = attrs["steps"]
        return f.slice(x, starts=attrs["starts"], steps=steps, sizes=tuple(sizes))
    found = f.gather(x, *indices, dims=attrs["dims"])
    batch = found.shape[: found.ndim - len(sizes)]
    starts = (*(0 for _ in batch), *attrs["starts"])
    steps = (*(1 for _ in batch), *attrs["steps"])
    return f.slice(found, starts=starts, steps=steps, sizes=(*batch, *sizes))


def _extents(shape: Sequence[int], dims: Sequence[int]) -> list[int]:
    return [shape[axis] for axis in dims]


def _spread(f: Emitter, mask: Any, ndim: int) -> Any:
    """A mask of updates by their leading axes, for all their axes."""
    return f.reshape(mask, shape=(*mask.shape, *(1 for _ in range(ndim - mask.ndim))))


def _of_written(f: Emitter, ct: Any, type_: ArrayType, indices: Values, attrs: Attrs) -> Any:
    """The elements of ct that updates were added to or written to, 0 for dropped ones."""
    if indices and not all(_extents(ct.shape, attrs["dims"])):
        return None  # an empty axis: all updates are dropped
    sizes = type_.shape[len(type_.shape) - len(attrs["starts"]) :]
    found = taken(f, ct, indices, attrs, sizes)
    if not indices:
        return found
    inside = in_range(f, indices, _extents(ct.shape, attrs["dims"]))
    return f.where(_spread(f, inside, found.ndim), found, number(found, 0))


def _add_transpose(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, updates: Any, *indices: Any, **attrs: Any
) -> tuple[Any, ...]:
    of_updates = None if types[1] is None else _of_written(f, ct, types[1], indices, attrs)
    return None if types[0] is None else ct, of_updates


def _set_transpose(repeats: Repeats) -> Callable[..., Any]:
    def transpose(
        f: Emitter,
        ct: Any,
        acc: Any,
        types: Types,
        x: Any,
        updates: Any,
        *indices: Any,
        **attrs: Any,
    ) -> tuple[Any, ...]:
        of_x = of_updates = None
        type_ = ArrayType(ct.dtype, updates.shape if types[1] is None else types[1].shape)
        if types[1] is not None:
            of_updates = _of_written(f, ct, type_, indices, attrs)
            types = [type_, type_, *(i.type for i in indices)]
            if repeats(attrs, types) and of_updates is not None:
                won = _spread(f, _last(f, ct.shape, indices, attrs), of_updates.ndim)
                of_updates = f.where(won, of_updates, number(ct, 0))
        if types[0] is not None:  # after the cotangent is read: it may be written in place
            of_x = f.scatter_set(ct, filled(f, type_), *indices, **attrs)
        return of_x, of_updates

    return transpose


def _last(f: Emitter, shape: Sequence[int], indices: Values, attrs: Attrs) -> Any:
    """Whether each update is the last that is written to its place: that of the greatest number.

    Of a maximum, no order matters, so that all updates run in parallel.
    """
    batch, dims = indices[0].shape, attrs["dims"]
    numbers = f.iota(size=int(np.prod(batch)), dtype=np.dtype(np.int64))
    numbers = f.reshape(numbers, shape=batch)
    nobody = filled(f, ArrayType(np.dtype(np.int64), tuple(_extents(shape, dims))), -1)
    axes = {"dims": tuple(range(len(dims)))}
    winners = f.scatter_maximum(nobody, numbers, *indices, **axes, starts=(), steps=())
    return f.equal(f.gather(winners, *indices, **axes), numbers)


# multiply, minimum, maximum


def _factors(repeats: Repeats) -> Callable[..., Any]:
    def prepare(
        f: Emitter, out: Any, x: Any, updates: Any, *indices: Any, **attrs: Any
    ) -> tuple[Any, ...]:
        """What the tangents of x and of the updates are multiplied by: all other factors."""
        ones = filled(f, ArrayType(x.dtype, x.shape), 1)
        if indices and not all(_extents(x.shape, attrs["dims"])):
            return (ones, filled(f, ArrayType(x.dtype, updates.shape)), *indices)
        sizes = updates.shape[updates.ndim - len(attrs["starts"]) :]
        own = taken(f, x, indices, attrs, sizes)
        if not repeats(attrs, [x.type, updates.type, *(i.type for i in indices)]):
            return (f.scatter_set(ones, updates, *indices, **attrs), own, *indices)
        scale = f.scatter_multiply(ones, updates, *indices, **attrs)
        others = _products_of_the_others(f, updates, indices, _extents(x.shape, attrs["dims"]))
        return (scale, own * others, *indices)

    return prepare


def _products_of_the_others(
    f: Emitter, updates: Any, indices: Values, extents: Sequence[int]
) -> Any:
    """For each update, the product of the others of the same place.

    Without divisions, so that zeros may be among them, at every order of derivatives: updates are
    sorted by their places, and multiplied from both ends of each run.
    """
    batch = indices[0].shape
    count, rest = prod(batch), updates.shape[len(batch) :]
    places = f.where(in_range(f, indices, extents), _numbers(f, indices, extents), np.int64(-1))
    places = f.reshape(places, shape=(count,))
    order = f.argsort(places)
    places = f.gather(places, order, dims=(0,))
    rows = f.gather(f.reshape(updates, shape=(count, *rest)), order, dims=(0,))
    before = _products_before(f, rows, places)
    after = _products_before(f, _reversed(f, rows), _reversed(f, places))
    others = f.gather(before * _reversed(f, after), f.argsort(order), dims=(0,))
    return f.reshape(others, shape=updates.shape)


def _numbers(f: Emitter, indices: Values, extents: Sequence[int]) -> Any:
    """The row-major number of each place."""
    found: Any = None
    for index, extent in zip(indices, extents, strict=True):
        at = wrapped(f, index, extent)
        found = at if found is None else f.add(f.multiply(found, np.int64(extent)), at)
    return found


def _products_before(f: Emitter, rows: Any, places: Any) -> Any:
    """For each row, the product of those before it that have its place: runs of equal places.

    Products of 1, 2, 4 … rows (Hillis and Steele, Data parallel algorithms, 1986).
    """
    distance, found = 1, rows
    while distance < rows.shape[0]:
        found = found * _moved(f, found, places, distance)
        distance *= 2
    return _moved(f, found, places, 1)


def _moved(f: Emitter, rows: Any, places: Any, by: int) -> Any:
    """The rows that far before, or 1 where these have another place."""
    count, rest = rows.shape[0], rows.shape[1:]
    ones = filled(f, ArrayType(rows.dtype, (by, *rest)), 1)
    moved = f.concatenate(ones, _part(f, rows, 0, count - by), axis=0)
    apart = filled(f, ArrayType(np.dtype(np.bool_), (by,)), 0)
    same = f.equal(_part(f, places, by, count - by), _part(f, places, 0, count - by))
    same = f.concatenate(apart, same, axis=0)
    return f.where(_spread(f, same, rows.ndim), moved, number(rows, 1))


def _part(f: Emitter, x: Any, start: int, size: int) -> Any:
    """Some of the rows."""
    starts, rest = (start, *(0 for _ in x.shape[1:])), x.shape[1:]
    return f.slice(x, starts=starts, steps=(1,) * x.ndim, sizes=(size, *rest))


def _reversed(f: Emitter, x: Any) -> Any:
    """The rows, last first."""
    starts, steps = (x.shape[0] - 1, *(0 for _ in x.shape[1:])), (-1, *(1 for _ in x.shape[1:]))
    return f.slice(x, starts=starts, steps=steps, sizes=x.shape)


def _sum_of_products(f: Emitter, values: Values, tangents: Values, **attrs: Any) -> Any:
    of_x, of_updates, *indices = values
    t_x, t_updates, *_ = tangents
    if t_x is not None:
        t_x = f.multiply(of_x, t_x)
    if t_updates is None:
        return t_x
    if t_x is None:
        t_x = filled(f, ArrayType(of_x.dtype, of_x.shape))
    return f.scatter_add(t_x, f.multiply(of_updates, t_updates), *indices, **attrs)


def _shares(
    f: Emitter, out: Any, x: Any, updates: Any, *indices: Any, **attrs: Any
) -> tuple[Any, ...]:
    """What is equal to the result shares its derivative equally: x, and updates in range."""
    mine = indicator(f, f.equal(x, out), x)
    if indices and not all(_extents(x.shape, attrs["dims"])):
        return (mine, filled(f, ArrayType(x.dtype, updates.shape)), *indices)
    sizes = updates.shape[updates.ndim - len(attrs["starts"]) :]
    theirs = indicator(f, f.equal(updates, taken(f, out, indices, attrs, sizes)), x)
    count = f.scatter_add(mine, theirs, *indices, **attrs)
    theirs = theirs / f.maximum(taken(f, count, indices, attrs, sizes), number(x, 1))
    return (mine / f.maximum(count, number(x, 1)), theirs, *indices)


# dynamic_update_slice


def _window_transpose(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, update: Any, *starts: Any
) -> tuple[Any, ...]:
    of_x = of_update = None
    type_ = ArrayType(ct.dtype, update.shape if types[1] is None else types[1].shape)
    if types[1] is not None:
        of_update = f.dynamic_slice(ct, *starts, sizes=type_.shape)
    if types[0] is not None:  # after the cotangent is read: it may be written in place
        of_x = f.dynamic_update_slice(ct, filled(f, type_), *starts)
    return of_x, of_update


OF_WINDOW = Linear(_window_transpose, (0, 1))
