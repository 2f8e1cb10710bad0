"""Very many launches leave memory as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.held_memory import DEVICE_SLACK, HOST_SLACK, device_bytes, host_bytes
from tracegraph import cond, fori_loop, while_loop

pytestmark = pytest.mark.soak

WARM_UP, LAUNCHES = 10_000, 100_000
MANY = 1_000_000


def nested(x: Any, n: Any) -> Any:
    def inner(c: Any) -> Any:
        y, j = c
        return cond(j % 2 == 0, lambda y: y + x, lambda y: y * 0.5, y), j + 1

    def outer(i: Any, y: Any) -> Any:
        return while_loop(lambda c: c[1] < i, inner, (y, 0))[0]

    return fori_loop(0, n, outer, x)


def test_launches_of_a_nested_program_hold_memory_flat() -> None:
    run = tracegraph.jit(nested, device="cuda")
    arrays = [tracegraph.asarray(np.full(256, float(k)), device="cuda") for k in range(3)]

    def launch(count: int) -> Any:
        for k in range(count):
            result = run(arrays[k % 3], k % 3)
        return np.asarray(result)

    launch(WARM_UP)
    host, device = host_bytes(), device_bytes()
    last = launch(LAUNCHES)
    k = (LAUNCHES - 1) % 3
    np.testing.assert_array_equal(last, nested(np.full(256, float(k)), k))
    assert host_bytes() - host < HOST_SLACK
    assert device_bytes() - device < DEVICE_SLACK
    assert run.stats()["builds"] == 1
    assert run.stats()["launches"] == WARM_UP + LAUNCHES


def test_a_million_launches_with_moving_arrays_hold_memory_flat() -> None:
    run = tracegraph.jit(lambda x: x * 2 + 1, device="cuda")
    # more than take turns without updates
    arrays = [tracegraph.asarray(np.full(256, float(k)), device="cuda") for k in range(5)]

    def launch(count: int) -> Any:
        kept = [None, None]
        for k in range(count):
            kept[k % 2] = run(arrays[k % 5])  # so that results move as well
        return np.asarray(kept[(count - 1) % 2])

    launch(WARM_UP)
    host, device = host_bytes(), device_bytes()
    last = launch(MANY)
    np.testing.assert_array_equal(last, np.full(256, 2.0 * ((MANY - 1) % 5) + 1))
    assert host_bytes() - host < HOST_SLACK
    assert device_bytes() - device < DEVICE_SLACK
    stats = run.stats()
    assert (stats["builds"], stats["launches"]) == (1, WARM_UP + MANY)
    assert stats["updates"] >= MANY
