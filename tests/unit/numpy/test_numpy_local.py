"""Differences, running folds, windows and interpolation, traced and jitted, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from tests.cases.local import ARGUMENTS, RANDOM, TABLES
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy
from tracegraph import errors


@pytest.mark.parametrize("expression", TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


def test_uniform_positions_are_one_distance() -> None:
    def f(x: Any) -> Any:
        return np.gradient(x, np.array([0.0, 0.5, 1.0, 1.5]), axis=0)

    x = ARGUMENTS["x"]
    np.testing.assert_array_equal(np.asarray(tg.jit(f, device="host")(x)), f(x))


def test_many_points_are_found_by_few_equations() -> None:
    x, xp = RANDOM.normal(size=5000), np.sort(RANDOM.normal(size=3000))
    jitted = tg.jit(lambda x, xp: np.interp(x, xp, xp**2), device="host")
    np.testing.assert_allclose(np.asarray(jitted(x, xp)), np.interp(x, xp, xp**2), rtol=1e-9)
    assert len(str(jitted.trace(x, xp).program).splitlines()) < 200


def test_windows_cannot_be_written_to() -> None:
    f = tg.jit(
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True), device="host"
    )
    with pytest.raises(errors.UnsupportedByTracerError, match="writeable=True"):
        f(ARGUMENTS["f"])
