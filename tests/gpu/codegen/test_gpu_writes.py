"""Writes at fixed indices that are one kernel, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph


def recurrence(x: Any) -> Any:
    y = x.copy()
    for i in range(1, 100):
        y[i] = y[i - 1] * 0.5 + y[i]
    return y


def rows_and_columns(x: Any) -> Any:
    y = x * 2
    for i in range(6):
        y[i] += y[i + 1] % 5
        y[:, i] = y[::-1, i + 1] - 1
        y[i, 1:3] = y[i, 1:3] * 2
    return y


def turned(x: Any) -> Any:
    y = x.copy()
    for i in range(1, 20):
        y[i] = y[i - 1, ::-1] + 1
    return y


def interior(x: Any) -> Any:
    y = x.copy()
    y[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1]
    y[0], y[-1] = y[1], y[-2]
    y[:, 0] = y[:, 1]
    return y


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each for each in (recurrence, rows_and_columns, turned, interior)
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("columns", [8, 3001])
def test_kernels_write_what_numpy_writes(name: str, columns: int) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (100, columns)).astype(np.float64)
    jitted = tracegraph.jit(PROGRAMS[name], device="cuda")
    expected = PROGRAMS[name](x)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(jitted(x)), expected)
    in_a_loop = tracegraph.jit(
        lambda x: tracegraph.fori_loop(0, 3, lambda _, x: PROGRAMS[name](x), x), device="cuda"
    )
    for _ in range(2):
        expected = PROGRAMS[name](expected)
    np.testing.assert_array_equal(np.asarray(in_a_loop(x)), expected)
