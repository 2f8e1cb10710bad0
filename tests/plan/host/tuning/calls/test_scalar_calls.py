"""Scalar instructions on the host are Python expressions with the bits of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph

EXTREMES = {
    "int64": [0, 1, -1, 2**63 - 1, -(2**63)],
    "int8": [0, 1, 127, -128],
    "uint64": [0, 1, 2**64 - 1],
    "float32": [0.0, 1e-40, 3e38, 1 / 3, np.inf, np.nan],
    "float64": [0.0, 1e-310, 1e308, 1 / 3, -np.inf, np.nan],
    "bool": [False, True],
}
OPERATIONS = [np.add, np.subtract, np.multiply, np.less, np.greater_equal, np.equal, np.logical_or]


@pytest.mark.parametrize("dtype", EXTREMES)
def test_bits_are_those_of_numpy(dtype):
    for operation in OPERATIONS:
        if (operation, dtype) != (np.subtract, "bool"):  # NumPy has no difference of bools
            assert_same_bits(operation, dtype)


def assert_same_bits(operation, dtype):
    jitted = tracegraph.jit(lambda x, y: operation(x, y), device="host")
    for x in np.array(EXTREMES[dtype], dtype):
        for y in np.array(EXTREMES[dtype], dtype):
            with np.errstate(all="ignore"):
                expected = operation(x, y)
            result = np.asarray(jitted(np.asarray(x), np.asarray(y)))
            assert result.dtype == expected.dtype
            assert result.tobytes() == expected.tobytes() or np.isnan(expected)


@pytest.mark.parametrize("dtype", EXTREMES)
def test_choices_are_those_of_numpy(dtype):
    jitted = tracegraph.jit(lambda x, y: np.where(x == y, x, y), device="host")
    for x in np.array(EXTREMES[dtype], dtype):
        for y in np.array(EXTREMES[dtype], dtype):
            result = np.asarray(jitted(np.asarray(x), np.asarray(y)))
            assert result.tobytes() == np.where(x == y, x, y).tobytes()


def test_a_counter_that_leaves_its_range_wraps_round():
    jitted = tracegraph.jit(
        lambda n: tracegraph.while_loop(lambda n: n > 0, lambda n: n + np.int8(1), n),
        device="host",
    )
    assert jitted(np.int8(120)) == -128
