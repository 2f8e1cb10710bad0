"""Nodes that keep the memory busy run one after the other, others side by side."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lowering.plan.nodes import Graph, KernelNode, LibraryNode
from tests.helpers.compiled import plan_of
from tracegraph import ArrayType
from tracegraph.control.loops import fori_loop

LARGE, SMALL = (ArrayType(np.float32, (n, 64)) for n in (1 << 18, 1 << 12))


def independent(graph: Graph) -> set[tuple[int, int]]:
    """The pairs of nodes that may run at the same time."""
    behind: list[set[int]] = []
    for at in range(len(graph.nodes)):
        before = [i for i, j in graph.edges if j == at]
        behind.append(set(before).union(*[behind[i] for i in before]))
    return {(i, j) for i, j in combinations(range(len(graph.nodes)), 2) if i not in behind[j]}


def sums(x: Any) -> Any:
    """Sums of rows and of columns, which are two kernels."""
    return np.sum(x, axis=0), np.cumsum(x, axis=0)


@pytest.mark.parametrize(("array", "together"), [(LARGE, False), (SMALL, True)])
def test_kernels_bound_by_memory_run_in_sequence(array: ArrayType, together: bool) -> None:
    graph = plan_of(sums, array, device="cuda").graph
    assert len(graph.nodes) > 1
    assert bool(independent(graph)) == together


def test_so_do_nodes_of_a_body() -> None:
    def loop(x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            columns, running = sums(x)
            return 0.5 * running + columns

        return fori_loop(0, 9, step, x)

    plan = plan_of(loop, LARGE, device="cuda", choices={"loops": "conditional"})
    (body,) = [body for node in plan.graph.nodes for body in node.bodies]
    assert not independent(body)


def test_products_by_tiles_and_by_the_library_run_in_sequence() -> None:
    def both(x: Any, narrow: Any, wide: Any) -> Any:
        return x @ narrow, x @ wide

    arrays = [ArrayType(np.float32, shape) for shape in ((2048, 256), (256, 10), (256, 512))]
    plan = plan_of(both, *arrays, device="cuda")
    results = set(plan.outputs)
    nodes = enumerate(plan.graph.nodes)
    first, second = [at for at, node in nodes if results & {*node.writes}]
    kinds = {type(plan.graph.nodes[at]) for at in (first, second)}
    assert kinds == {KernelNode, LibraryNode}
    assert (first, second) not in independent(plan.graph)


def test_a_node_that_computes_for_longer_runs_beside_others() -> None:
    def both(a: Any, x: Any) -> Any:
        return a @ a, np.sum(x, axis=0)

    square = ArrayType(np.float32, (4096, 4096))
    assert independent(plan_of(both, square, LARGE, device="cuda").graph)
