"""Maps whose spaces differ in axes of one point: they share a kernel, and values in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import MapNest
from lowering.plan.nodes import KernelNode, walk
from tests.helpers.running import by
from tracegraph import grad

N = 100_000
X = np.random.default_rng(0).uniform(-1, 1, (3, 70))


def rows_and_vectors(x: Any) -> Any:
    row, vector = x[:1] * 2, x[1] + 1
    return row, vector, row.reshape(1, 1, -1) + np.sin(row), row[0] - vector


def written_and_read(x: Any) -> Any:
    column = np.exp(x[0])
    total = column.sum()
    return column[:, None] * total, column + total, column.reshape(1, -1, 1) - total


PROGRAMS = (rows_and_vectors, written_and_read)


def recurrent(x: Any, xs: Any, weights: Any) -> Any:
    """A loop that keeps its carry at each step, for its gradient."""

    def step(x: Any, given: Any) -> Any:
        x = np.tanh(weights @ x + given)
        return x, x

    _, outputs = tracegraph.scan(step, x, xs, schedule="conditional")
    return (outputs**2).sum()


@pytest.mark.parametrize("way", ["planned_for_cuda", "poisoned", "any_order"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results_stay_the_same(function: Callable[..., Any], way: str) -> None:
    for got, wanted in zip(by(way)(function, X), function(X), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-14)


def test_one_kernel_for_rows_and_vectors() -> None:
    graph = tracegraph.jit(rows_and_vectors, device="cuda").lower(np.ones((3, N))).plan.graph
    (node,) = (node for node in walk(graph) if isinstance(node, KernelNode))
    (nest,) = node.kernel.nests
    assert isinstance(nest, MapNest)
    assert len(nest.stores) == 4


def test_a_kept_row_is_read_where_the_cotangent_of_the_step_is_computed() -> None:
    arguments = np.ones(16), np.ones((100, 16)), np.ones((16, 16))
    stage = tracegraph.jit(grad(recurrent, (0, 2)), device="cuda").lower(*arguments)
    backward = [node for node in stage.plan.graph.nodes if isinstance(node, WhileNode)][-1]
    kernels = [node for node in walk(backward.body) if isinstance(node, KernelNode)]
    spaces = {nest.space for node in kernels for nest in node.kernel.nests}
    assert (16,) in spaces
    assert (1, 16) not in spaces


def test_whole_copies_are_found_in_maps_of_another_space() -> None:
    """So that the carries of the steps of an unrolled loop change places."""

    def swapped(x: Any, y: Any) -> Any:
        def step(k: Any, carry: Any) -> Any:
            x, y = carry
            return y.reshape(1, -1) + 0, x[0] * 2

        return tracegraph.fori_loop(0, 64, step, (x, y), schedule="unrolled", unroll=4)

    arguments = np.arange(40.0).reshape(1, 40), np.ones(40)
    for got, wanted in zip(
        by("planned_for_cuda")(swapped, *arguments), swapped(*arguments), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
