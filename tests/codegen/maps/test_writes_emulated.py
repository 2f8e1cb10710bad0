"""Writes at fixed indices that are one map, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def recurrence(x: Any) -> Any:
    y = x.copy()
    for i in range(1, 40):
        y[i] = y[i - 1] * 0.5 + y[i]
    return y


def rows_and_columns(x: Any) -> Any:
    y = x * 2
    for i in range(4):
        y[i] += y[i + 1] % 5
        y[:, i] = y[::-1, i + 1] - 1
        y[i, 1:3] = y[i, 1:3] * 2
    return y


def parts(x: Any) -> Any:
    y = x.copy()
    y[::2] = x[1::2] + 1
    y[1::2] = y[::2] * 2
    y[3:7, 2:] = x[2:6, :-2]
    y[8:] += y[8:] * y[8:]
    return y, y.sum(0)


def kept(x: Any) -> Any:
    """Values that are read before they are replaced, and used after."""
    y, before = x.copy(), []
    for i in range(6):
        before.append(y[i] + y[i + 1])
        y[i] = before[-1] * 2
        y[i + 1] = y[i] - 1
    return y, sum(before)


PROGRAMS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (recurrence, rows_and_columns, parts, kept)
}
X = np.random.default_rng(3).integers(-9, 9, (40, 8)).astype(np.float64)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (function, (X,)) for name, function in PROGRAMS.items()}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("writes"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_write_what_numpy_writes(name: str, plans: EmulatedPlans) -> None:
    expected = PROGRAMS[name](X)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for order in (None, *map(Random, range(3))):
        found = plans.run(name, X, order=order)
        found = found if isinstance(found, (tuple, list)) else (found,)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
