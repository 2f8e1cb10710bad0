"""Between two break points of an axis, indices keep their form; ranges hold what indices take."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lowering.native.nests.ranges import MOST_PIECES, Ranges, break_points
from tracegraph.ir.scalar import (
    Axis,
    Clamp,
    Compare,
    Const,
    Expr,
    FloorDiv,
    Mod,
    Sum,
    clamp,
    compare,
    linear,
)


def value(expr: Expr, at: int) -> int:
    """An index or predicate of axis 0 at a position."""
    match expr:
        case Const(value=number):
            return int(number.real)
        case Axis():
            return at
        case Sum(terms=terms, offset=offset):
            return offset + sum(factor * value(term, at) for term, factor in terms)
        case Mod(operand=operand, divisor=divisor):
            return value(operand, at) % divisor
        case FloorDiv(operand=operand, divisor=divisor):
            return value(operand, at) // divisor
        case Clamp(operand=operand, low=low, high=high):
            return min(max(value(operand, at), low), high)
        case Compare(relation=relation, left=left, right=right):
            difference = value(left, at) - value(right, at)
            return {"<": difference < 0, ">=": difference >= 0, "==": difference == 0}[relation]
    raise TypeError(expr)


@st.composite
def indices(draw: st.DrawFn, extent: int) -> Expr:
    axis = Axis.make(0, extent)
    index = linear([(axis, draw(st.sampled_from([-3, -2, -1, 1, 2, 3])))], draw(st.integers(-9, 9)))
    number = draw(st.integers(1, 9))
    kind = draw(st.sampled_from(["mod", "div", "clamp", "<", ">=", "=="]))
    if kind == "mod":
        return index % number
    if kind == "div":
        return index // number
    if kind == "clamp":
        low = draw(st.integers(-9, 9))
        return clamp(index, low, low + number)
    return compare(kind, index, number)


@given(st.data(), st.integers(2, 40))
def test_forms_are_linear_between_break_points(data: st.DataObject, extent: int) -> None:
    expr = data.draw(indices(extent))
    cuts = break_points([expr], 0, extent)
    if not cuts:
        return
    assert len(cuts) < MOST_PIECES
    for low, high in pairwise((0, *cuts, extent)):
        steps = np.diff([value(expr, at) for at in range(low, high)])
        assert len(set(steps.tolist())) <= 1


@given(st.data(), st.integers(2, 40))
def test_ranges_hold_all_values(data: st.DataObject, extent: int) -> None:
    expr = data.draw(indices(extent))
    low = data.draw(st.integers(0, extent - 1))
    high = data.draw(st.integers(low, extent - 1))
    ranges = Ranges({0: (low, high)})
    values = [value(expr, at) for at in range(low, high + 1)]
    if isinstance(expr, Compare) or expr.dtype == np.bool_:
        known = ranges.truth(expr)
        assert known is None or set(values) == {known}
    else:
        bounds = ranges.bounds(expr)
        assert bounds is not None
        assert bounds[0] <= min(values)
        assert max(values) <= bounds[1]


def test_a_roll_is_two_copies() -> None:
    axis = Axis.make(0, 100)
    assert break_points([(axis + 99) % 100], 0, 100) == [1]
