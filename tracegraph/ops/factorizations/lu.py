"""The LU factorization with partial pivoting."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Constant, Emitter, Rewrite
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import along_lanes
from tracegraph.ops.factorizations.by_lapack import are_together, getrf
from tracegraph.ops.factorizations.matrices import (
    DTYPES,
    NDArray,
    check_matrices,
    identity,
    rows_at,
    swapped,
    triangle,
    well_conditioned,
)

_INT32 = np.dtype(np.int32)


def _type(a: ArrayType) -> tuple[ArrayType, ...]:
    check_matrices("lu", a)
    *batch, m, n = a.shape
    pivots, rows = ArrayType(_INT32, (*batch, min(m, n))), ArrayType(_INT32, (*batch, m))
    return ArrayType(a.dtype, a.shape), pivots, rows


def _reference(a: Any) -> tuple[NDArray, NDArray, NDArray]:
    factors = np.array(a, order="C")  # written in place below, through another shape
    *batch, m, n = factors.shape
    count, k = prod(batch), min(m, n)
    pivots = np.zeros((count, k), _INT32)
    rows = np.tile(np.arange(m, dtype=_INT32), (count, 1))
    if are_together(k, count):
        with np.errstate(all="ignore"):
            _eliminate(factors.reshape(count, m, n), pivots)
        _swap(rows, pivots)
    elif k:
        for matrix, swaps, order in zip(factors.reshape(count, m, n), pivots, rows, strict=True):
            matrix[...], swaps[...] = getrf(matrix)
            order[...] = _order(swaps, m)
    return factors, pivots.reshape(*batch, k), rows.reshape(*batch, m)


def _order(pivots: NDArray, m: int) -> list[int]:
    """The order of m rows after swaps of each with its pivot, one after the other."""
    order = list(range(m))
    for row, pivot in enumerate(pivots.tolist()):
        order[row], order[pivot] = order[pivot], order[row]
    return order


def _eliminate(a: NDArray, pivots: NDArray) -> None:
    """Factor many small matrices (batch, m, n) in place, column by column, and set the pivots."""
    for column in range(min(a.shape[1:])):
        _eliminate_column(a, column, pivots)


def _eliminate_column(a: NDArray, k: int, pivots: NDArray) -> None:
    pivots[:, k] = k + _size(a[:, k:, k]).argmax(-1)
    _swap(a, pivots[:, : k + 1], k)
    pivot, below = a[:, k, k, None], a[:, k + 1 :, k]
    np.divide(below, pivot, out=below, where=pivot != 0)
    a[:, k + 1 :, k + 1 :] -= below[:, :, None] * a[:, k, None, k + 1 :]


def _size(x: NDArray) -> NDArray:
    """What LAPACK compares pivots by."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def _swap(a: NDArray, pivots: NDArray, first: int = 0) -> None:
    """Swap rows with their pivots, one after the other, from the `first` on."""
    each = np.arange(len(a))
    for row in range(first, pivots.shape[1]):
        other = pivots[:, row]
        upper = a[:, row].copy()
        a[:, row] = a[each, other]
        a[each, other] = upper


def _samples() -> list[Sample]:
    arrays = [
        *(well_conditioned(5, dtype) for dtype in DTYPES),
        well_conditioned(3, np.float64, (2, 2)),
        well_conditioned(6)[:, :4],
        well_conditioned(6, np.complex128)[:3],
        np.full((1, 1), -2.0),
        np.zeros((0, 3)),
        np.zeros((2, 0)),
        np.zeros((0, 2, 2)),
        np.array([[[0.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]]),
    ]
    return [Sample((np.ascontiguousarray(a),)) for a in arrays]


def _prepare(f: Emitter, out: Any, a: Any) -> tuple[Any, ...]:
    factors, _, rows = out
    return factors, rows


def _tangent(f: Emitter, values: Any, tangents: Any) -> Any:
    """L tril(X, -1) + triu(X) U, where X = L⁻¹ P A' U⁻¹, and L and U are made square."""
    (factors, rows), (t,) = values, tangents
    *_, m, n = factors.shape
    packed, upper = _square(f, factors, m), _square(f, factors, n)
    moved = rows_at(f, t, f.cast(rows, dtype=np.dtype(np.int64)))
    part = f.triangular_solve(packed, moved, lower=True, unit=True)
    x = swapped(f, f.triangular_solve(swapped(f, upper), swapped(f, part), lower=True))
    below = triangle(f, packed, lower=True, offset=-1)
    lower = f.add(below, identity(f, m, factors.dtype))
    left = f.matmul(lower, triangle(f, x, lower=True, offset=-1))
    right = f.matmul(triangle(f, x, lower=False), triangle(f, upper, lower=False))
    return f.add(left, right), None, None


def _square(f: Emitter, factors: Any, extent: int) -> Any:
    """The factors with as many rows and columns: cut, or continued by those of the identity."""
    *batch, m, n = factors.shape
    if m == n == extent:
        return factors
    rank, k = len(batch) + 2, min(m, n)
    sizes = (*batch, min(m, extent), min(n, extent))
    part = f.slice(factors, starts=(0,) * rank, steps=(1,) * rank, sizes=sizes)
    zero, low = factors.dtype.type(0), (0,) * rank
    high = (*(0 for _ in batch), extent - sizes[-2], extent - sizes[-1])
    rest = f.pad(identity(f, extent - k, factors.dtype), zero, low=(k, k), high=(0, 0))
    return f.add(f.pad(part, zero, low=low, high=high), rest)


lu = register(
    Op(
        "lu",
        "L below the diagonal and U of A[rows] = L U, the pivots row by row, and the rows.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=along_lanes("lu"),
        derivative=Rewrite(_prepare, _tangent),
    )
)
"""The pivot of row k is the row from k on that was swapped with it. A column without a pivot leaves
0 on the diagonal of U, and is not divided by it."""


def _order_type(pivots: ArrayType, *, rows: int) -> ArrayType:
    if pivots.dtype.kind not in "iu" or pivots.ndim < 1 or pivots.shape[-1] > rows:
        raise TypeError(
            f"order_of_rows: needs integers (batch…, k), k at most the {rows} rows, got {pivots}"
        )
    return ArrayType(np.dtype(np.int64), (*pivots.shape[:-1], rows))


def _order_reference(pivots: Any, *, rows: int) -> NDArray:
    *batch, k = pivots.shape
    count = prod(batch)
    order = np.tile(np.arange(rows), (count, 1))
    swaps = np.where(pivots < 0, pivots + rows, pivots).clip(0, rows - 1).reshape(count, k)
    if are_together(k, count):
        _swap(order, swaps)
    else:
        for each, found in zip(swaps, order, strict=True):
            found[...] = _order(each, rows)
    return order.reshape(*batch, rows)


def _order_samples() -> list[Sample]:
    return [
        Sample((np.array([2, 1, 3, 3], np.int32),), {"rows": 4}),
        Sample((np.array([[4, 1], [1, 4]]),), {"rows": 5}),
        Sample((np.array([[1, 1]] * 40),), {"rows": 2}),
        Sample((np.zeros((2, 0), np.int32),), {"rows": 3}),
        Sample((np.zeros((0, 2), np.int32),), {"rows": 2}),
    ]


order_of_rows = register(
    Op(
        "order_of_rows",
        "The order of `rows` rows after each was swapped with its pivot, one after the other.",
        _order_type,
        _order_reference,
        Opaque(),
        _order_samples,
        batch=along_lanes("order_of_rows"),
        derivative=Constant(),
    )
)
"""Pivots are as those of `lu`. One that is out of range counts as the last row, or the first."""
