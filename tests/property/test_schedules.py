"""Loops and branches mean the same in whatever way they are carried out."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import CASES
from forced import FORCED, on_host
from hypothesis import given
from hypothesis import strategies as st
from printing import Step, nests, outcome, printed
from running import assert_case_agrees, eager

from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


@pytest.mark.parametrize("way", FORCED)
@pytest.mark.parametrize("name", CASES)
def test_corpus_programs_give_the_same_results(name: str, way: str) -> None:
    assert_case_agrees(CASES[name], on_host(FORCED[way]))


@pytest.mark.parametrize("way", FORCED)
@given(program=programs())
def test_random_programs_give_the_same_results(way: str, program: RandomProgram) -> None:
    run = on_host(FORCED[way])
    assert_traced_equals_eager(program.function, *program.arguments, run=run)


@pytest.mark.parametrize("way", FORCED)
@given(program=programs(max_steps=5, effects=True))
def test_random_programs_print_the_same(way: str, program: RandomProgram) -> None:
    wanted = printed(eager, program.function, *program.arguments)
    assert printed(on_host(FORCED[way]), program.function, *program.arguments) == wanted * 2


@pytest.mark.parametrize("way", FORCED)
@given(function=nests(), start=st.integers(0, 7))
def test_prints_and_failures_are_those_of_the_eager_run(
    way: str, function: Step, start: int
) -> None:
    x = np.int64(start)
    text, result = outcome(eager, function, x)
    runs = 1 if isinstance(result, str) else 2  # a failing run is the last
    assert outcome(on_host(FORCED[way]), function, x) == (text * runs, result)
