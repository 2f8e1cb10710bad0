"""Work that leaves loops, on a GPU: guards of loops without steps, and what runs once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_gpu


@pytest.mark.parametrize("n", [12, 80])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_guarded_factorizations(n: int, steps: int) -> None:
    """By kernels of our own and by the library, in a loop that may have no steps."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((n, n)) + n * np.eye(n), rng.standard_normal((n, 1))

    def program(a: Any, b: Any, steps: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return np.linalg.solve(a, b + 1e-3 * x) + np.exp(-a).sum()

        return tracegraph.fori_loop(0, steps, step, b)

    found, expected = (f(a, b, steps) for f in (lambda *x: on_gpu(program, *x), program))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("flag", [False, True])
def test_guarded_branches_in_nested_loops(flag: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((40, 40)) + 40 * np.eye(40), rng.standard_normal((40, 1))

    def program(a: Any, b: Any, flag: Any, counts: Any) -> Any:
        def outer(x: Any, count: Any) -> Any:
            def inner(i: Any, y: Any) -> Any:
                return tracegraph.cond(
                    flag, lambda: np.linalg.solve(a, y), lambda: y + np.cosh(a / 40).sum()
                )

            return tracegraph.fori_loop(0, count, inner, x), x[0]

        return tracegraph.scan(outer, b, counts)

    for counts in (np.array([0, 2, 3]), np.array([0, 0])):
        found = on_gpu(program, a, b, flag, counts)
        for got, wanted in zip(found, program(a, b, flag, counts), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9)
