"""Random nests of branches and loops that print, and may fail at a limit of steps, do so alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.running import RUNS, donated, eager
from tests.programs.printing import Step, nests, outcome
from tracegraph.errors import StepLimitError
from tracegraph.testing import assert_traced_equals_eager
from tracegraph.testing.ways import LOWERINGS, WAYS


@given(function=nests(), start=st.integers(0, 7))
def test_prints_and_failures_are_those_of_the_eager_run(function: Step, start: int) -> None:
    ways = [name for name, way in WAYS.items() if not way.on_gpu and name not in LOWERINGS]
    assert_traced_equals_eager(function, np.int64(start), raises=StepLimitError, ways=ways)


@given(function=nests(), start=st.integers(0, 7))
def test_in_the_memory_of_arguments(function: Step, start: int) -> None:
    x = np.int64(start)
    printed, result = outcome(eager, function, x)
    runs = 1 if isinstance(result, str) else RUNS["donated"]  # a failing run is the last
    assert outcome(donated, function, x) == (printed * runs, result)
