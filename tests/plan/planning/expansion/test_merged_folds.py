"""Folds of folds are one fold over the axes of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.kernel import ReduceNest
from tests.helpers.compiled import on_host, plan_of
from tests.helpers.plans import nests_of
from tracegraph import ArrayType

FOLDS = [np.sum, np.prod, np.min, np.max]


def program(fold: Any, inner: Any, outer: Any, keepdims: bool) -> Any:
    return lambda x: fold(fold(x, axis=inner, keepdims=keepdims), axis=outer)


@pytest.mark.parametrize("fold", [*FOLDS, np.any, np.all])
@pytest.mark.parametrize(
    ("inner", "outer", "keepdims"),
    [
        (1, 0, False),
        (0, 0, False),
        (2, 1, False),
        ((0, 2), 0, False),
        (1, (0, 1), True),
        (0, 2, True),
    ],
)
def test_they_are_one_nest(fold: Any, inner: Any, outer: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).integers(1, 3, (17, 19, 23))
    x = x > 1 if fold in (np.any, np.all) else x
    function = program(fold, inner, outer, keepdims)
    plan = plan_of(function, ArrayType(x.dtype, x.shape))
    (nest,) = nests_of(plan.graph)
    assert isinstance(nest, ReduceNest)
    np.testing.assert_array_equal(on_host(function, x), function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.max(np.min(x, axis=1)),
        lambda x: np.sum(np.sum(x, axis=1) * 2.0),
        lambda x: (lambda rows: (np.sum(rows), rows))(np.sum(x, axis=1)),
    ],
)
def test_other_folds_and_those_that_are_used_twice_stay(function: Any) -> None:
    stage = tracegraph.jit(function, device="cuda").lower(ArrayType(np.float64, (64, 4096)))
    assert len(nests_of(stage.plan.graph)) == 2


def test_sums_of_halves_are_rounded_in_between() -> None:
    plan = plan_of(lambda x: np.sum(np.sum(x, axis=1)), ArrayType(np.float16, (64, 4096)))
    assert len(nests_of(plan.graph)) == 2
