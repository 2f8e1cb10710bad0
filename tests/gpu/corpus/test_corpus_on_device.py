"""Every corpus program, and random ones, give on the GPU what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tracegraph
from tests.corpus import CASES
from tests.helpers.parameters import in_turn
from tests.helpers.running import assert_case_agrees
from tracegraph import tree
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


def on_device(function: Any, *arguments: Any) -> Any:
    return tracegraph.jit(function, device="cuda")(*arguments)


def donated(function: Any, *arguments: Any) -> Any:
    """In the memory of the arguments, twice: in that of arrays, and in copies of numbers."""
    jitted = tracegraph.jit(function, donate_argnums=range(len(arguments)), device="cuda")
    with tracegraph.deterministic():  # else floats are scattered in any order
        found = [jitted(*tree.map(_given_away, arguments)) for _ in range(2)]
    for one, other in zip(*map(tree.leaves, found), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    return found[0]


def _given_away(leaf: Any) -> Any:
    return tracegraph.asarray(leaf, device="cuda") if isinstance(leaf, np.ndarray) else leaf


def with_scratch_of_its_own(function: Any, *arguments: Any) -> Any:
    """In scratch that each launch allocates, twice."""
    jitted = tracegraph.jit(function, scratch="per_launch", device="cuda")
    jitted(*arguments)
    return jitted(*arguments)


WAYS = {"plain": on_device, "donated": donated, "per launch": with_scratch_of_its_own}


OTHERS = [way for way in WAYS if way != "plain"]


@pytest.mark.parametrize(
    ("name", "way"), [*((name, "plain") for name in CASES), *in_turn(CASES, OTHERS)]
)
def test_result_is_that_of_numpy(name: str, way: str) -> None:
    assert_case_agrees(CASES[name], WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=20)
@given(program=programs())
def test_random_programs_agree_with_numpy(way: str, program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways={way: WAYS[way]})
