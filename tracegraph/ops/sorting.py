"""Sorting along the last axis: the elements in order, or the positions that they come from.

Both are stable. NaNs come last, and are equal to each other, as are -0.0 and 0.0. Complex numbers
are ordered by their real parts, then by their imaginary parts; those with a NaN in the imaginary
part follow the others, by their real parts, and those with a NaN in the real part come last.
Further arrays are brought into the same order by gathering them at the positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES, bfloat16
from tracegraph.ir.derivative import Constant, Emitter, Rewrite
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import along_lanes

_INDEX = np.dtype(np.int64)
NDArray = np.ndarray[Any, Any]


def _check(op: str, x: ArrayType) -> None:
    if x.ndim == 0:
        raise ValueError(f"{op}: needs an axis to sort along, got the scalar {x}")


def _sorted_type(x: ArrayType) -> ArrayType:
    _check("sort", x)
    return x


def _order_type(x: ArrayType) -> ArrayType:
    _check("argsort", x)
    return ArrayType(_INDEX, x.shape)


def comparable(x: Any) -> NDArray:
    """bfloat16 as float32: NumPy sorts other dtypes than its own by Python calls."""
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == bfloat16 else array


def _sort(x: Any) -> NDArray:
    """NumPy's default sort is up to 7 times as fast; it differs if equal elements have other bits.

    These are zeros and NaNs.
    """
    array = np.asarray(x)
    if array.dtype == bfloat16:
        return np.take_along_axis(array, _argsort(array), -1)
    if array.dtype.kind != "c":
        found = np.sort(array, axis=-1)
        if array.dtype.kind != "f" or not _has_other_bits(array, found):
            return found
    return np.sort(array, axis=-1, kind="stable")


def _has_other_bits(array: NDArray, found: NDArray) -> bool:
    """Whether sorted rows have NaNs, which are last, or an array has negative zeros."""
    if np.isnan(found[..., -1:]).any():
        return True
    zeros = array == 0
    return bool(zeros.any() and np.signbit(array[zeros]).any())


def _argsort(x: Any) -> NDArray:
    return np.argsort(comparable(x), axis=-1, kind="stable").astype(_INDEX, copy=False)


def samples() -> list[Sample]:
    """Rows of all dtypes, with ties and NaNs."""
    rng = np.random.default_rng(0)
    arrays: list[NDArray] = []
    for dtype in SHORT_NAMES:
        values = rng.integers(0, 5, (2, 9))
        arrays.append(values.astype(dtype))
    ties = np.array([0.0, np.nan, -0.0, 3.0, -np.inf, -0.0, np.inf, 0.0, -np.nan, -1.0])
    parts = [1.0, np.nan, -0.0, 0.0, -1.0]
    numbers = np.array([complex(a, b) for a in parts for b in parts])
    arrays += [ties.astype(dtype) for dtype in (np.float16, bfloat16, np.float32, np.float64)]
    arrays += [numbers, numbers.astype(np.complex64)]
    arrays += [np.array([np.iinfo(d).max, 0, np.iinfo(d).min], d) for d in "bhilBHIL"]
    arrays += [rng.standard_normal((3, 2, 6)), np.ones((2, 0)), np.ones((0, 3))]
    return [Sample((array,)) for array in arrays]


def at_order(f: Emitter, x: Any, order: Any) -> Any:
    """The elements of each row of `x`, at the positions of `order`."""
    if x.size == 0:
        return x
    *batch, _ = x.shape
    places = []
    for axis, extent in enumerate(batch):
        shape = tuple([extent if i == axis else 1 for i in range(x.ndim)])
        place = f.reshape(f.iota(size=extent, dtype=_INDEX), shape=shape)
        places.append(f.broadcast_to(place, shape=order.shape))
    return f.gather(x, *places, order, dims=tuple(range(x.ndim)))


def _prepare(f: Emitter, out: Any, x: Any) -> tuple[Any, ...]:
    return (f.argsort(x),)


def _tangent(f: Emitter, values: Any, tangents: Any) -> Any:
    """The tangents move with their elements."""
    ((order,), (t,)) = values, tangents
    return at_order(f, t, order)


def _register(name: str, doc: str, type_rule: Any, reference: Callable[..., Any], of: Any) -> Op:
    return register(
        Op(
            name,
            doc,
            type_rule,
            reference,
            Opaque(),
            samples,
            batch=along_lanes(name),
            derivative=of,
        )
    )


sort = _register(
    "sort",
    "The elements of each row in ascending order.",
    _sorted_type,
    _sort,
    Rewrite(_prepare, _tangent),
)
argsort = _register(
    "argsort",
    "The positions that the elements of each row in ascending order come from.",
    _order_type,
    _argsort,
    Constant(),
)
