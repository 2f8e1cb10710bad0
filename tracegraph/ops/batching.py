"""Batching rules of ops whose form implies none: views, arrangements, reads, writes, products.

A rule takes `lanes`, the operands, and which of these are batched: have the lanes along axis 0. The
others have one value for all lanes. It records ops through `lanes` and returns the batched result.
At least one operand is batched. What axes mean to an op moves by one, so that lanes stay in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tracegraph.dtypes import BOOL
from tracegraph.ir.program import Atom, Literal
from tracegraph.ir.types import ArrayType

Atoms = Sequence[Atom]
Flags = Sequence[bool]
Ints = tuple[int, ...]

_INDEX = ArrayType(np.dtype(np.int64))
_START = Literal.of(0, _INDEX)


class Lanes(Protocol):
    """What rules record by: `count` copies of a computation, side by side.

    Where `writing`, a mask of lanes, is not None, a scatter leaves the arrays of the other lanes as
    they are.
    """

    @property
    def count(self) -> int:
        """The number of lanes."""

    @property
    def writing(self) -> Atom | None:
        """The lanes that a scatter writes to, bool[count]; None for all."""

    def emit(self, name: str, *operands: Atom, **attrs: Any) -> Atom:
        """Record the registered op of a name, on operands of final dtypes; its result."""

    def emit_all(self, name: str, *operands: Atom, **attrs: Any) -> tuple[Atom, ...]:
        """The same for an op of several results."""

    def spread(self, x: Atom, is_batched: bool = False) -> Atom:
        """The operand, batched: unless it is so already, with its value in every lane."""


# ops of the last axes


def along_lanes(name: str) -> Callable[..., Any]:
    """The batching rule of the op of this name, for which all axes but the last are a batch."""

    def rule(lanes: Lanes, operands: Atoms, batched: Flags, **attrs: Any) -> Any:
        """Lanes are one more axis of the batch."""
        spread = [lanes.spread(x, flag) for x, flag in zip(operands, batched, strict=True)]
        found = lanes.emit_all(name, *spread, **attrs)
        return found if len(found) > 1 else found[0]

    return rule


# views and static rearrangements


def reshape(lanes: Lanes, operands: Atoms, batched: Flags, *, shape: Ints) -> Atom:
    """The lanes in front of the new shape."""
    return lanes.emit("reshape", operands[0], shape=(lanes.count, *shape))


def transpose(lanes: Lanes, operands: Atoms, batched: Flags, *, axes: Ints) -> Atom:
    """The lanes stay in front."""
    return lanes.emit("transpose", operands[0], axes=(0, *_moved(axes)))


def broadcast_to(lanes: Lanes, operands: Atoms, batched: Flags, *, shape: Ints) -> Atom:
    """New axes come behind the lanes."""
    x = aligned(lanes, operands[0], len(shape))
    return lanes.emit("broadcast_to", x, shape=(lanes.count, *shape))


def slice_(
    lanes: Lanes, operands: Atoms, batched: Flags, *, starts: Ints, steps: Ints, sizes: Ints
) -> Atom:
    """The slice of each lane, all lanes being taken."""
    attrs = {"starts": (0, *starts), "steps": (1, *steps), "sizes": (lanes.count, *sizes)}
    return lanes.emit("slice", operands[0], **attrs)


def windows(lanes: Lanes, operands: Atoms, batched: Flags, *, axis: int, size: int) -> Atom:
    """The windows of each lane."""
    return lanes.emit("windows", operands[0], axis=axis + 1, size=size)


def shear(lanes: Lanes, operands: Atoms, batched: Flags, *, axis: int, reverse: bool) -> Atom:
    """Each lane sheared by itself."""
    return lanes.emit("shear", operands[0], axis=axis + 1, reverse=reverse)


def roll(lanes: Lanes, operands: Atoms, batched: Flags, *, shifts: Ints, axes: Ints) -> Atom:
    """Lanes are not rolled."""
    return lanes.emit("roll", operands[0], shifts=shifts, axes=_moved(axes))


def pad(lanes: Lanes, operands: Atoms, batched: Flags, *, low: Ints, high: Ints) -> Atom:
    """Lanes are not padded. A padding value that differs between lanes is chosen by a mask."""
    x, value = operands
    widths = {"low": (0, *low), "high": (0, *high)}
    if not batched[1]:
        return lanes.emit("pad", x, value, **widths)
    true, false = (Literal.of(each, ArrayType(BOOL)) for each in (True, False))
    extents = x.type.shape[1:] if batched[0] else x.type.shape
    inside = lanes.emit("broadcast_to", true, shape=extents)
    inside = lanes.emit("pad", inside, false, low=low, high=high)
    zero = Literal.of(0, ArrayType(x.type.dtype))
    padded = pad(lanes, (lanes.spread(x, batched[0]), zero), (True, False), low=low, high=high)
    return lanes.emit("where", inside, padded, aligned(lanes, value, len(extents)))


def concatenate(lanes: Lanes, operands: Atoms, batched: Flags, *, axis: int) -> Atom:
    """Each lane joined by itself."""
    return lanes.emit("concatenate", *_spread_all(lanes, operands, batched), axis=axis + 1)


# reads at indices that are data


def gather(lanes: Lanes, operands: Atoms, batched: Flags, *, dims: Ints, distinct: int = 0) -> Atom:
    """Of batched x at the same indices, a gather; at indices of each lane, also at the lane's.

    Lanes in front of distinct indices may share elements, unless each reads its own x.
    """
    x, *indices = operands
    attrs = {"distinct": distinct} if distinct else {}
    if not any(batched[1:]):
        rank = indices[0].type.ndim
        found = lanes.emit("gather", x, *indices, dims=_moved(dims), **attrs)
        order = (rank, *range(rank), *range(rank + 1, found.type.ndim))
        return lanes.emit("transpose", found, axes=order)
    indices = _spread_all(lanes, indices, batched[1:])
    if not batched[0]:
        return lanes.emit("gather", x, *indices, dims=dims, **attrs)
    if distinct == len(indices[0].type.shape) - 1 and distinct and lanes.writing is None:
        attrs = {"distinct": distinct + 1}
    lane = _placed(lanes, _lane_numbers(lanes), indices[0].type.shape, 0)
    return lanes.emit("gather", x, lane, *indices, dims=(0, *_moved(dims)), **attrs)


def dynamic_slice(lanes: Lanes, operands: Atoms, batched: Flags, *, sizes: Ints) -> Atom:
    """A window of all lanes; where starts differ between lanes, a gather of each lane's window."""
    x, *starts = operands
    if not any(batched[1:]):
        return lanes.emit("dynamic_slice", x, _START, *starts, sizes=(lanes.count, *sizes))
    extents = x.type.shape[1:] if batched[0] else x.type.shape
    axes = _narrowed(extents, sizes)
    if not axes:
        return lanes.spread(x, batched[0])
    dims, indices = axes, _window(lanes, starts, batched[1:], extents, sizes)
    if batched[0]:
        lane = _placed(lanes, _lane_numbers(lanes), indices[0].type.shape, 0)
        dims, indices = (0, *_moved(axes)), [lane, *indices]
    found = lanes.emit("gather", x, *indices, dims=dims)
    order = _axes_in_front(axes, len(sizes))
    return lanes.emit(
        "transpose", found, axes=(0, *[1 + order.index(a) for a in range(len(order))])
    )


