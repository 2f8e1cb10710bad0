"""What `tracegraph.testing` offers does what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from running import eager

from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f, x: {"y": f(x)["y"] + 1}, r"result\['y'\]"),
        (
            lambda f, x: {"y": f(x)["y"].astype("f4")},
            r"float64\[3\] eagerly, and float32\[3\] traced",
        ),
        (lambda f, x: {"y": f(x)["y"][:2]}, r"float64\[3\] eagerly, and float64\[2\] traced"),
        (lambda f, x: [f(x)["y"]], "eagerly the result is"),
    ],
)
def test_a_difference_is_told_with_its_place(wrong: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_traced_equals_eager(lambda x: {"y": x * 2}, np.arange(3.0), run=wrong)


def test_tolerances_are_for_numbers_only() -> None:
    def nearly(function: Any, x: Any) -> Any:
        return function(x) * np.float64(1 + 1e-9)

    assert_traced_equals_eager(np.exp, np.arange(3.0), run=nearly, rtol=1e-8)
    with pytest.raises(AssertionError, match="result"):
        assert_traced_equals_eager(np.exp, np.arange(3.0), run=nearly)


def test_nan_equals_nan_and_the_eager_run_gets_copies() -> None:
    x = np.array([np.nan, 1.0])

    def clear(y: Any) -> Any:
        y[1] = 0.0
        return y

    assert_traced_equals_eager(clear, x, run=lambda f, y: np.array([np.nan, 0.0]))
    assert x[1] == 1.0


@given(program=programs())
def test_numbers_of_random_programs_are_small_and_whole(program: RandomProgram) -> None:
    for result in eager(program.function, *program.arguments):
        assert result.dtype.kind in "iuf"
        assert np.all(np.abs(result.astype("f8")) <= 100)
        assert np.all(result == np.rint(result))


@pytest.mark.parametrize(
    "construct", ["cond", "switch", "while", "fori", "scan", " @ ", "with set", "nan of", "1j of"]
)
def test_random_programs_have_every_construct(construct: str) -> None:
    # the first will do: making it smaller takes many times as long
    unshrunk = settings(max_examples=2000, phases=[Phase.generate], database=None)
    assert construct in find(programs(), lambda p: construct in p.text, settings=unshrunk).text
