"""Sparse products and folds by segment on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.comparisons.sparse import (  # noqa: F401 - run here
    PROGRAMS,
    test_products_and_folds_are_those_of_the_host,
)
from tracegraph.sparse import CSR, segment_max, segment_min, segment_prod, segment_sum


def test_a_traced_dense_matrix_becomes_sparse() -> None:
    rng = np.random.default_rng(5)
    d, x = np.where(rng.random((40, 50)) < 0.1, 3.0, 0.0), rng.integers(0, 9, 50).astype(float)
    function = tracegraph.jit(lambda d, x: CSR.from_dense(d, nnz=500) @ x, device="cuda")
    np.testing.assert_array_equal(np.asarray(function(d, x)), d @ x)


@pytest.mark.parametrize("fold", [segment_sum, segment_prod, segment_min, segment_max])
def test_folds_by_segment(fold: Any) -> None:
    rng = np.random.default_rng(6)
    x, ids = rng.choice([0.5, 1.0, 2.0], (5000, 3)), rng.integers(-2, 1200, 5000)
    found = tracegraph.jit(lambda x, ids: fold(x, ids, 1000), device="cuda")(x, ids)
    np.testing.assert_array_equal(np.asarray(found), fold(x, ids, 1000))
