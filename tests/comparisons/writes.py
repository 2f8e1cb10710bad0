"""Writes at fixed indices that are one map: programs whose integers are exact in every order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device
from tracegraph import tree


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


def three_times(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tracegraph.fori_loop(0, 3, lambda _, x: function(x), x)


FUNCTIONS = {f.__name__: f for f in (recurrence, rows_and_columns, parts, kept, turned, interior)}
FUNCTIONS |= {
    f"{f.__name__} in a loop": three_times(f)
    for f in (recurrence, rows_and_columns, turned, interior)
}
ARRAYS = {
    columns: np.random.default_rng(3).integers(-9, 9, (40, columns)).astype(np.float64)
    for columns in (8, 301)
}
PROGRAMS = {
    f"{name} of {columns}": (function, (x,))
    for name, function in FUNCTIONS.items()
    for columns, x in ARRAYS.items()
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_write_what_numpy_writes(name: str, device: Device) -> None:
    function, (x,) = PROGRAMS[name]
    for order in (None, *map(Random, range(3))):
        found = device.run(name, x, order=order)
        for got, wanted in zip(tree.leaves(found), tree.leaves(function(x)), strict=True):
            np.testing.assert_array_equal(got, wanted)
