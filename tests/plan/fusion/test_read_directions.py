"""Folds that read a large array along different axes are separate kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.kernel import ReduceNest
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.target.overrides import Choices
from tests.helpers.forced import on_host
from tracegraph.ir.types import ArrayType

PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "results": lambda a, x, y: (a @ x, y @ a),
    "sum": lambda a, x, y: a @ x + y @ a,
    "rows and columns": lambda a, x, y: (a.sum(0) + x, a.sum(1) + y),
    "three": lambda a, x, y: (a @ x, y @ a, a.max(1)),
    "places": lambda a, x, y: a.argmax(1) + x * a.min(0),
    "mixed": lambda a, x, y: (x * (a.T @ x) + np.abs(a).sum(1), y),
}


def folds(function: Any, n: int, dtype: str = "float64") -> list[ReduceNest]:
    types = ArrayType(dtype, (n, n)), ArrayType(dtype, (n,)), ArrayType(dtype, (n,))
    plan = tracegraph.jit(function, device="cuda").lower(*types).plan
    nodes = [node for node in walk(plan.graph) if isinstance(node, KernelNode)]
    found = [nest for node in nodes for nest in node.kernel.nests if isinstance(nest, ReduceNest)]
    assert len(nodes) == len(found) or n < 100
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_direction_of_a_large_matrix_has_a_kernel(name: str) -> None:
    for dtype in ("float32", "float64"):
        assert len(folds(PROGRAMS[name], 2000, dtype)) == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_small_matrix_is_read_by_one_kernel(name: str) -> None:
    assert len(folds(PROGRAMS[name], 64)) == 1


def test_one_direction_is_one_kernel_of_any_size() -> None:
    assert len(folds(lambda a, x, y: (a @ x, a @ y, a.sum(1)), 4000)) == 1
    assert len(folds(lambda a, x, y: x @ a + y @ a + a.max(0), 4000)) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_give_what_numpy_gives(name: str) -> None:
    rng = np.random.default_rng(0)
    a, x, y = rng.standard_normal((700, 700)), *rng.standard_normal((2, 700))
    expected = PROGRAMS[name](a, x, y)
    found = on_host(Choices())(PROGRAMS[name], a, x, y)
    for got, wanted in zip(
        tracegraph.tree.leaves(found), tracegraph.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
