"""segment_sum and its relatives, against loops over segments."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.errors import ShapeDependentError
from tracegraph.sparse import segment_max, segment_min, segment_prod, segment_sum

IDS = np.array([3, 0, 3, -1, 1, 9, 0, 3])
FOLDS = {
    segment_sum: (np.add, lambda dtype: 0),
    segment_prod: (np.multiply, lambda dtype: 1),
    segment_min: (np.minimum, lambda d: np.inf if d.kind == "f" else np.iinfo(d).max),
    segment_max: (np.maximum, lambda d: -np.inf if d.kind == "f" else np.iinfo(d).min),
}


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.__name__)
@pytest.mark.parametrize("rest", [(), (3,), (2, 2)])
@pytest.mark.parametrize("dtype", [np.int16, np.uint64, np.float32, np.float64])
def test_rows_are_folded_by_segment(fold: Any, rest: Any, dtype: Any) -> None:
    combine, start = FOLDS[fold]
    data = np.random.default_rng(2).integers(1, 6, (8, *rest)).astype(dtype)
    initial = np.full(rest, start(np.dtype(dtype)), dtype)
    wanted = np.stack([reduce(combine, data[k == IDS], initial) for k in range(5)])
    mapped = tracegraph.vmap(lambda x: fold(x, IDS, 5), in_axes=-1, out_axes=-1)
    ways = [
        lambda x, ids: fold(x, ids, 5),
        tracegraph.jit(lambda x, ids: fold(x, ids, num_segments=5), device="host"),
        *([lambda x, ids: mapped(x)] if rest else []),
    ]
    for way in ways:
        found = np.asarray(way(data, IDS))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


def test_slopes_of_sums_and_products() -> None:
    x, ids, w = np.array([2.0, 3.0, 5.0, 7.0]), np.array([1, 0, 1, 4]), np.array([10.0, 100.0])
    of_sum = tracegraph.grad(lambda x: np.sum(w * segment_sum(x, ids, 2)))(x)
    np.testing.assert_array_equal(of_sum, [100, 10, 100, 0])
    of_maximum = tracegraph.grad(lambda x: np.sum(w * segment_max(x, ids, 2)))(x)
    np.testing.assert_array_equal(of_maximum, [0, 10, 100, 0])


def test_the_number_of_segments_of_known_ones() -> None:
    np.testing.assert_array_equal(segment_sum([1.0, 2.0], [0, 3]), [1, 0, 0, 2])
    assert segment_sum(np.zeros(0), np.zeros(0, int)).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: segment_sum([1.0], [0.0], 2), TypeError, r"vector of integers, got float64\[1\]"),
        (lambda: segment_sum([1.0, 2.0], [0], 2), ValueError, r"shapes \(1,\) and \(2,\)"),
        (lambda: segment_sum([1.0], [0], -2), ValueError, "must not be negative, got -2"),
        (lambda: segment_max([1j], [0], 2), TypeError, "takes real numbers, got complex128"),
        (
            lambda: tracegraph.jit(segment_sum)(np.ones(2), np.zeros(2, int)),
            ShapeDependentError,
            r"segment_sum\(data, segment_ids, num_segments=n\)",
        ),
    ],
)
def test_misuse(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