# writes at indices that are data


def dynamic_update_slice(lanes: Lanes, operands: Atoms, batched: Flags) -> Atom:
    """A window of all lanes; where starts differ between lanes, a scatter of each lane's window."""
    x, update = _spread_all(lanes, operands[:2], batched[:2])
    starts, extents, sizes = operands[2:], x.type.shape[1:], update.type.shape[1:]
    if not any(batched[2:]):
        if lanes.writing is not None:
            there = lanes.emit("dynamic_slice", x, _START, *starts, sizes=update.type.shape)
            mask = aligned(lanes, lanes.writing, len(sizes))
            update = lanes.emit("where", mask, update, there)
        return lanes.emit("dynamic_update_slice", x, update, _START, *starts)
    axes = _narrowed(extents, sizes)
    indices = _window(lanes, starts, batched[2:], extents, sizes)
    shape = (lanes.count, *[sizes[axis] for axis in axes])
    lane = _placed(lanes, _lane_numbers(lanes), shape, 0)
    order = (0, *_moved(_axes_in_front(axes, len(sizes))))
    rest = len(sizes) - len(axes)
    return lanes.emit(
        "scatter_set",
        x,
        lanes.emit("transpose", update, axes=order),
        lane,
        *indices,
        dims=(0, *_moved(axes)),
        starts=(0,) * rest,
        steps=(1,) * rest,
        distinct=len(shape),
    )


