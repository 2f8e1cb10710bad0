"""Loops in one kernel: which are, by which threads, and what the Plan says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen import unit_source
from lowering.host.executable import HostExecutable
from lowering.plan.nodes import launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target import overrides as choices
from lowering.plan.target.scope import Scope
from tests.helpers.compiled import nodes_planned_for
from tracegraph import ArrayType, cond, debug, fori_loop, while_loop
from tracegraph.errors import UnschedulableError


def scopes(plan: Plan) -> list[Scope]:
    return [node.scope for node in launched(plan.graph) if isinstance(node, PersistentKernelNode)]


def halving(x: Any) -> Any:
    return while_loop(lambda x: np.sum(x) > 1, lambda x: x / 2, x)


def vector(n: int) -> ArrayType:
    return ArrayType("float64", (n,))


@pytest.mark.parametrize(("n", "threads"), [(3, 1), (200, 256), (1000, 1024)])
def test_a_small_loop_is_one_kernel_of_the_threads_that_it_has_work_for(
    n: int, threads: int
) -> None:
    assert scopes(nodes_planned_for(halving, vector(n))) == [Scope(1, threads)]


def test_a_loop_over_much_data_is_not() -> None:
    assert scopes(nodes_planned_for(halving, vector(1 << 20))) == []


def test_stacks_count_by_what_a_step_moves() -> None:
    """A gradient reads what each step has kept: megabytes in all, kilobytes a step."""

    def total(y: Any) -> Any:
        def step(_: Any, y: Any) -> Any:
            for _ in range(6):
                y = y + 0.1 * np.sin(y) * np.cumsum(y)
            return y

        return np.sum(fori_loop(0, 300, step, y))

    plan = nodes_planned_for(tracegraph.grad(total), vector(512))
    assert plan.arena_bytes > 1 << 20
    assert scopes(plan) == [Scope(1, 512)] * 2


def test_it_needs_no_conditional_node_and_is_explained() -> None:
    plan = nodes_planned_for(halving, vector(3))
    title, _, row = explain(plan).splitlines()
    assert title.endswith("0 of them conditional")
    assert "one kernel, 1 thread" in row


def test_loops_and_branches_inside_run_in_the_same_kernel() -> None:
    def run(x: Any, n: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            x = fori_loop(0, i, lambda j, x: np.roll(x, 1) + j, x)
            return cond(x[0] > 9, lambda x: x / 2, np.cumsum, x)

        return fori_loop(0, n, body, x)

    plan = nodes_planned_for(run, vector(4), ArrayType("int64"))
    assert len(scopes(plan)) == 1
    assert [row.split()[1] for row in explain(plan).splitlines()[2:]] == ["fori_loop"] * 2 + [
        "cond"
    ]


def test_a_loop_that_prints_keeps_its_node_unless_pinned() -> None:
    def run(x: Any, schedule: str | None = None) -> Any:
        def body(x: Any) -> Any:
            debug.print("{}", x[0])
            return x / 2

        return while_loop(lambda x: x[0] > 1, body, x, schedule=schedule)

    assert scopes(nodes_planned_for(run, vector(3))) == []
    assert len(scopes(nodes_planned_for(lambda x: run(x, "one_kernel"), vector(3)))) == 1


def test_a_library_call_is_an_obstacle() -> None:
    def run(x: Any) -> Any:
        return fori_loop(0, 9, lambda i, x: np.tanh(x @ x), x, schedule="one_kernel")

    with (
        choices.override(products="library"),
        pytest.raises(UnschedulableError, match=r"cannot be one_kernel: a product inside"),
    ):
        nodes_planned_for(run, ArrayType("float32", (512, 512)))


def test_steps_of_an_iteration_cannot_be_asked_for() -> None:
    with pytest.raises(tracegraph.errors.ScheduleError, match="1 where schedule='one_kernel'"):
        fori_loop(0, 9, lambda i, x: x, np.ones(3), schedule="one_kernel", unroll=2)


# -- text ----------------------------------------------------------------------------------------


def text_of(function: Any, *types: Any, scope: Scope) -> str:
    with choices.override(loops="one_kernel", scope=scope):
        unit = unit_source(nodes_planned_for(function, *types))
    (code,) = [code for node, code in unit.kernels.items() if node.kind == "persistent"]
    start = unit.source.index(f"{code.name}(")
    return unit.source[start : unit.source.find('\nextern "C"', start)]


def rolling(x: Any, n: Any) -> Any:
    return fori_loop(0, n, lambda i, x: np.roll(x, 1) * 0.5, x)


BLOCK, GRID = Scope(1, 128), Scope(16, 128)
NUMBER = ArrayType("int64")


@pytest.mark.parametrize("scope", [BLOCK, GRID, Scope(8, 128, clustered=True)], ids=str)
def test_a_carry_that_is_read_at_other_points_exchanges_its_buffers(scope: Scope) -> None:
    assert text_of(rolling, vector(100), NUMBER, scope=scope).count("tg_exchange(") == 1


def test_a_carry_that_is_written_in_part_is_copied() -> None:
    def run(x: Any, n: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            y = x[::-1].copy()
            y[3:5] = x[:2] + 1
            return y

        return fori_loop(0, n, body, x)

    found = run(np.arange(8.0), 3)
    with choices.override(loops="one_kernel", scope=BLOCK):
        plan = nodes_planned_for(run, vector(8), NUMBER)
    assert len(scopes(plan)) == 1
    np.testing.assert_array_equal(HostExecutable(plan)([np.arange(8.0), np.int64(3)])[0], found)


def test_one_thread_keeps_its_state_in_arrays_of_its_own() -> None:
    text = text_of(rolling, vector(3), NUMBER, scope=Scope(1, 1))
    assert "double p" in text
    assert "__syncthreads" not in text
    assert "shared" not in text


def test_a_block_keeps_in_shared_memory_what_fits() -> None:
    assert "shared" in text_of(rolling, vector(1000), NUMBER, scope=BLOCK)
    assert "home_p" in text_of(rolling, vector(10_000), NUMBER, scope=BLOCK)


def test_blocks_that_wait_for_each_other_are_launched_together() -> None:
    for scope, cluster in ((GRID, 1), (Scope(8, 128, clustered=True), 8), (BLOCK, 1)):
        with choices.override(loops="one_kernel", scope=scope):
            unit = unit_source(nodes_planned_for(rolling, vector(5000), NUMBER))
        (code,) = [code for node, code in unit.kernels.items() if node.kind == "persistent"]
        assert (code.cooperative, code.cluster) == (scope.blocks > 1, cluster)
        assert code.grid == (scope.blocks, 1, 1)
