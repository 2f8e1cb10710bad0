"""Index arithmetic folds to equal expressions: the same value at every point, within the bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracegraph.ops  # noqa: F401  (registers them)
from tracegraph.ir import scalar, scalar_values
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.subexpressions import substitution

EXTENTS = (3, 4, 2)
AXES = tuple(Axis.make(number, extent) for number, extent in enumerate(EXTENTS))
POINTS = list(itertools.product(*map(range, EXTENTS)))

Evaluate = Callable[[tuple[int, ...]], int]


@dataclass(frozen=True)
class Pair:
    """A folded expression and the plain integer function that it must equal."""

    expr: Expr
    value: Evaluate


def leaf(number: int) -> Pair:
    return Pair(AXES[number], lambda point: point[number])


def combine(children: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    factor, divisor = st.integers(-6, 12), st.integers(1, 12)

    def total(a: Pair, b: Pair, f: int, offset: int) -> Pair:
        return Pair(a.expr * f + b.expr + offset, lambda p: a.value(p) * f + b.value(p) + offset)

    def quotient(a: Pair, d: int) -> Pair:
        return Pair(a.expr // d, lambda p: a.value(p) // d)

    def remainder(a: Pair, d: int) -> Pair:
        return Pair(a.expr % d, lambda p: a.value(p) % d)

    def split_and_joined(a: Pair, d: int, m: int) -> Pair:
        return Pair(a.expr // d % m * d + a.expr % d, lambda p: a.value(p) % (d * m))

    def clamped(a: Pair, low: int, width: int) -> Pair:
        high = low + width
        return Pair(scalar.clamp(a.expr, low, high), lambda p: min(max(a.value(p), low), high))

    def chosen(a: Pair, b: Pair, limit: int) -> Pair:
        return Pair(
            scalar.select(a.expr < limit, b.expr, a.expr),
            lambda p: b.value(p) if a.value(p) < limit else a.value(p),
        )

    return st.one_of(
        st.builds(total, children, children, factor, st.integers(-9, 9)),
        st.builds(quotient, children, divisor),
        st.builds(remainder, children, divisor),
        st.builds(split_and_joined, children, st.integers(1, 4), st.integers(1, 4)),
        st.builds(clamped, children, st.integers(-4, 4), st.integers(0, 6)),
        st.builds(chosen, children, children, st.integers(-4, 9)),
    )


indices = st.recursive(st.integers(0, len(AXES) - 1).map(leaf), combine, max_leaves=8)


def evaluate(expr: Expr, point: tuple[int, ...]) -> int:
    match expr:
        case scalar.Axis(number=number):
            return point[number]
        case scalar.Const(value=value):
            return int(value)  # type: ignore[arg-type]
        case scalar.Sum(terms=terms, offset=offset):
            return offset + sum(evaluate(term, point) * factor for term, factor in terms)
        case scalar.FloorDiv(operand=operand, divisor=divisor):
            return evaluate(operand, point) // divisor
        case scalar.Mod(operand=operand, divisor=divisor):
            return evaluate(operand, point) % divisor
        case scalar.Clamp(operand=operand, low=low, high=high):
            return min(max(evaluate(operand, point), low), high)
        case scalar.Compare(relation="<", left=left, right=right):
            return evaluate(left, point) < evaluate(right, point)
        case scalar.Select(predicate=predicate, chosen=chosen, other=other):
            return evaluate(chosen if evaluate(predicate, point) else other, point)
    raise AssertionError(f"unexpected {expr}")


@given(indices)
def test_folding_keeps_the_value(index: Pair) -> None:
    for point in POINTS:
        assert evaluate(index.expr, point) == index.value(point)


@given(indices)
def test_bounds_hold(index: Pair) -> None:
    limits = scalar.bounds(index.expr)
    assert limits is not None
    assert all(limits[0] <= index.value(point) <= limits[1] for point in POINTS)


@given(indices, indices)
def test_substitution_is_composition(outer: Pair, inner: Pair) -> None:
    held = scalar.clamp(inner.expr, 0, EXTENTS[0] - 1)
    composed = substitution({AXES[0]: held})(outer.expr)
    for point in POINTS:
        moved = (min(max(inner.value(point), 0), EXTENTS[0] - 1), *point[1:])
        assert evaluate(composed, point) == outer.value(moved)


def test_substitution_needs_no_deep_stack() -> None:
    here, there = (scalar_values.as_value(axis, scalar.INDEX) for axis in AXES[:2])
    for _ in range(5000):
        here, there = (
            scalar_values.apply(get("negative"), (e,), scalar.INDEX, {}) for e in (here, there)
        )
    assert substitution({AXES[0]: AXES[1]})(here) is there


FLAT = Axis.make(0, 24)


@pytest.mark.parametrize(
    ("folded", "want"),
    [
        (FLAT // 4 * 4 + FLAT % 4, FLAT),
        (FLAT // 12 * 12 + FLAT // 4 % 3 * 4 + FLAT % 4, FLAT),
        (FLAT // 4 % 3 * 4 + FLAT % 4, FLAT % 12),
        (FLAT % 12 % 4, FLAT % 4),
        (FLAT % 12 // 4, FLAT // 4 % 3),
        (FLAT // 2 // 3, FLAT // 6),
        ((FLAT * 6 + 5) // 3, FLAT * 2 + 1),
        (FLAT // 24, scalar.const(0)),
        (FLAT % 24, FLAT),
        (((FLAT + 5) % 24 + 7) % 24, (FLAT + 12) % 24),
        ((FLAT % 12 * 2 + 3) % 4, (FLAT * 2 + 3) % 4),
        (23 - (23 - FLAT), FLAT),
        (scalar_values.as_index(scalar_values.as_value(FLAT, np.dtype(np.int8))), FLAT),
    ],
)
def test_equal_indices_are_one_expression(folded: Expr, want: Expr) -> None:
    assert folded is want


def test_an_index_that_a_dtype_cannot_hold_is_not_folded() -> None:
    wide = Axis.make(0, 300)
    wrapped = scalar_values.as_index(scalar_values.as_value(wide, np.dtype(np.uint8)))
    assert scalar.affine(wrapped) is None
