"""Solutions of triangular systems."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter, Linear, Rewrite
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.program import Atom
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import Lanes, columns_of_lanes
from tracegraph.ops.checks import check_same_dtype
from tracegraph.ops.factorizations.by_lapack import are_together, trsm
from tracegraph.ops.factorizations.matrices import (
    DTYPES,
    NDArray,
    check_matrices,
    check_square,
    mixed,
    swapped,
    triangle,
    well_conditioned,
)


def _type(a: ArrayType, b: ArrayType, *, lower: bool, unit: bool = False) -> ArrayType:
    check_same_dtype("triangular_solve", a, b)
    check_square("triangular_solve", a)
    check_matrices("triangular_solve", b)
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError(
            f"triangular_solve: needs (batch…, n, n) and (batch…, n, k) with the same batch axes, "
            f"got {a} and {b}"
        )
    return ArrayType(b.dtype, b.shape)


def _reference(a: Any, b: Any, *, lower: bool, unit: bool = False) -> NDArray:
    a, b = np.asarray(a), np.asarray(b)
    *batch, n, k = b.shape
    count = prod(batch)
    if are_together(n, count):
        return _substitute(a, b, lower=lower, unit=unit)
    x: NDArray = np.empty_like(b, order="C")
    if not x.size:
        return x
    # BLAS does not say what a zero on the diagonal gives
    regular = np.ones(count, bool) if unit else _diagonals(a).all(-1).reshape(count)
    systems = (a.reshape(count, n, n), b.reshape(count, n, k), x.reshape(count, n, k))
    for is_regular, matrix, right, found in zip(regular, *systems, strict=True):
        solve = trsm if is_regular else _substitute
        found[...] = solve(matrix, right, lower=lower, unit=unit)
    return x


def _diagonals(a: NDArray) -> NDArray:
    return np.diagonal(a, axis1=-2, axis2=-1)


def _substitute(a: NDArray, b: NDArray, *, lower: bool, unit: bool) -> NDArray:
    """The solutions of a batch of systems, row by row."""
    if not lower:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    x = np.array(b)
    with np.errstate(all="ignore"):
        for i in range(a.shape[-1]):
            row = x[..., i : i + 1, :]
            row -= a[..., i : i + 1, :i] @ x[..., :i, :]
            if not unit:
                row /= a[..., i : i + 1, i : i + 1]
    return x if lower else x[..., ::-1, :]


def _samples() -> list[Sample]:
    def system(n: int, k: int, dtype: Any, batch: tuple[int, ...] = ()) -> tuple[NDArray, NDArray]:
        a = well_conditioned(n, dtype, batch) + (2 * n**0.5 + 1) * np.eye(n, dtype=dtype)
        return a.astype(dtype), mixed((*batch, n, k), dtype, seed=k)

    singular = np.array([[[0.0, 1.0], [2.0, 3.0]], [[1.0, 2.0], [3.0, 4.0]]])
    cases = [
        *((system(5, 2, dtype), {"lower": True}) for dtype in DTYPES),
        *((system(4, 3, dtype), {"lower": False}) for dtype in DTYPES),
        (system(4, 1, np.float64, (2, 3)), {"lower": True, "unit": True}),
        (system(4, 2, np.complex128, (2,)), {"lower": False, "unit": True}),
        (system(1, 1, np.float64), {"lower": True}),
        ((np.zeros((0, 0)), np.zeros((0, 2))), {"lower": True}),
        ((np.eye(2), np.zeros((2, 0))), {"lower": False}),
        ((singular, np.ones((2, 2, 1))), {"lower": True}),
    ]
    return [Sample(operands, attrs) for operands, attrs in cases]


def _batched(lanes: Lanes, operands: Sequence[Atom], batched: Sequence[bool], **attrs: Any) -> Atom:
    """Where lanes share the matrices, their right-hand sides become columns of one system."""
    a, b = operands
    if batched[0]:
        spread = lanes.spread(b, batched[1])
        return lanes.emit("triangular_solve", a, spread, **attrs)

    def solve(wide: Atom) -> Atom:
        return lanes.emit("triangular_solve", a, wide, **attrs)

    return columns_of_lanes(lanes, b, solve)


def _prepare(f: Emitter, x: Any, a: Any, b: Any, **attrs: Any) -> tuple[Any, ...]:
    return a, x


def _tangent(f: Emitter, values: Any, tangents: Any, *, lower: bool, unit: bool = False) -> Any:
    """A⁻¹ (b' - A' x)."""
    (a, x), (of_a, right) = values, tangents
    if of_a is not None:
        offset = 0 if not unit else -1 if lower else 1
        moved = f.matmul(triangle(f, of_a, lower=lower, offset=offset), x)
        right = f.negative(moved) if right is None else f.subtract(right, moved)
    return f.triangular_solve(a, right, lower=lower, unit=unit)


def _transpose(
    f: Emitter, ct: Any, acc: Any, types: Any, a: Any, b: Any, *, lower: bool, unit: bool = False
) -> tuple[Any, ...]:
    return (f.triangular_solve(swapped(f, a), ct, lower=not lower, unit=unit),)


triangular_solve = register(
    Op(
        "triangular_solve",
        "The x of A x = b, from one triangle of A; with `unit`, its diagonal counts as ones.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=_batched,
        derivative=Rewrite(_prepare, _tangent, Linear(_transpose, of=(1,))),
    )
)
"""Zeros on the diagonal give infinities and NaN, as divisions by them do."""
