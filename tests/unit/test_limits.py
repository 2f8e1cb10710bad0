"""Limits of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import trace
from tracegraph import control, errors, limits
from tracegraph.ir import interpret

X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: control.while_loop(lambda c: True, lambda c: c + 1, x),
        lambda x: control.fori_loop(0, 2**62, lambda i, c: c + 1, x),
        lambda x: control.scan(lambda c, v: (c + v, None), 0.0, x),
        lambda x: control.map(lambda v: v, x),
    ],
)
def test_loops_end_when_the_time_is_up(loop: Callable[[Any], Any]) -> None:
    traced = trace(loop, X)
    for run in (lambda: loop(X), lambda: interpret.run(traced, X)):
        for zero in (0, 0.0, np.float32(0), np.int64(0)):
            with pytest.raises(errors.TimeLimitError, match="of 0 s"), limits.time_limit(zero):
                run()


def test_the_first_of_nested_limits_counts() -> None:
    assert limits.deadline() is None
    with tracegraph.time_limit(1000):
        outer = limits.deadline()
        with tracegraph.time_limit(float("inf")):
            assert limits.deadline() == outer
        with tracegraph.time_limit(10):
            inner = limits.deadline()
            assert inner is not None
            assert outer is not None
            assert inner < outer
            assert "10 s" in str(limits.exceeded())
        assert limits.deadline() == outer
        limits.check()
    assert limits.deadline() is None
    limits.check()


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        ("1", TypeError),
        (None, TypeError),
        (True, TypeError),
        (-1, ValueError),
        (np.nan, ValueError),
    ],
)
def test_a_limit_of_time_is_a_number(seconds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="time_limit: seconds"), limits.time_limit(seconds):
        pass
