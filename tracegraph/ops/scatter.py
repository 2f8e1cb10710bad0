"""Scatters: writing at indices that are data.

They return a changed copy of x; x itself is never written to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.combiners import ADD, MAXIMUM, MINIMUM, MULTIPLY
from tracegraph.ir.op import Combiner, Op, Operand, Sample, Scatter, register
from tracegraph.ir.scalar import Expr, both
from tracegraph.ir.types import ArrayType
from tracegraph.ops import batching
from tracegraph.ops.checks import (
    check_axes,
    check_count,
    check_distinct,
    check_indices,
    check_same_dtype,
    check_strided_range,
)
from tracegraph.ops.index import (
    check_window,
    other_axes,
    window,
    window_samples,
    window_start,
    wrapped_index,
    wrapped_indices,
)
from tracegraph.ops.sampling import ramp
from tracegraph.ops.scatter_derivatives import OF_WINDOW, of_scatter
from tracegraph.ops.shape import python_slices

Index = tuple[Expr, ...]
Ints = tuple[int, ...]
NDArray = np.ndarray[Any, Any]
Target = tuple[Index, Expr | None]


# dynamic_update_slice


def _dynamic_update_type(x: ArrayType, update: ArrayType, *starts: ArrayType) -> ArrayType:
    check_same_dtype("dynamic_update_slice", x, update)
    check_window("dynamic_update_slice", x, starts, update.shape)
    return x.strong()


def _dynamic_update_reference(x: Any, update: Any, *starts: Any) -> NDArray:
    result = np.array(x)
    window(result, starts, np.shape(update))[...] = update
    return result


def _dynamic_update_target(index: Index, operands: Sequence[Operand], out: ArrayType) -> Target:
    _, update, *starts = operands
    spans = zip(index, starts, out.shape, update.type.shape, strict=True)
    return tuple(i + window_start(start, extent, size) for i, start, extent, size in spans), None


dynamic_update_slice = register(
    Op(
        "dynamic_update_slice",
        "x with a window replaced, whose scalar starts are data, clamped so that it fits.",
        _dynamic_update_type,
        _dynamic_update_reference,
        Scatter(_dynamic_update_target, repeats=lambda attrs, types: 0),
        lambda: [Sample((x, ramp(sizes, x.dtype), *at)) for x, at, sizes in window_samples()],
        batch=batching.dynamic_update_slice,
        derivative=OF_WINDOW,
    )
)


# scatters
#
# `distinct` is the number of trailing axes of the index arrays along which no two updates are of
# one element, where that is known: these updates need no order among them.


def _scatter_type(name: str) -> Callable[..., ArrayType]:
    def rule(
        x: ArrayType,
        updates: ArrayType,
        *indices: ArrayType,
        dims: Ints,
        starts: Ints,
        steps: Ints,
        distinct: int = 0,
    ) -> ArrayType:
        check_same_dtype(name, x, updates)
        check_axes(name, dims, x.ndim)
        check_count(name, "dims (one per index array)", dims, len(indices))
        batch = indices[0].shape if indices else ()
        check_indices(name, indices, batch)
        check_distinct(name, distinct, batch)
        rest = other_axes(x.ndim, dims)
        check_count(name, "starts", starts, len(rest))
        check_count(name, "steps", steps, len(rest))
        if updates.ndim != len(batch) + len(rest) or updates.shape[: len(batch)] != batch:
            raise ValueError(
                f"{name}: updates must have the shape {batch} of the indices and then one extent "
                f"for each of the axes {rest} of {x}, got {updates}"
            )
        sizes = updates.shape[len(batch) :]
        for axis, start, step, size in zip(rest, starts, steps, sizes, strict=True):
            check_strided_range(name, axis, x.shape[axis], start, step, size)
        return x.strong()

    return rule


def _places(indices: Sequence[Any], extents: Ints) -> tuple[list[NDArray], NDArray]:
    """The index arrays, flat and without points out of range, and the mask of those in range."""
    flat = [wrapped_indices(i, n).ravel() for i, n in zip(indices, extents, strict=True)]
    in_range = [(i >= 0) & (i < n) for i, n in zip(flat, extents, strict=True)]
    inside = np.logical_and.reduce(in_range)
    return [index[inside] for index in flat], inside


def _scatter_reference(combine: np.ufunc | None) -> Callable[..., NDArray]:
    def reference(
        x: Any,
        updates: Any,
        *indices: Any,
        dims: Ints,
        starts: Ints,
        steps: Ints,
        distinct: int = 0,
    ) -> NDArray:
        result = np.array(x)
        updates = np.asarray(updates)
        front = result.transpose(*dims, *other_axes(result.ndim, dims))  # a view, dims foremost
        sizes = updates.shape[updates.ndim - len(starts) :]
        key = python_slices(starts, steps, sizes)
        if indices:
            places, inside = _places(indices, front.shape[: len(dims)])
            key = (*places, *key)
            updates = updates.reshape(inside.size, *sizes)[inside]
        if combine is None:
            front[key] = updates
        else:
            with np.errstate(all="ignore"):
                combine.at(front, key, updates)
        return result

    return reference


def _scatter_target(
    index: Index,
    operands: Sequence[Operand],
    out: ArrayType,
    *,
    dims: Ints,
    starts: Ints,
    steps: Ints,
    distinct: int = 0,
) -> Target:
    indices = operands[2:]
    rank = indices[0].type.ndim if indices else 0
    strided = zip(index[rank:], starts, steps, strict=True)
    rest = (i * step + start for i, start, step in strided)
    position = dict(zip(other_axes(out.ndim, dims), rest, strict=True))
    guard: Expr | None = None
    for axis, values in zip(dims, indices, strict=True):
        found = wrapped_index(values[index[:rank]], out.shape[axis])
        guard = both(guard, both(found >= 0, found < out.shape[axis]))
        position[axis] = found
    return tuple(position[axis] for axis in range(out.ndim)), guard


def _scatter_repeats(attrs: Mapping[str, Any], types: Sequence[ArrayType]) -> int:
    indices = types[2:]
    if not indices or indices[0].size <= 1:
        return 0
    distinct: int = attrs.get("distinct", 0)
    return indices[0].ndim - distinct


def _scatter_samples() -> list[Sample]:
    def sample(
        x: NDArray,
        updates: NDArray,
        indices: tuple[NDArray, ...] = (),
        dims: Ints = (),
        starts: Ints = (),
        steps: Ints = (),
    ) -> Sample:
        attrs = {"dims": dims, "starts": starts, "steps": steps}
        return Sample((x, updates, *indices), attrs)

    repeated = np.array([[0, -1, 0], [9, -9, 2]])
    return [
        sample(ramp(()), ramp((), np.float64) + 2),
        sample(ramp((6,), np.float32), ramp((3,), np.float32), starts=(4,), steps=(-2,)),
        sample(ramp((3, 4), np.int8), ramp((3, 2), np.int8), starts=(0, 1), steps=(1, 2)),
        sample(ramp((4,)), ramp((0,)), starts=(7,), steps=(1,)),
        sample(ramp((5,)), np.array(3.0), (np.array(-2),), (0,)),
        sample(ramp((5,)), np.array(3.0), (np.array(5, np.int8),), (0,)),
        sample(ramp((5,), np.int64), ramp((7,), np.int64), (np.arange(7) % 3,), (0,)),
        sample(ramp((5,), np.uint32), ramp((2, 3), np.uint32), (repeated.astype(np.int8),), (0,)),
        sample(
            ramp((3, 4), np.float32), ramp((2, 3, 4), np.float32), (repeated,), (0,), (3,), (-1,)
        ),
        sample(
            ramp((2, 4, 3), bfloat16),
            ramp((3, 1, 2), bfloat16),
            (np.array([3, 3, 200], np.uint8),),
            (1,),
            (1, 0),
            (1, 2),
        ),
        sample(
            ramp((3, 2, 4)),
            ramp((2, 3, 1)),
            (repeated, repeated[::-1].copy()),
            (0, 2),
            (1,),
            (1,),
        ),
        sample(ramp((0, 2)), ramp((3, 2)), (np.array([0, 1, -1]),), (0,), (0,), (1,)),
        sample(ramp((3,)), ramp((0,)), (np.zeros(0, np.int64),), (0,)),
        sample(ramp((4,), np.bool_), ramp((3,), np.bool_), (np.array([1, 1, 0]),), (0,)),
        sample(ramp((3,), np.complex64), ramp((2,), np.complex64), (np.array([1, 1]),), (0,)),
    ]


def _scatter(name: str, doc: str, combiner: Combiner | None) -> Op:
    return register(
        Op(
            name,
            doc,
            _scatter_type(name),
            _scatter_reference(None if combiner is None else combiner.ufunc),
            Scatter(_scatter_target, _scatter_repeats, combiner),
            _scatter_samples,
            batch=batching.scatter(name),
            derivative=of_scatter(name, _scatter_repeats),
        )
    )


scatter_set = _scatter(
    "scatter_set",
    "x with elements at index arrays replaced; the last duplicate wins, indices out of range drop.",
    None,
)
scatter_add = _scatter(
    "scatter_add", "x with updates added at index arrays, one after the other.", ADD
)
scatter_multiply = _scatter(
    "scatter_multiply", "x multiplied by updates at index arrays, one after the other.", MULTIPLY
)
scatter_minimum = _scatter(
    "scatter_minimum", "The minimum of x and updates at index arrays; NaN wins.", MINIMUM
)
scatter_maximum = _scatter(
    "scatter_maximum", "The maximum of x and updates at index arrays; NaN wins.", MAXIMUM
)
