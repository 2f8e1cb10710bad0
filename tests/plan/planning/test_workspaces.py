"""Which library calls run side by side, each in a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import LibraryNode, launched
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import override
from lowering.planning.libraries.workspaces import FILLING_RESULTS, MOST_WORKSPACES
from lowering.testing.recording_backend import RecordingBackend
from tests.helpers.compiled import plan_of
from tracegraph import ArrayType

N = 64


def planned(function: Callable[..., Any], arguments: int, n: int = N, device: str = "cuda") -> Plan:
    matrices = [ArrayType(np.float32, (n, n))] * arguments
    choices = {"products": "library", "loops": "conditional"}
    return plan_of(function, *matrices, device=device, choices=choices)


def workspaces(plan: Plan) -> list[int]:
    return [node.workspace for node in launched(plan.graph) if isinstance(node, LibraryNode)]


def waits(plan: Plan) -> set[tuple[int, int]]:
    """The pairs of library calls, by their numbers, of which one waits for the other."""
    graph = plan.launch_graph
    behind: list[set[int]] = []
    for at in range(len(graph.nodes)):
        before = [i for i, j in graph.edges if j == at]
        behind.append(set(before).union(*[behind[i] for i in before]))
    calls = [at for at, node in enumerate(graph.nodes) if isinstance(node, LibraryNode)]
    numbered = list(enumerate(calls))
    return {(i, j) for (i, a), (j, b) in combinations(numbered, 2) if a in behind[b]}


def test_independent_products_run_side_by_side() -> None:
    plan = planned(lambda a, b, c: (a @ b, b @ c, c @ a), 3)
    assert workspaces(plan) == [0, 1, 2]
    assert not waits(plan)


def test_products_that_wait_for_each_other_share_a_workspace() -> None:
    plan = planned(lambda a: a @ a @ a @ a, 1)
    assert workspaces(plan) == [0, 0, 0]
    two = planned(lambda a, b: (a @ b @ a, b @ a @ b), 2)
    assert sorted(workspaces(two)) == [0, 0, 1, 1]
    assert len(waits(two)) == 2


def test_where_all_workspaces_are_in_use_a_product_waits_for_the_first() -> None:
    plan = planned(lambda *a: tuple(x @ x for x in a), MOST_WORKSPACES + 2)
    assert workspaces(plan) == [*range(MOST_WORKSPACES), 0, 1]
    assert waits(plan) == {(0, MOST_WORKSPACES), (1, MOST_WORKSPACES + 1)}


def test_a_free_workspace_is_that_of_a_product_that_is_over() -> None:
    def forked(a: Any, b: Any) -> Any:
        joined = (a @ b) + (b @ a)
        return joined @ a, joined @ b, joined @ joined

    plan = planned(forked, 2)
    assert workspaces(plan) == [0, 1, 0, 1, 2]
    assert {(2, 3), (3, 4), (2, 4)}.isdisjoint(waits(plan))


def test_products_that_fill_a_gpu_run_one_at_a_time() -> None:
    large = round(FILLING_RESULTS**0.5)
    plan = planned(lambda a, b: (a @ b, b @ a), 2, large)
    assert workspaces(plan) == [0, 0]
    assert waits(plan) == {(0, 1)}
    assert workspaces(planned(lambda a, b: (a @ b, b @ a), 2, large - 8)) == [0, 1]


def test_products_in_bodies_run_side_by_side_and_beside_those_outside() -> None:
    def beside(a: Any, b: Any) -> Any:
        looped = tracegraph.fori_loop(0, 30, lambda i, c: (c @ a) * (a @ c), b)
        return looped, a @ b, b @ b

    plan = planned(beside, 2)
    assert workspaces(plan) == [0, 1, 2, 3]
    assert not waits(plan)


def test_two_loops_with_products_take_turns() -> None:
    def two(a: Any, b: Any) -> Any:
        first = tracegraph.fori_loop(0, 30, lambda i, c: c @ a, a)
        return first, tracegraph.fori_loop(0, 30, lambda i, c: c @ b, b)

    plan = planned(two, 2)
    assert workspaces(plan) == [0, 0]


def test_other_calls_use_the_first_workspace() -> None:
    plan = planned(lambda a, b: (a @ b, np.linalg.cholesky(a), b @ a), 2, n=2 * N + 2)
    kinds = [n.call.noun for n in launched(plan.graph) if isinstance(n, LibraryNode)]
    used = dict(zip(kinds, workspaces(plan), strict=True))
    assert [number for kind, number in used.items() if "product" not in kind] == [0]


def test_the_host_has_none() -> None:
    assert set(workspaces(planned(lambda a, b: (a @ b, b @ a), 2, device="host"))) <= {0}


@pytest.mark.parametrize("scratch", ["kept", "per_launch"])
def test_each_has_memory_of_its_own(scratch: Any) -> None:
    jitted = tracegraph.jit(lambda a, b: (a @ b, b @ a, a @ a @ b), device="cuda", scratch=scratch)
    with override(products="library"):
        plan = jitted.lower(*[ArrayType(np.float32, (N, N))] * 2).plan
    backend = RecordingBackend()
    executable = backend.compile(plan)
    used = [c.detail for c in backend.device.driver.calls if c.operation == "use_workspace"]
    (nbytes,) = {nbytes for _, nbytes in used}
    places = sorted({pointer for pointer, _ in used[1::2]})
    assert len(places) == 3
    assert places[1] - places[0] == places[2] - places[1] == nbytes
    assert executable.plan.library_bytes == 3 * nbytes
