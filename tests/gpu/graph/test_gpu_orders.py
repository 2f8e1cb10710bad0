"""What runs beside loops and branches is right in all orders of nodes that the edges allow."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tracegraph
from tests.corpus import CASES, beside
from tests.helpers.forced import FORCED
from tests.helpers.orders import in_one_order
from tests.helpers.parameters import in_turn
from tests.helpers.running import assert_case_agrees, eager
from tracegraph import tree
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs
from tracegraph.testing.ways import using

ORDERS = 3
CALLS = 100
CONSTRUCTS = [f.__name__ for f in beside.CONSTRUCTS]


def in_order(way: str, seed: int) -> Any:
    """Runs a function by nodes one after the other, in an order chosen by the seed."""

    def run(function: Any, *arguments: Any) -> Any:
        with using(FORCED[way]):
            lowered = tracegraph.jit(function, device="cuda").lower(*arguments)
        return replace(lowered, plan=in_one_order(lowered.plan, Random(seed))).compile()(*arguments)

    return run


@pytest.mark.parametrize(
    ("way", "name", "seed"), in_turn(FORCED, CONSTRUCTS, range(ORDERS), rounds=3)
)
def test_chains_beside_loops_are_right_in_any_order(way: str, name: str, seed: int) -> None:
    assert_case_agrees(CASES[name], in_order(way, seed))


@pytest.mark.parametrize("way", FORCED)
@settings(max_examples=10)
@given(program=programs())
def test_random_programs_are_right_in_any_order(way: str, program: RandomProgram) -> None:
    runs = {f"order {seed}": in_order(way, seed) for seed in range(2)}
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways=runs)


def _on_device(leaf: Any) -> Any:
    return tracegraph.asarray(leaf, device="cuda") if isinstance(leaf, np.ndarray) else leaf


@pytest.mark.parametrize(("way", "name"), in_turn(FORCED, CONSTRUCTS, rounds=3))
def test_chains_beside_loops_are_right_many_times(name: str, way: str) -> None:
    case = CASES[name]
    wanted = tree.leaves(eager(case.function, *case.arguments))
    with using(FORCED[way]):
        compiled = tracegraph.jit(case.function, device="cuda").lower(*case.arguments).compile()
    arguments = tree.map(_on_device, case.arguments)
    for results in [compiled(*arguments) for _ in range(CALLS)]:
        for found, expected in zip(tree.leaves(results), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
