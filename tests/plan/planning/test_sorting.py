"""Plans of sorts: one node for each, its scratch memory, and what is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from lowering.codegen import unit_source
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.sort import LONGEST_ROW, SortNode, SortShape
from tests.helpers.compiled import plan_of
from tests.helpers.plans import nodes_of
from tracegraph import errors
from tracegraph.ir.types import ArrayType

ROW = np.zeros(20_000, np.float32)


@pytest.mark.parametrize("function", [np.sort, np.argsort])
@pytest.mark.parametrize("shape", [(20,), (500, 3, 700), (20_000,)])
def test_arguments_and_results_are_not_copied(function: Any, shape: tuple[int, ...]) -> None:
    (node,) = plan_of(function, np.zeros(shape)).graph.nodes
    assert isinstance(node, SortNode)
    assert node.keys.buffer.space == "input"
    assert node.target.space == "output"


def test_kernels_and_scratch_follow_from_the_length() -> None:
    def kernels(function: Any, dtype: Any, *shape: int) -> int:
        plan = plan_of(function, np.zeros(shape, dtype))
        (node,) = nodes_of(plan, SortNode)
        assert plan.arena_bytes == 0 or node.scratch
        return len(unit_source(plan).sequences[node])

    assert kernels(np.sort, np.float32, 7, 32) == 1
    assert kernels(np.argsort, np.complex128, 7, 2048) == 1
    assert kernels(np.sort, np.bool_, 20_000) == 2 + 1
    assert kernels(np.sort, np.float16, 20_000) == 2 + 2
    assert kernels(np.argsort, np.int64, 3, 20_000) == 2 + 8


def test_the_host_needs_no_scratch() -> None:
    plan = plan_of(np.argsort, ROW, device="host")
    assert plan.arena_bytes == 0
    assert not nodes_of(plan, SortNode)[0].scratch


def test_operands_are_made_contiguous_once() -> None:
    def turned(x: Any) -> Any:
        return np.sort(x, axis=0), np.argsort(x + 1, axis=0)

    plan = plan_of(turned, np.zeros((3000, 4)))
    assert len(nodes_of(plan, SortNode)) == 2
    assert {node.keys.shape for node in nodes_of(plan, SortNode)} == {(4, 3000)}
    rows = plan_of(lambda x: np.sort(x[2:]), np.zeros((5, 100)))
    assert [node.keys.offset for node in nodes_of(rows, SortNode)] == [200]
    assert not any(isinstance(node, KernelNode) for node in walk(rows.graph))


def test_what_is_read_after_a_sort_is_fused() -> None:
    plan = plan_of(lambda x: np.median(x, axis=1) * 2, np.zeros((50, 101)))
    assert [type(node) for node in plan.graph.nodes] == [SortNode, KernelNode]


def test_a_loop_of_sorts_is_not_one_kernel() -> None:
    def loop(x: Any) -> Any:
        return tracegraph.fori_loop(0, 4, lambda i, x: np.sort(x) + i, x, schedule="one_kernel")

    with pytest.raises(errors.UnschedulableError, match="a sort inside"):
        plan_of(loop, ROW)


def test_equal_sorts_are_one() -> None:
    plan = plan_of(lambda x: (np.argsort(x), np.take(x, np.argsort(x)), tnp.argsort(x)), ROW)
    assert len(nodes_of(plan, SortNode)) == 1


def test_rows_are_not_too_long() -> None:
    types = ArrayType(np.dtype(np.int8), (LONGEST_ROW + 1,))
    assert SortShape.of(types).status_dtype == np.uint64
    with pytest.raises(ValueError, match="argsort takes rows of at most 4,294,967,295 elements"):
        tracegraph.jit(lambda x: np.argsort(np.broadcast_to(x, types.shape)), device="cuda").lower(
            np.int8(1)
        )


def test_printed_plans_and_graphs_name_them() -> None:
    plan = plan_of(np.sort, np.zeros((3, 5000)))
    assert "sort 3x5000: output[0] = input[0]:5000,1" in str(plan)
    assert nodes_of(plan, SortNode)[0].noun == "a sort"