def scatter(name: str) -> Any:
    """The rule of the scatter of this name."""

    def rule(
        lanes: Lanes,
        operands: Atoms,
        batched: Flags,
        *,
        dims: Ints,
        starts: Ints,
        steps: Ints,
        distinct: int = 0,
    ) -> Atom:
        """At indices that all lanes share, lanes are an axis that is written as a whole; else the
        lane is one more index, which no two lanes share.

        Those that may not write have one that is dropped.
        """
        x, updates, *indices = operands
        x = lanes.spread(x, batched[0])
        shape = indices[0].type.shape[batched[2] :] if indices else ()
        rank = len(shape)
        if lanes.writing is None and not any(batched[2:]):
            updates = _lanes_at(lanes, updates, batched[1], rank)
            attrs = {"dims": _moved(dims), "starts": (0, *starts), "steps": (1, *steps)}
        else:
            indices = [
                _lanes_at(lanes, index, is_batched, rank)
                for index, is_batched in zip(indices, batched[2:], strict=True)
            ]
            lane = _placed(lanes, _lane_numbers(lanes), (*shape, lanes.count), rank)
            indices, distinct = [lane, *indices], distinct + 1
            updates = _lanes_at(lanes, updates, batched[1], rank)
            attrs = {"dims": (0, *_moved(dims)), "starts": starts, "steps": steps}
        if distinct:
            return lanes.emit(name, x, updates, *indices, **attrs, distinct=distinct)
        return lanes.emit(name, x, updates, *indices, **attrs)

    return rule


# products


def matmul(lanes: Lanes, operands: Atoms, batched: Flags, **attrs: Any) -> Atom:
    """A shared matrix times the rows, or the one column, of each lane is one product; else a batch.

    Several columns of each lane would have to be copied to become one matrix.
    """
    x, y = operands
    if batched[0] and not batched[1] and y.type.ndim == 2:
        count, m, k = x.type.shape
        rows = lanes.emit("reshape", x, shape=(count * m, k))
        found = lanes.emit("matmul", rows, y, **attrs)
        return lanes.emit("reshape", found, shape=(count, m, y.type.shape[1]))
    if batched[1] and not batched[0] and x.type.ndim == 2 and y.type.shape[2] == 1:
        vectors = lanes.emit("reshape", y, shape=y.type.shape[:2])
        found = lanes.emit("matmul", vectors, lanes.emit("transpose", x, axes=(1, 0)), **attrs)
        return lanes.emit("reshape", found, shape=(*found.type.shape, 1))
    return lanes.emit("matmul", *_spread_all(lanes, operands, batched), **attrs)


# what rules share


