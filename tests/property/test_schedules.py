"""Loops and branches mean the same in whatever way they are carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.plan.target.features import Features
from lowering.plan.target.overrides import Choices
from tests.corpus import CASES
from tests.helpers.forced import BRANCHING, FORCED, on_host
from tests.helpers.running import assert_case_agrees
from tests.programs.printing import Step, nests
from tracegraph import fori_loop, while_loop
from tracegraph.errors import StepLimitError
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs
from tracegraph.testing.ways import LOWERINGS

few = settings(max_examples=settings().max_examples // 3)
"""Each of the ways sees programs of its own: together they are many."""


EACH_WAY = [
    (n, way) for k, n in enumerate(BRANCHING) for i, way in enumerate(FORCED) if (k + i) % 2
]
"""Each program in every second way."""


@pytest.mark.parametrize(("name", "way"), EACH_WAY)
def test_corpus_programs_give_the_same_results(name: str, way: str) -> None:
    assert_case_agrees(CASES[name], on_host(FORCED[way]))


@pytest.mark.parametrize("name", BRANCHING)
def test_what_is_scheduled_is_made_fit_for_devices_that_lack_features(name: str) -> None:
    lacking = Features(body_updates=False)
    assert_case_agrees(CASES[name], on_host(FORCED["as_estimated"], lacking))


@pytest.mark.parametrize("way", LOWERINGS)
@few
@given(program=programs())
def test_random_programs_give_the_same_results(way: str, program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways=way)


@pytest.mark.parametrize("way", LOWERINGS)
@few
@given(program=programs(max_steps=5, effects=True))
def test_random_programs_print_the_same(way: str, program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways=way)


@pytest.mark.parametrize("way", LOWERINGS)
@few
@given(function=nests(), start=st.integers(0, 7))
def test_prints_and_failures_are_those_of_the_eager_run(
    way: str, function: Step, start: int
) -> None:
    assert_traced_equals_eager(function, np.int64(start), raises=StepLimitError, ways=way)


@st.composite
def carrying(draw: st.DrawFn) -> tuple[Callable[[Any, Any], Any], int]:
    """A loop of carries that move, are read at other points, or updated in place; and its steps."""
    count = draw(st.integers(1, 4))
    numbers = st.integers(0, count - 1)
    rules = draw(
        st.lists(st.tuples(numbers, numbers, st.integers(0, 4)), min_size=count, max_size=count)
    )

    def body(i: Any, carries: Any) -> Any:
        def new(one: int, other: int, rule: int) -> Any:
            x, y = carries[one], carries[other]
            return (x, np.roll(x, 1), x + 1, x + y[::-1], np.cumsum(x)[::-1] % 7 + y)[rule]

        return tuple(new(*rule) for rule in rules)

    waits = draw(st.booleans())

    def run(x: Any, n: Any) -> Any:
        first = tuple(x * (k + 1) for k in range(count))
        if not waits:
            return fori_loop(0, n, body, first)
        step = lambda c: (*body(0, c[:-1]), c[-1] + 1)  # noqa: E731
        return while_loop(lambda c: c[-1] < n, step, (*first, 0))

    return run, draw(st.integers(0, 11))


@pytest.mark.parametrize("unroll", [2, 3, 4, None])
@given(loop=carrying())
def test_carries_that_take_turns_end_where_they_are_looked_for(
    unroll: int | None, loop: tuple[Callable[[Any, Any], Any], int]
) -> None:
    function, n = loop
    x = np.arange(5.0)
    run = on_host(Choices(loops="unrolled", unroll=unroll))
    for found in (run(function, x, np.int64(n)), run(lambda x: function(x, n), x)):
        for new, old in zip(found, function(x, n), strict=True):
            np.testing.assert_array_equal(new, old)
