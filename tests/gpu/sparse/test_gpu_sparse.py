"""Sparse products and folds by segment on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.sparse import CSR, segment_max, segment_min, segment_prod, segment_sum


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_products_are_those_of_the_dense_matrix(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    d = np.where(rng.random((300, 200)) < 0.05, rng.integers(-9, 10, (300, 200)), 0).astype(dtype)
    x, y = (
        rng.integers(-9, 10, (200, 4)).astype(dtype),
        rng.integers(-9, 10, (3, 300)).astype(dtype),
    )

    @tracegraph.jit(device="cuda")
    def products(a: CSR, x: Any, y: Any) -> Any:
        return a.todense(), a @ x, a @ x[:, 0], y @ a, a.T @ y[0]

    wanted = d, d @ x, d @ x[:, 0], y @ d, d.T @ y[0]
    for found, exact in zip(products(CSR.from_dense(d), x, y), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(found), exact)


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
