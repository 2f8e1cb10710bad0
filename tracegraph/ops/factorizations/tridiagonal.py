"""Solutions of tridiagonal systems."""

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
from tracegraph.ops.factorizations.by_lapack import gtsv
from tracegraph.ops.factorizations.matrices import DTYPES, NDArray, check_matrices, mixed


def _type(dl: ArrayType, d: ArrayType, du: ArrayType, b: ArrayType) -> ArrayType:
    for diagonal in (dl, d, du):
        check_same_dtype("tridiagonal_solve", diagonal, b)
    check_matrices("tridiagonal_solve", b)
    if any(x.shape != b.shape[:-1] for x in (dl, d, du)):
        raise ValueError(
            "tridiagonal_solve: needs three diagonals (batch…, n) and (batch…, n, k) with the same "
            f"batch axes, got {dl}, {d}, {du} and {b}"
        )
    return ArrayType(b.dtype, b.shape)


def _reference(dl: Any, d: Any, du: Any, b: Any) -> NDArray:
    """By LAPACK, all systems as one: nothing joins the last row of one and the first of the next.

    Infinities and NaN of one system would reach the others, as would its zero pivots.
    """
    dl, d, du, b = map(np.asarray, (dl, d, du, b))
    *batch, n, k = b.shape
    if not b.size:
        return np.empty(b.shape, b.dtype)
    count = prod(batch)
    lower, upper = (np.array(x).reshape(count, n) for x in (dl, du))
    lower[:, 0] = upper[:, -1] = 0
    whole = gtsv(lower.ravel()[1:], d.ravel(), upper.ravel()[:-1], b.reshape(count * n, k))
    if whole is not None and np.isfinite(whole).all():
        return whole.reshape(b.shape)
    return _eliminated(dl, d, du, b)


def _eliminated(dl: NDArray, d: NDArray, du: NDArray, b: NDArray) -> NDArray:
    """The solutions, row by row, of all systems at once: also of those that have none."""
    n = b.shape[-2]
    zero = np.zeros((*b.shape[:-2], 1), b.dtype)
    d0, e0, b0 = d[..., 0, None], du[..., 0, None], b[..., 0, :]
    upper = []
    with np.errstate(all="ignore"):
        for i in range(1, n):
            l1, d1, u1, b1 = (*(x[..., i, None] for x in (dl, d, du)), b[..., i, :])
            swap = np.abs(l1) > np.abs(d0)
            pivot = np.where(swap, l1, d0)
            first, second = np.where(swap, d1, e0), np.where(swap, u1, zero)
            right = np.where(swap, b1, b0)
            factor = np.where(swap, d0, l1) / pivot
            upper.append((pivot, first, second, right))
            d0 = np.where(swap, e0, d1) - factor * first
            e0 = np.where(swap, zero, u1) - factor * second
            b0 = np.where(swap, b0, b1) - factor * right
        x = np.empty(b.shape, b.dtype)
        x1, x2 = b0 / d0, zero
        x[..., n - 1, :] = x1
        for i in reversed(range(n - 1)):
            pivot, first, second, right = upper[i]
            x1, x2 = (right - first * x1 - second * x2) / pivot, x1
            x[..., i, :] = x1
    return x


def _samples() -> list[Sample]:
    def system(n: int, k: int, dtype: Any, batch: tuple[int, ...] = ()) -> Sample:
        place = np.arange(n) % 3
        large = (8 * (place == 2), 8 * (place == 0), 8 * (place == 1))  # two of three are swapped
        dl, d, du = (
            np.asarray(mixed((*batch, n), dtype, seed) + at, dtype) for seed, at in enumerate(large)
        )
        return Sample((dl, d, du, mixed((*batch, n, k), dtype, seed=k)))

    def singular(values: Any) -> Sample:
        zero = np.zeros(2)
        return Sample((zero, np.asarray(values), zero, np.array([[1.0, 0.0], [2.0, -1.0]])))

    return [
        *(system(5, 2, dtype) for dtype in DTYPES),
        system(4, 1, np.float64, (2, 3)),
        system(1, 3, np.complex128, (2,)),
        system(2, 1, np.float32),
        system(0, 2, np.float64),
        system(3, 0, np.float64),
        system(3, 2, np.float64, (0,)),
        singular([0.0, 2.0]),
        singular([2.0, 0.0]),
    ]


def _batched(lanes: Lanes, operands: Sequence[Atom], batched: Sequence[bool]) -> Atom:
    """Where lanes share the matrices, their right-hand sides become columns of one system."""
    *diagonals, b = operands
    if any(batched[:3]):
        spread = [lanes.spread(x, flag) for x, flag in zip(operands, batched, strict=True)]
        return lanes.emit("tridiagonal_solve", *spread)
    return columns_of_lanes(
        lanes, b, lambda wide: lanes.emit("tridiagonal_solve", *diagonals, wide)
    )


def _prepare(f: Emitter, x: Any, dl: Any, d: Any, du: Any, b: Any) -> tuple[Any, ...]:
    return dl, d, du, x


def _tangent(f: Emitter, values: Any, tangents: Any) -> Any:
    """A⁻¹ (b' - A' x)."""
    (dl, d, du, x), (*of_diagonals, right) = values, tangents
    for tangent, by in zip(of_diagonals, (1, 0, -1), strict=True):
        if tangent is not None:
            column = f.reshape(tangent, shape=(*tangent.shape, 1))
            part = f.multiply(column, _moved(f, x, by, x.ndim - 2))
            right = f.negative(part) if right is None else f.subtract(right, part)
    return f.tridiagonal_solve(dl, d, du, right)


def _transpose(
    f: Emitter, ct: Any, acc: Any, types: Any, dl: Any, d: Any, du: Any, b: Any
) -> tuple[Any, ...]:
    last = d.ndim - 1
    return (f.tridiagonal_solve(_moved(f, du, 1, last), d, _moved(f, dl, -1, last), ct),)


def _moved(f: Emitter, x: Any, by: int, axis: int) -> Any:
    """The elements moved by one place along an axis, with 0 where none comes from."""
    shape = x.shape
    if by == 0 or 0 in shape:
        return x
    kept = tuple([n - 1 if i == axis else n for i, n in enumerate(shape)])
    starts = tuple([1 if i == axis and by < 0 else 0 for i in range(len(shape))])
    part = f.slice(x, starts=starts, steps=(1,) * len(shape), sizes=kept)
    low = tuple([1 if i == axis and by > 0 else 0 for i in range(len(shape))])
    high = tuple([1 if i == axis and by < 0 else 0 for i in range(len(shape))])
    return f.pad(part, x.dtype.type(0), low=low, high=high)


tridiagonal_solve = register(
    Op(
        "tridiagonal_solve",
        "The x of A x = b, from the lower, main and upper diagonals of A, by row.",
        _type,
        _reference,
        Opaque(),
        _samples,
        batch=_batched,
        derivative=Rewrite(_prepare, _tangent, Linear(_transpose, of=(3,))),
    )
)
"""Row i has the elements i of the diagonals: the first of the lower one and the last of the upper
one are not used. Rows are swapped where that makes a pivot larger. Zero pivots give infinities and
NaN, as divisions by them do."""
