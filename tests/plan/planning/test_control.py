"""Loops and branches as nodes: conditions, carries, stacks and scratch."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.analysis import nest_writes
from lowering.plan.nests.kernel import ReduceNest, RowNest
from lowering.plan.nodes import KernelNode, LibraryNode
from tests.helpers.compiled import host_plan_of
from tests.helpers.plans import kinds, loop_of, nests_of, vector
from tracegraph import ArrayType

F64 = np.float64


def test_the_condition_is_set_by_the_kernel_that_computes_it():
    def halve(x):
        return tracegraph.while_loop(lambda v: np.sum(v * v) > 1.0, lambda v: v * 0.5, x)

    plan = host_plan_of(halve, vector())
    loop = loop_of(plan)
    for graph in (plan.graph, loop.body):
        setters = [
            nest
            for node in graph.nodes
            if isinstance(node, KernelNode)
            for nest in node.kernel.nests
            if getattr(nest, "signals", ())
        ]
        assert len(setters) == 1
        assert isinstance(setters[0], ReduceNest | RowNest)


def test_a_pointwise_carry_is_updated_in_place():
    def count(x):
        return tracegraph.while_loop(lambda s: s[1] < 9, lambda s: (s[0] * 2.0, s[1] + 1), (x, 0))

    plan = host_plan_of(count, vector())
    loop = loop_of(plan)
    assert len(loop.body.nodes) == 1
    stored = {s.buffer for nest in loop.body.nodes[0].kernel.nests for s in nest.stores}
    assert len(stored) == 2
    assert plan.arena_bytes == 2 * 256


def test_swapped_carries_need_no_further_memory():
    def swap(x, y):
        return tracegraph.while_loop(
            lambda s: s[2] < 9, lambda s: (s[1], s[0], s[2] + 1), (x, y, 0)
        )

    plan = host_plan_of(swap, vector(), vector())
    assert plan.arena_bytes == 3 * 256
    loop = loop_of(plan)
    assert len(loop.body.nodes) == 1


def test_a_carry_that_is_read_at_other_points_moves_at_the_end_of_the_body():
    def smooth(x):
        return tracegraph.fori_loop(0, 9, lambda _, v: np.roll(v, 1) + np.roll(v, -1), x)

    plan = host_plan_of(smooth, vector())
    loop = loop_of(plan)
    assert len(loop.body.nodes) == 2


def test_scan_writes_slices_in_place():
    plan = host_plan_of(
        lambda xs: tracegraph.scan(lambda c, x: (c + x, c * x), 0.0, xs), vector(1024)
    )
    loop = loop_of(plan)
    nests = nests_of(loop.body)
    (step,) = nests
    assert step.space == ()
    assert sorted(store.buffer.type.shape for store in step.stores) == [(), (), (1024,)]


def test_the_trip_count_does_not_show_in_the_plan():
    def repeat(trips):
        return host_plan_of(
            lambda x: tracegraph.fori_loop(0, trips, lambda i, v: v + i, x), vector()
        )

    few, many = repeat(10), repeat(10_000_000)
    assert kinds(few) == kinds(many)
    assert few.arena_bytes == many.arena_bytes


def test_branches_share_scratch():
    def branch(x):
        # two maps of an expensive value force a buffer of 8 KiB in each branch
        def heavy(f):
            def run(v):
                s = f(v) * np.cos(v)
                return s + s[::-1]

            return run

        return tracegraph.cond(x[0] > 0, heavy(np.sin), heavy(np.tanh), x)

    plan = host_plan_of(branch, vector(1024))
    assert plan.arena_bytes == 8192  # one temporary for either branch


def test_branches_store_results_where_the_call_returns_them():
    def branch(p, n, x):
        y = tracegraph.cond(p, lambda x: np.sin(x), lambda x: x[::-1], x)
        return y, tracegraph.switch(n, [np.cos, lambda y: -y, lambda y: y + 1.0], y)

    plan = host_plan_of(branch, ArrayType(np.bool_), ArrayType(np.int64), vector(1024))
    assert kinds(plan) == {"KernelNode": 6, "IfElseNode": 1, "SwitchNode": 1}
    assert plan.arena_bytes == 0


@pytest.mark.parametrize(
    "inside",
    [
        lambda x: tracegraph.fori_loop(0, 3, lambda i, y: y * 2.0, x),
        lambda x: x @ x,
    ],
    ids=["loop", "product"],
)
def test_loops_and_products_in_a_branch_work_at_fixed_addresses(inside):
    matrix = ArrayType(F64, (64, 64))
    plan = host_plan_of(lambda x: tracegraph.cond(x[0, 0] > 0, inside, np.sin, x), matrix)
    *_, copy = plan.graph.nodes
    assert isinstance(copy, KernelNode)
    assert nest_writes(copy.kernel.nests[0]) == {plan.outputs[0]}
    assert plan.arena_bytes >= matrix.nbytes


def test_an_update_and_the_norm_of_its_result_are_one_pass_in_place():
    def damp(x):
        return tracegraph.while_loop(lambda v: np.sum(v * v) > 1.0, lambda v: v * 0.9, x)

    plan = host_plan_of(damp, vector(1 << 20))
    loop = loop_of(plan)
    (node,) = loop.body.nodes
    (nest,) = node.kernel.nests
    assert isinstance(nest, RowNest)
    assert len(nest.passes) == 1
    assert plan.arena_bytes == 8 << 20


def test_a_step_of_conjugate_gradients_is_a_product_and_one_kernel():
    def solve(a, b):
        def step(state):
            x, r, p, rr = state
            ap = a @ p
            alpha = rr / np.sum(p * ap)
            r = r - alpha * ap
            new = np.sum(r * r)
            return x + alpha * p, r, r + new / rr * p, new

        start = (np.zeros_like(b), b, b, np.sum(b * b))
        return tracegraph.while_loop(lambda s: s[3] > 1e-9, step, start)[0]

    plan = host_plan_of(solve, ArrayType(F64, (256, 256)), ArrayType(F64, (256, 8)))
    loop = loop_of(plan)
    assert [type(n) for n in loop.body.nodes] == [LibraryNode, KernelNode]


def test_stacks_of_a_scan_have_no_value_before_it():
    def run(xs):
        return tracegraph.scan(lambda c, x: (c + x, c * x), 0.0, xs)[1]

    plan = host_plan_of(run, ArrayType(F64, (40,)))
    (loop,) = [node for node in plan.graph.nodes if node.kind == "while"]
    stack = next(b for b in plan.offsets if b.type.shape == (40,))
    position = plan.graph.nodes.index(loop)
    assert all(stack not in node.writes for node in plan.graph.nodes[:position])
