"""Windows that are written one after the other are those of the eager run, however they fuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.plan.target.overrides import Choices
from tests.emulation.point_races import point_races
from tests.helpers.forced import on_host
from tests.helpers.running import donated, jitted, lowered
from tests.programs.windows import ARRAYS, NAMED, RULES, in_a_loop, program_of
from tracegraph import tree

STEP = st.tuples(*[st.integers(0, n) for n in (RULES - 1, 2, 2, 7, 7, 7, 7, 7, 7)])


def assert_same(found: Any, expected: Any) -> None:
    for got, wanted in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(got, wanted)


def assert_right(program: Any, n: int) -> None:
    """Fail unless results are the eager ones, and no points of a nest disturb each other."""
    expected = program(n, *ARRAYS)
    assert_same(jitted(program, n, *ARRAYS), expected)
    assert_same(on_host(Choices())(program, n, *ARRAYS), expected)
    for device in ("host", "cuda"):
        plan = lowered(program, n, *ARRAYS, device=device).plan
        assert list(point_races(plan)) == []


@settings(max_examples=40)
@given(steps=st.lists(STEP, min_size=2, max_size=10), n=st.integers(0, 9))
def test_windows_are_those_of_the_eager_run(steps: list[tuple[int, ...]], n: int) -> None:
    assert_right(program_of(steps), n)


@settings(max_examples=30)
@given(steps=st.lists(STEP, min_size=1, max_size=6), n=st.integers(0, 9))
def test_windows_in_loops_are_those_of_the_eager_run(steps: list[tuple[int, ...]], n: int) -> None:
    assert_right(in_a_loop(program_of(steps)), n)


@settings(max_examples=30)
@given(steps=st.lists(STEP, min_size=2, max_size=8), n=st.integers(0, 9))
def test_windows_of_donated_arrays_are_those_of_the_eager_run(
    steps: list[tuple[int, ...]], n: int
) -> None:
    program = program_of(steps)
    assert_same(donated(program, np.int64(n), *ARRAYS), program(n, *ARRAYS))


@pytest.mark.parametrize("program", NAMED)
def test_programs_of_the_field(program: Any) -> None:
    assert_right(program, 2)