def columns_of_lanes(lanes: Lanes, b: Atom, solve: Callable[[Atom], Atom]) -> Atom:
    """The solutions of systems whose matrices all lanes share: (lanes, batch…, n, k) as
    (batch…, n, lanes k), the columns of one system, which `solve` takes.
    """
    count, *batch, n, k = b.type.shape
    last = len(batch) + 1
    inner = lanes.emit("transpose", b, axes=(*range(1, last + 1), 0, last + 1))
    found = solve(lanes.emit("reshape", inner, shape=(*batch, n, count * k)))
    found = lanes.emit("reshape", found, shape=(*batch, n, count, k))
    return lanes.emit("transpose", found, axes=(last, *range(last), last + 1))


def aligned(lanes: Lanes, x: Atom, rank: int) -> Atom:
    """A batched operand with axes of extent 1 behind the lanes, `rank` axes in all but these."""
    count, *extents = x.type.shape
    missing = rank - len(extents)
    if missing <= 0:
        return x
    return lanes.emit("reshape", x, shape=(count, *(1,) * missing, *extents))


def _moved(axes: Sequence[int]) -> Ints:
    return tuple([axis + 1 for axis in axes])


def _spread_all(lanes: Lanes, operands: Atoms, batched: Flags) -> list[Atom]:
    return [lanes.spread(x, flag) for x, flag in zip(operands, batched, strict=True)]


def _lane_numbers(lanes: Lanes) -> Atom:
    """The number of each lane; of lanes that may not write, one that is out of range."""
    numbers = lanes.emit("iota", size=lanes.count, dtype=_INDEX.dtype)
    if lanes.writing is None:
        return numbers
    return lanes.emit("where", lanes.writing, numbers, Literal.of(lanes.count, _INDEX))


def _placed(lanes: Lanes, x: Atom, shape: Ints, axis: int) -> Atom:
    """A vector along an axis of a shape, repeated along the others."""
    if len(shape) == 1:
        return x
    extents = tuple([n if i == axis else 1 for i, n in enumerate(shape)])
    return lanes.emit("broadcast_to", lanes.emit("reshape", x, shape=extents), shape=shape)


def _lanes_at(lanes: Lanes, x: Atom, is_batched: bool, axis: int) -> Atom:
    """The operand with the lanes along an axis: moved there, or one value for all."""
    shape = x.type.shape
    if is_batched:
        order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
        return x if axis == 0 else lanes.emit("transpose", x, axes=order)
    inserted = lanes.emit("reshape", x, shape=(*shape[:axis], 1, *shape[axis:]))
    return lanes.emit("broadcast_to", inserted, shape=(*shape[:axis], lanes.count, *shape[axis:]))


def _narrowed(extents: Ints, sizes: Ints) -> Ints:
    """The axes along which a window is smaller than the array."""
    return tuple([i for i, (n, size) in enumerate(zip(extents, sizes, strict=True)) if size < n])


def _axes_in_front(axes: Ints, rank: int) -> Ints:
    return (*axes, *[axis for axis in range(rank) if axis not in axes])


def _window(lanes: Lanes, starts: Atoms, batched: Flags, extents: Ints, sizes: Ints) -> list[Atom]:
    """The indices of each lane's window along the axes on which it is smaller than the array."""
    axes = _narrowed(extents, sizes)
    shape = (lanes.count, *[sizes[axis] for axis in axes])
    indices = []
    for place, axis in enumerate(axes, 1):
        start = starts[axis]
        if start.type.dtype != _INDEX.dtype:
            start = lanes.emit("cast", start, dtype=_INDEX.dtype)
        start = lanes.emit("maximum", start, Literal.of(0, _INDEX))
        start = lanes.emit("minimum", start, Literal.of(extents[axis] - sizes[axis], _INDEX))
        if batched[axis]:
            start = aligned(lanes, start, len(axes))
        step = lanes.emit("iota", size=sizes[axis], dtype=_INDEX.dtype)
        extent_one = tuple([n if i == place else 1 for i, n in enumerate(shape)])
        step = lanes.emit("reshape", step, shape=extent_one)
        index = lanes.emit("add", start, step)
        indices.append(lanes.emit("broadcast_to", index, shape=shape))
    return indices
