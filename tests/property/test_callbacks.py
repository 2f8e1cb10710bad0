"""Random nests of branches and loops that call back, and may fail at a limit of steps."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.running import RUNS, WAYS, eager
from tests.programs.printing import Step, nests, outcome
from tracegraph import debug


def print_by_callback(template: str, *args: Any, **kwargs: Any) -> None:
    """As `debug.print`, by a callback that prints."""

    def show(*args: Any, **kwargs: Any) -> None:
        builtins.print(template.format(*args, **kwargs))

    debug.callback(show, *args, **kwargs)


@pytest.fixture
def by_callbacks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What prints in nests calls back instead."""
    monkeypatch.setattr(debug, "print", print_by_callback)
    return print_by_callback


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("by_callbacks")
def test_callbacks_and_failures_are_those_of_the_eager_run(way: str) -> None:
    @given(function=nests(), start=st.integers(0, 7))
    def check(function: Step, start: int) -> None:
        x = np.int64(start)
        printed, result = outcome(eager, function, x)
        runs = 1 if isinstance(result, str) else RUNS.get(way, 1)  # a failing run is the last
        assert outcome(WAYS[way], function, x) == (printed * runs, result)

    check()
