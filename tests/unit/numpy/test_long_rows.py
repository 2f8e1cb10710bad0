"""Medians and quantiles of rows that are too long for one block of a GPU: elements at places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from lowering.plan.selection import SelectionNode
from lowering.plan.sort import SortNode
from tests.helpers.compiled import plan_of

RNG = np.random.default_rng(0)
X = np.round(RNG.standard_normal((3, 8193)) * 50, 1)
MISSING = X.copy()
MISSING[1, 7] = np.nan
ZEROS = np.where(X > 0, 0.0, -0.0)

EXPRESSIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda xp, x: xp.median(x, axis=1),
    lambda xp, x: xp.median(x),
    lambda xp, x: xp.nanmedian(x, axis=-1),
    lambda xp, x: xp.quantile(x, 0.3, axis=1, keepdims=True),
    lambda xp, x: xp.quantile(x, np.array([[0.0, 0.5], [0.25, 1.0]]), axis=1),
    lambda xp, x: xp.percentile(x, [1, 50, 99], axis=1),
    lambda xp, x: xp.percentile(x, np.linspace(0, 100, 40), axis=1),
    lambda xp, x: xp.quantile(x, 0.37, axis=1, method="nearest"),
    lambda xp, x: xp.quantile(x, 0.37, axis=1, method="hazen"),
    lambda xp, x: xp.quantile(x, 0.5, axis=1, method="inverted_cdf"),
)


@pytest.mark.parametrize("x", [X, MISSING, ZEROS], ids=["numbers", "missing", "zeros"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_they_are_numpys(expression: Callable[[Any, Any], Any], x: Any) -> None:
    wanted = expression(np, x)
    for found in (
        expression(tnp, x),
        tracegraph.jit(lambda x: expression(np, x), device="host")(x),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
        assert np.asarray(found).dtype == wanted.dtype


def test_derivatives_are_at_the_elements() -> None:
    slopes = tracegraph.grad(lambda x: np.median(x, axis=1).sum())(X)
    wanted = np.zeros_like(X)
    np.put_along_axis(wanted, np.argsort(X, axis=1, kind="stable")[:, 4096, None], 1.0, 1)
    np.testing.assert_array_equal(slopes, wanted)


def test_lanes_are_rows() -> None:
    lanes = tracegraph.vmap(lambda x: np.quantile(x, 0.1))
    np.testing.assert_array_equal(lanes(X), np.quantile(X, 0.1, axis=1))


@pytest.mark.parametrize(
    ("rows", "length", "kind"),
    [(128, 8193, SelectionNode), (127, 8193, SortNode), (500, 8192, SortNode)],
)
def test_many_long_rows_are_not_sorted_on_a_gpu(rows: int, length: int, kind: type) -> None:
    plan = plan_of(lambda x: np.median(x, axis=1), np.zeros((rows, length), np.float32))
    assert isinstance(plan.graph.nodes[0], kind)
    on_host = plan_of(lambda x: np.median(x, axis=1), np.zeros((rows, length)), device="host")
    assert isinstance(on_host.graph.nodes[0], SortNode)
