"""Checked indices on a device: they raise when results are waited for, and later calls work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.errors import IndexRangeError

X = np.arange(12.0).reshape(3, 4)


def written(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 7
    return y


def summed(x: Any, n: Any) -> Any:
    return tracegraph.fori_loop(0, n, lambda i, s: s + x[i, 0], 0.0)


def searched(x: Any, i: Any) -> Any:
    return tracegraph.while_loop(lambda i: i < 9, lambda i: i + 1 + 0 * x[i, 0].astype(int), i)


def gathered(x: Any, at: Any) -> Any:
    return tracegraph.scan(lambda c, i: (c + x[i, 0], x[i]), 0.0, np.arange(2) + at)[1]


def taken(x: Any, i: Any) -> Any:
    return tracegraph.cond(i < 3, lambda: x[i, 1], lambda: 0.0)


@pytest.mark.parametrize(
    ("function", "inside", "outside"),
    [
        (lambda x, i: x[i], 2, 3),
        (lambda x, i: x[1:, i], -4, -5),
        (lambda x, i: np.take(x, i, axis=0), np.array([0, -3]), np.array([0, -4])),
        (written, 1, 5),
        (summed, 3, 4),
        (searched, 9, 0),
        (gathered, 1, 2),
        (taken, 7, -7),
    ],
)
def test_an_index_out_of_range_raises_and_the_next_call_works(function, inside, outside):
    with tracegraph.check_indices():
        jitted = tracegraph.jit(function, device="cuda")
        expected = tracegraph.jit(function, device="host")(X, inside)
        for _ in range(2):
            np.testing.assert_array_equal(jitted(X, inside), expected)
            with pytest.raises(IndexRangeError, match=r"bounds[^\n]*\n.*test_gpu_check"):
                np.asarray(jitted(X, outside))
    np.asarray(tracegraph.jit(function, device="cuda")(X, outside))
