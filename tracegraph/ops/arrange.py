"""Static rearrangements: roll, pad, concatenate; iota, empty."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.derivative import Constant, Emitter, Linear
from tracegraph.ir.op import Indexed, Op, Operand, Sample, register
from tracegraph.ir.scalar import Expr, both, const, select
from tracegraph.ir.scalar_values import as_value
from tracegraph.ir.types import ArrayType
from tracegraph.ops import batching
from tracegraph.ops.checks import check_axes, check_count, check_same_dtype
from tracegraph.ops.cotangents import Types
from tracegraph.ops.sampling import ramp

Index = tuple[Expr, ...]
Ints = tuple[int, ...]


# roll


def _roll_type(x: ArrayType, *, shifts: Ints, axes: Ints) -> ArrayType:
    check_axes("roll", axes, x.ndim)
    check_count("roll", "shifts", shifts, len(axes))
    return x.strong()


def _roll_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, shifts: Ints, axes: Ints
) -> Expr:
    position = list(index)
    for shift, axis in zip(shifts, axes, strict=True):
        position[axis] = (index[axis] - shift) % out.shape[axis]
    return operands[0][tuple(position)]


def _roll_run(x: ArrayType, *, shifts: Ints, axes: Ints) -> int:
    return prod(x.shape[max(axes, default=0) :])


def _roll_samples() -> list[Sample]:
    cases: list[tuple[Ints, Ints, Ints, Any]] = [
        ((), (), (), np.float64),
        ((5,), (2,), (0,), np.float32),
        ((5,), (-7,), (0,), np.int8),
        ((3, 4), (1, -1), (0, 1), np.complex128),
        ((2, 3, 1, 4), (9, 5), (1, 3), bfloat16),
        ((3, 0), (1, 1), (0, 1), np.float64),
    ]
    return [
        Sample((ramp(shape, dtype),), {"shifts": shifts, "axes": axes})
        for shape, shifts, axes, dtype in cases
    ]


def _rolled_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, shifts: Ints, axes: Ints
) -> tuple[Any]:
    return (f.roll(ct, shifts=tuple([-shift for shift in shifts]), axes=axes),)


roll = register(
    Op(
        "roll",
        "Elements moved along axes by shifts, cyclically.",
        _roll_type,
        lambda x, *, shifts, axes: np.roll(x, shifts, axes) if axes else np.array(x),
        Indexed(_roll_element, run=_roll_run),
        _roll_samples,
        batch=batching.roll,
        derivative=Linear(_rolled_back),
    )
)


# pad


def _pad_type(x: ArrayType, value: ArrayType, *, low: Ints, high: Ints) -> ArrayType:
    check_same_dtype("pad", x, value)
    check_count("pad", "low", low, x.ndim)
    check_count("pad", "high", high, x.ndim)
    if value.shape or any(width < 0 for width in low + high):
        raise ValueError(
            f"pad: needs a scalar value and widths of at least 0, got {value}, {low} and {high}"
        )
    widths = zip(low, x.shape, high, strict=True)
    return ArrayType(x.dtype, tuple(map(sum, widths)))


def _pad_reference(x: Any, value: Any, *, low: Ints, high: Ints) -> np.ndarray[Any, Any]:
    x = np.asarray(x)
    result = np.full(tuple(map(sum, zip(low, x.shape, high, strict=True))), value, x.dtype)
    result[tuple(slice(lo, lo + n) for lo, n in zip(low, x.shape, strict=True))] = x
    return result


def _pad_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, low: Ints, high: Ints
) -> Expr:
    x, value = operands
    position = tuple(i - before for i, before in zip(index, low, strict=True))
    inside: Expr | None = None
    for i, extent in zip(position, x.type.shape, strict=True):
        inside = both(inside, both(i >= 0, i < extent))
    if inside is None:
        return x[position]
    return select(inside, x.at(position, inside), value[()])


def _pad_samples() -> list[Sample]:
    cases: list[tuple[Ints, Ints, Ints, Any]] = [
        ((), (), (), np.float64),
        ((3,), (2,), (1,), np.float32),
        ((3,), (0,), (0,), np.int64),
        ((2, 3), (0, 1), (2, 0), np.complex64),
        ((2, 1, 2, 1), (1, 0, 0, 2), (0, 1, 0, 0), bfloat16),
        ((0, 2), (1, 0), (1, 1), np.bool_),
        ((0,), (0,), (0,), np.float64),
    ]
    return [
        Sample((ramp(shape, dtype), np.array(7, dtype)), {"low": low, "high": high})
        for shape, low, high, dtype in cases
    ]


def _unpadded(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, value: Any, *, low: Ints, high: Ints
) -> tuple[Any, ...]:
    spans = zip(low, ct.shape, high, strict=True)
    sizes = tuple([n - before - after for before, n, after in spans])
    inside = f.slice(ct, starts=low, steps=(1,) * ct.ndim, sizes=sizes)
    if types[1] is None:
        return inside, None
    whole, part = (f.sum(a, axes=tuple(range(ct.ndim))) for a in (ct, inside))
    return None if types[0] is None else inside, f.subtract(whole, part)


pad = register(
    Op(
        "pad",
        "x with `low` elements of a scalar value before and `high` after it, along every axis.",
        _pad_type,
        _pad_reference,
        Indexed(_pad_element),
        _pad_samples,
        batch=batching.pad,
        derivative=Linear(_unpadded, (0, 1)),
    )
)


# concatenate


def _concatenate_type(*xs: ArrayType, axis: int) -> ArrayType:
    if not xs:
        raise ValueError("concatenate: needs at least one operand, got none")
    check_same_dtype("concatenate", *xs)
    first = xs[0]
    check_axes("concatenate", (axis,), first.ndim)
    if any(_without(x, axis) != _without(first, axis) for x in xs):
        listed = ", ".join(map(str, xs))
        raise ValueError(f"concatenate: shapes must agree but for axis {axis}, got {listed}")
    total = sum(x.shape[axis] for x in xs)
    return ArrayType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _without(x: ArrayType, axis: int) -> tuple[Ints, Ints]:
    return x.shape[:axis], x.shape[axis + 1 :]


def _concatenate_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, axis: int
) -> Expr:
    parts = [x for x in operands if x.type.shape[axis]]
    edges = [0, *accumulate(x.type.shape[axis] for x in parts)]
    return _element_of(parts, edges, index, axis)


def _element_of(parts: Sequence[Operand], edges: Sequence[int], index: Index, axis: int) -> Expr:
    """Binary search for the part that has the element: log₂ choices."""
    along = index[axis]
    if len(parts) > 1:
        middle = len(parts) // 2
        before = _element_of(parts[:middle], edges[: middle + 1], index, axis)
        after = _element_of(parts[middle:], edges[middle:], index, axis)
        return select(along < edges[middle], before, after)
    inside = both(along >= edges[0], along < edges[1])
    position = (*index[:axis], along - edges[0], *index[axis + 1 :])
    return parts[0].at(position, inside)


def _concatenate_samples() -> list[Sample]:
    cases: list[tuple[list[Ints], int, Any]] = [
        ([(3,)], 0, np.float64),
        ([(2,), (3,)], 0, np.float32),
        ([(1,), (0,), (2,), (1,), (3,)], 0, np.int32),
        ([(2, 3), (2, 1)], 1, np.complex64),
        ([(1, 2, 2), (2, 2, 2), (1, 2, 2)], 0, bfloat16),
        ([(2, 1, 1, 3), (2, 1, 4, 3)], 2, np.bool_),
        ([(0, 2), (0, 2)], 0, np.float64),
    ]
    return [
        Sample(tuple(ramp(shape, dtype) for shape in shapes), {"axis": axis})
        for shapes, axis, dtype in cases
    ]


def _taken_apart(f: Emitter, ct: Any, acc: Any, types: Types, *xs: Any, axis: int) -> list[Any]:
    found: list[Any] = []
    ends = accumulate(_extent(t, x, axis) for t, x in zip(types, xs, strict=True))
    for type_, end in zip(types, ends, strict=True):
        if type_ is None:
            found.append(None)
            continue
        starts = [0] * ct.ndim
        starts[axis] = end - type_.shape[axis]
        part = f.slice(ct, starts=tuple(starts), steps=(1,) * ct.ndim, sizes=type_.shape)
        found.append(part)
    return found


def _extent(type_: ArrayType | None, x: Any, axis: int) -> int:
    extent: int = (x if type_ is None else type_).shape[axis]
    return extent


concatenate = register(
    Op(
        "concatenate",
        "Arrays joined one after the other along an axis.",
        _concatenate_type,
        lambda *xs, axis: np.concatenate(xs, axis),
        Indexed(_concatenate_element),
        _concatenate_samples,
        batch=batching.concatenate,
        derivative=Linear(_taken_apart, None),
    )
)


# iota


def _iota_type(*, size: int, dtype: np.dtype[Any]) -> ArrayType:
    if size < 0:
        raise ValueError(f"iota: the size must be at least 0, got {size}")
    return ArrayType(dtype, (size,))


def _iota_element(
    index: Index,
    operands: Sequence[Operand],
    out: ArrayType,
    *,
    size: int,
    dtype: np.dtype[Any],
) -> Expr:
    return as_value(index[0], out.dtype)


def _iota_samples() -> list[Sample]:
    cases: list[tuple[int, Any]] = [
        (0, np.float64), (1, np.int64), (5, np.int8), (300, np.uint8), (9, np.float32),
        (5, np.float16), (300, bfloat16), (4, np.complex64), (3, np.bool_),
    ]  # fmt: skip
    return [Sample((), {"size": size, "dtype": np.dtype(dtype)}) for size, dtype in cases]


iota = register(
    Op(
        "iota",
        "The numbers 0, 1, …, size - 1 in a dtype.",
        _iota_type,
        lambda *, size, dtype: np.arange(size).astype(dtype),
        Indexed(_iota_element),
        _iota_samples,
        derivative=Constant(),
    )
)


# empty


def _empty_samples() -> list[Sample]:
    cases: list[tuple[tuple[int, ...], Any]] = [
        ((), np.float64), ((3, 2), np.int8), ((2, 0), bfloat16), ((4,), np.complex64),
    ]  # fmt: skip
    return [Sample((), {"shape": shape, "dtype": np.dtype(dtype)}) for shape, dtype in cases]


empty = register(
    Op(
        "empty",
        "An array that is written before it is read: a loop that carries it need not fill it.",
        lambda *, shape, dtype: ArrayType(dtype, shape),
        lambda *, shape, dtype: np.zeros(shape, dtype),
        Indexed(lambda index, operands, out, **_: const(0, out.dtype)),
        _empty_samples,
        derivative=Constant(),
    )
)
