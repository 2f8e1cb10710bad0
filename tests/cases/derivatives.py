"""Operands at which every op with a derivative is smooth, and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

import tracegraph.ops  # noqa: F401  (registers them)
from tracegraph.arrays.eager import apply
from tracegraph.ir.derivative import Constant, Partials, Structural
from tracegraph.ir.op import Elementwise, Op, all_ops
from tracegraph.ir.types import type_of

NDArray = np.ndarray[Any, Any]

WITHOUT = ("forbid_derivative", "with_derivative", "custom_kernel", "pure_callback")
"""Ops whose rule is an error, or the user's."""

SMOOTH = [
    op
    for op in all_ops()
    if not isinstance(op.derivative, (Constant, Structural)) and op.name not in WITHOUT
]

SHAPES: Sequence[tuple[tuple[int, ...], ...]] = [
    ((), (2, 3)),
    ((3, 1), (2, 1, 3)),
    ((2, 3), (2, 3)),
    ((1,), ()),
]


@dataclass(frozen=True)
class Case:
    """An op with operands and attributes. `inexact` are the operands that may be active.

    Of an op with several results, `result` is the number of the one that is looked at.
    """

    op: Op
    operands: tuple[Any, ...]
    attrs: dict[str, Any]
    inexact: tuple[int, ...]
    result: int | None = None

    def of(self, active: Sequence[int]) -> Callable[..., Any]:
        """The op as a function of some operands."""

        def function(*values: Any) -> Any:
            operands = list(self.operands)
            for i, value in zip(active, values, strict=True):
                operands[i] = value
            return self.chosen(apply(self.op, *operands, **self.attrs))

        return function

    def reference(self) -> Any:
        """What the reference of the op gives."""
        return self.chosen(self.op.reference(*self.operands, **self.attrs))

    def chosen(self, results: Any) -> Any:
        """The result that is looked at, or what is determined of it."""
        determined = DETERMINED.get((self.op.name, self.result))
        if determined is not None:
            return determined(*results)
        return results if self.result is None else results[self.result]

    def subsets(self) -> Iterator[tuple[int, ...]]:
        """All non-empty choices of active operands."""
        for count in range(1, len(self.inexact) + 1):
            yield from combinations(self.inexact, count)


def values(rng: np.random.Generator, shape: Sequence[int], dtype: Any, op: Op) -> NDArray:
    """Distinct numbers of the op's domain."""
    low, high = op.derivative.domain if isinstance(op.derivative, Partials) else (0.2, 0.9)
    count = int(np.prod(shape))
    found = low + (high - low) * rng.permutation(
        (np.arange(count) + rng.uniform(0.2, 0.8)) / max(count, 1)
    )
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.uniform(0.1, 0.4, count)
    return np.asarray(found, dtype).reshape(shape)


def cases(op: Op, dtype: Any, seed: int = 0) -> list[Case]:
    """Cases whose inexact operands have a dtype; none if the op does not take it."""
    rng = np.random.default_rng(seed)
    found = []
    for operands, attrs in _signatures(op, dtype):
        filled = tuple(values(rng, x[0], x[1], op) if isinstance(x, tuple) else x for x in operands)
        inexact = tuple(i for i, x in enumerate(operands) if isinstance(x, tuple))
        try:
            types = op.result_types([type_of(x) for x in filled], attrs)
        except (TypeError, ValueError):
            continue
        filled = SMOOTH_AT.get(op.name, lambda *x: x)(*filled)
        for number, type_ in enumerate(types):
            if inexact and type_.dtype.kind in "fcV":
                result = number if len(types) > 1 else None
                found.append(Case(op, filled, dict(attrs), inexact, result))
    return found


def _positive_definite(a: NDArray) -> tuple[NDArray]:
    square = a @ np.conj(np.swapaxes(a, -1, -2))
    return ((square + np.eye(a.shape[-1])).astype(a.dtype),)


def _dominant(a: NDArray, *others: Any) -> tuple[Any, ...]:
    """Well conditioned, and with pivots that are much larger than other elements."""
    return (a + 2 * np.eye(*a.shape[-2:])).astype(a.dtype), *others


