"""associative_scan on a GPU: the values of NumPy, for many lengths, in loops and lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_gpu
from tracegraph import associative_scan


def then(first: Any, second: Any) -> Any:
    (a, b), (c, d) = first, second
    return a * c, b * c + d


@pytest.mark.parametrize("n", [1, 9, 1000, 65_537, 1_000_000])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(n: int, reverse: bool) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.uniform(-1, 1, n), rng.standard_normal(n)
    found = on_gpu(lambda *x: associative_scan(then, x, reverse)[1], a, b)
    expected, h = np.empty(n), 0.0
    for i in range(n)[:: -1 if reverse else 1]:
        expected[i] = h = a[i] * h + b[i]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_products_of_matrices_in_loops_and_lanes() -> None:
    x = np.random.default_rng(0).standard_normal((3, 50, 2, 2)) / 2

    def program(x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return associative_scan(np.matmul, x) / 2

        return tracegraph.fori_loop(0, 3, step, x)

    expected = np.stack([program(lane) for lane in x])
    np.testing.assert_allclose(on_gpu(tracegraph.vmap(program), x), expected, rtol=1e-9, atol=1e-14)
    loss = tracegraph.grad(lambda x: program(x).sum())
    np.testing.assert_allclose(on_gpu(loss, x[0]), loss(x[0]), rtol=1e-9, atol=1e-14)
