"""Random nests of branches and loops that print, and may fail at a limit of steps, do so alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from printing import Step, nests, outcome
from running import RUNS, WAYS, eager


@pytest.mark.parametrize("way", WAYS)
@given(function=nests(), start=st.integers(0, 7))
def test_prints_and_failures_are_those_of_the_eager_run(
    way: str, function: Step, start: int
) -> None:
    x = np.int64(start)
    printed, result = outcome(eager, function, x)
    runs = 1 if isinstance(result, str) else RUNS.get(way, 1)  # a failing run is the last
    assert outcome(WAYS[way], function, x) == (printed * runs, result)
