"""Numbers of diagonals and steps of ranges at the ends of their types."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import jit


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**70, -(2**70), np.int64(2**63 - 1), 1])
def test_diagonals_of_any_number(number: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    near = max(-5, min(5, int(number)))
    for triangle in (np.tril, np.triu):
        made = jit(partial(triangle, k=number), device="host")(x)
        np.testing.assert_array_equal(made, triangle(x, near))
        if -(2**63) <= number < 2**63:
            made = jit(triangle, device="host")(x, number)
            np.testing.assert_array_equal(made, triangle(x, near))
    times_eye = jit(lambda x: x * tracegraph.numpy.eye(2, 3, number), device="host")
    np.testing.assert_array_equal(times_eye(x), x * np.eye(2, 3, near))
    times_tri = jit(lambda x: x * tracegraph.numpy.tri(2, 3, number), device="host")
    np.testing.assert_array_equal(times_tri(x), x * np.tri(2, 3, near))


@pytest.mark.parametrize("num", [1, 2, 4, 7])
@pytest.mark.parametrize(
    ("start", "stop"),
    [
        (0.0, 5e-324),
        (1e-323, 0.0),
        (0.0, 1.0),
        (2.0, 2.0),
        (0.0, 5e-324j),
        (0.0, np.float32(1e-45)),
    ],
)
def test_linspace_with_steps_that_underflow(start: Any, stop: Any, num: int) -> None:
    got = jit(lambda a, b: np.linspace(a, b, num), device="host")(start, stop)
    np.testing.assert_array_equal(got, np.linspace(start, stop, num))