def _dominant_diagonal(dl: NDArray, d: NDArray, du: NDArray, b: NDArray) -> tuple[NDArray, ...]:
    return dl, (d + 4).astype(d.dtype), du, b


def _apart(a: NDArray) -> tuple[NDArray]:
    """Eigenvalues and singular values that are not close to each other."""
    k = min(a.shape[-2:])
    levels = np.diag(2.0 * np.arange(1, k + 1))
    return ((a + np.pad(levels, [(0, n - k) for n in a.shape[-2:]])).astype(a.dtype),)


def _weighted(left: Any, right: Any) -> Any:
    """The sum of products of vectors in pairs, by weights that tell the pairs apart."""
    return np.matmul(left * np.arange(1.0, left.shape[-1] + 1), right)


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


DETERMINED: dict[tuple[str, int | None], Callable[..., Any]] = {
    ("eigh", 1): lambda _, v: _weighted(v, _adjoint(v)),
    ("svd", 0): lambda u, _, vh: _weighted(u, vh),
    ("svd", 2): lambda _u, _s, vh: _weighted(_adjoint(vh), vh),
}
"""By name of an op and number of a result: what the operand determines of vectors, whose signs and
phases it does not."""

SMOOTH_AT: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cholesky": _positive_definite,
    **dict.fromkeys(("lu", "qr", "triangular_solve", "pinv"), _dominant),
    **dict.fromkeys(("eigh", "svd"), _apart),
    "tridiagonal_solve": _dominant_diagonal,
}
"""By name of an op: operands at which it is smooth, made of random ones."""


LAST_ONLY = {"gammainc": 1, "gammaincc": 1, "betainc": 2, "zeta": 1}
"""By name of an op with a derivative in its last operand alone: how many are before it."""


def _signatures(op: Op, dtype: Any) -> Iterator[tuple[list[Any], Any]]:
    """Operands, the inexact ones as (shape, dtype), and attributes."""
    if op.name == "cast":
        narrow = np.dtype(dtype).itemsize <= 4
        for target in (np.float32, np.float64) if narrow else (np.float64, np.complex128):
            yield [((2, 3), dtype)], {"dtype": np.dtype(target)}
        return
    if op.name == "where":
        for a, b in SHAPES:
            yield [np.array([True, False, True]), (a, dtype), (b, dtype)], {}
        return
    if op.name == "live_lanes":
        for _, b in SHAPES:
            yield [np.array([True, True, True]), (b, dtype)], {}
        return
    if op.name == "ldexp":
        for a, b in SHAPES:
            yield [(a, dtype), np.full(b, 2, np.int32)], {}
        return
    if op.name == "pinv":
        real = np.zeros(0, dtype).real.dtype
        for shape in ((4, 3), (3, 4), (2, 3, 3)):
            yield [(shape, dtype), np.full((*shape[:-2], 1, 1), 1e-6, real)], {}
        return
    if op.name in LAST_ONLY:
        for a, b in SHAPES:
            others = [np.full(b, 1.75 + i, dtype) for i in range(LAST_ONLY[op.name])]
            yield [*others, (a, dtype)], {}
        return
    if op.name == "polygamma":
        for n in (1, 2):
            yield [((2, 3), dtype)], {"n": n}
        return
    if isinstance(op.form, Elementwise):
        count = len(op.samples()[0].operands)
        for a, b in SHAPES:
            shapes = {1: [a], 2: [a, b], 3: [a, b, ()]}[count]
            yield [(shape, dtype) for shape in shapes], {}
        return
    seen = set()
    for sample in op.samples():
        operands = [
            (np.shape(x), dtype) if np.asarray(x).dtype.kind in "fcV" else x
            for x in sample.operands
        ]
        key = repr((operands, dict(sample.attrs)))
        if key not in seen:
            seen.add(key)
            yield operands, sample.attrs


def difference(function: Callable[..., Any], at: Sequence[Any], along: Sequence[Any]) -> Any:
    """The derivative in a direction, by differences of fourth order."""

    def moved(h: float) -> Any:
        return np.asarray(function(*(x + h * t for x, t in zip(at, along, strict=True))))

    h = 1e-3
    return (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
