"""A NaN that a device has computed is traced to its operation, and ranges change no result."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tracegraph import debug, errors


def program(x, shifts):
    def step(v, shift):
        return np.sqrt(v - shift), v

    return tracegraph.scan(step, x, shifts)


def test_the_step_is_that_of_the_device():
    shifts = np.zeros((6, 3))
    shifts[4, 1] = 9.0
    jitted = tracegraph.jit(program, device="cuda")
    given = [tracegraph.asarray(each, device="cuda") for each in (np.full(3, 4.0), shifts)]
    builds = []
    with debug.nans():
        jitted(given[0], given[1] * 0)
        builds.append(jitted.stats()["builds"])
        with pytest.raises(errors.NonFiniteError) as error:
            jitted(*given)
    assert "in step 4 of the scan at test_gpu_nonfinite.py" in str(error.value)
    assert "1 of 3 elements, the first is [1], nan" in str(error.value)
    assert builds == [jitted.stats()["builds"]]


def test_donated_memory_of_the_device_is_kept():
    jitted = tracegraph.jit(lambda x: np.log(x) * 2, device="cuda", donate_argnums=0)
    with debug.nans(infinities=True):
        jitted(tracegraph.asarray(np.ones(3), device="cuda"))
        with pytest.raises(errors.NonFiniteError, match="log x at"):
            jitted(tracegraph.asarray(np.array([1.0, 0.0, 2.0]), device="cuda"))


def test_ranges_change_nothing():
    pytest.importorskip("nvtx")
    jitted = tracegraph.jit(lambda x: x * 2, device="cuda")
    with debug.ranges():
        np.testing.assert_array_equal(jitted(np.ones(3)), 2 * np.ones(3))
