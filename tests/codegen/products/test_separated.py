"""Indices in parts: equal to what they were, and apart by what they depend on."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.codegen.products.separated import separated
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.scalar import Axis, Expr, compare, const, floor_divide, modulo, select
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions, substitution
from tracegraph.ir.types import ArrayType

OWN, STEP = Axis.make(-4, 900), Axis.make(-6, 27)
ROW, COLUMN = floor_divide(OWN, 30), modulo(OWN, 30)
I, J = floor_divide(modulo(STEP, 9), 3), modulo(STEP, 3)
INSIDE = compare(">=", ROW - I, 0)
X = Buffer("input", 0, ArrayType(np.dtype("f4"), (1024,)))


def load(position: Expr, guard: Expr | None = None) -> Load:
    found = Load.make(X, (position,), guard)
    assert isinstance(found, Load)
    return found


FACTORS = {
    "window": load((ROW + I) * 32 + COLUMN + J),
    "scaled": load(OWN * 27 + STEP),
    "negative": load((ROW - I) * 32 + COLUMN - J + 70),
    "guarded": select(
        compare(">=", ROW - I, 0),
        load((ROW - I) * 32 + COLUMN, compare(">=", ROW - I, 0)),
        load(STEP),
    ),
    "outputs alone": load(ROW * 32 + COLUMN),
    "steps alone": load(I * 3 + J),
}


@pytest.mark.parametrize("name", FACTORS)
def test_what_stands_for_parts_gives_the_factor_again(name):
    factor = FACTORS[name]
    found = separated(factor, STEP, -10)
    parts = [*found.own, *found.steps]
    for own, step in np.random.default_rng(0).integers(0, (900, 27), (50, 2)):
        at = substitution({OWN: const(int(own)), STEP: const(int(step))})
        known = {axis: at(expr) for axis, expr in parts}
        assert all(0 <= value.value < axis.extent for axis, value in known.items())
        point = substitution({**known, OWN: const(int(own)), STEP: const(int(step))})
        assert point(found.factor) is at(factor)
    assert len({axis.number for axis, _ in parts}) == len(parts)


@pytest.mark.parametrize("name", FACTORS)
def test_parts_depend_on_one_kind(name):
    found = separated(FACTORS[name], STEP, -10)
    for of, parts in ((OWN, found.own), (STEP, found.steps)):
        for _, expr in parts:
            assert {e for e in subexpressions((expr,)) if type(e) is Axis} == {of}


def test_no_division_is_left_in_a_window():
    found = separated(FACTORS["window"], STEP, -10)
    (position,) = found.factor.indices
    assert [type(term) for term, _ in position.terms] == [Axis, Axis]
