"""Prints, checks and progress as nodes of a Plan. What they do when run: test_effects_on_host."""

from __future__ import annotations

import numpy as np

import tracegraph
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import (
    MapNest,
    PrintNest,
    Publish,
    ReduceNest,
    Require,
    SetCondition,
)
from lowering.plan.nodes import Graph, KernelNode, walk
from lowering.plan.plan import Plan
from tests.helpers.compiled import host_plan_of
from tests.helpers.plans import loop_of
from tracegraph import ArrayType, debug

VECTOR = ArrayType("float64", (8,))


def nests(graph: Graph) -> list[object]:
    return [n for node in walk(graph) if isinstance(node, KernelNode) for n in node.kernel.nests]


def of_kind(plan: Plan, kind: type) -> list[object]:
    return [nest for nest in nests(plan.graph) if isinstance(nest, kind)]


def test_tokens_need_no_memory_and_no_results():
    def show(x):
        debug.print("{}", x)
        return x + 1.0

    plan = host_plan_of(show, VECTOR)
    assert plan.out_types == (VECTOR,)
    assert plan.arena_bytes == 0
    assert [format_.template for format_ in plan.prints] == ["{}"]


def test_a_print_is_computed_where_it_is_printed():
    def show(x):
        debug.print("{} {}", x[::2] * 2.0, x[0])

    plan = host_plan_of(show, VECTOR)
    (nest,) = nests(plan.graph)
    assert isinstance(nest, PrintNest)
    assert [a.shape for a in nest.arguments] == [(4,), ()]


def test_a_printed_sum_is_folded_by_a_kernel_of_its_own():
    plan = host_plan_of(lambda x: debug.print("{}", np.sum(x)), VECTOR)
    assert [type(nest) for nest in nests(plan.graph)] == [ReduceNest, PrintNest]


def test_much_work_is_not_left_to_a_print():
    def show(x):
        debug.print("{}", np.sin(x))

    few, many = host_plan_of(show, VECTOR), host_plan_of(show, ArrayType("float64", (1 << 16,)))
    assert len(few.graph.nodes) == 1
    assert [type(nest) for nest in nests(many.graph)] == [MapNest, PrintNest]


def test_prints_are_never_in_one_kernel_and_stay_in_order():
    def show(x, y):
        debug.print("{}", x)
        debug.print("{}", y)

    plan = host_plan_of(show, VECTOR, VECTOR)
    assert [n.kernel.nests[0].site for n in plan.graph.nodes] == [0, 1]
    assert plan.graph.edges == {(0, 1)}


def test_one_line_reached_twice_is_one_site():
    def show(x):
        for _ in range(2):
            debug.print("{}", x)

    plan = host_plan_of(show, VECTOR)
    assert [nest.site for nest in of_kind(plan, PrintNest)] == [0, 0]
    assert len(plan.prints) == 1


def test_loops_that_print_wait_for_each_other():
    def twice(x, y):
        def halve(v):
            debug.print("{}", v)
            return v / 2

        return [tracegraph.while_loop(lambda v: v > 1.0, halve, each) for each in (x, y)]

    number = ArrayType("float64")
    plan = host_plan_of(twice, number, number)
    first, second = [i for i, n in enumerate(plan.graph.nodes) if isinstance(n, WhileNode)]
    reached = {first}
    for i, j in sorted(plan.graph.edges):
        if i in reached:
            reached.add(j)
    assert second in reached


def test_counter_condition_and_progress_are_one_nest():
    def count(x):
        return tracegraph.fori_loop(0, 9, lambda i, v: v * 2.0, x, progress=lambda *_: None)

    plan = host_plan_of(count, VECTOR)
    (node,) = loop_of(plan).body.nodes
    (signalling,) = [nest for nest in node.kernel.nests if getattr(nest, "signals", ())]
    assert {type(signal) for signal in signalling.signals} == {SetCondition, Publish}
    assert [monitor.total for monitor in plan.monitors] == [9]


def test_a_step_limit_is_checked_once_behind_the_loop():
    def bounded(x):
        return tracegraph.while_loop(lambda v: np.sum(v) < 1e3, lambda v: v + 1.0, x, max_steps=50)

    plan = host_plan_of(bounded, VECTOR)
    checks = [
        (node, signal)
        for node in walk(plan.graph)
        if isinstance(node, KernelNode)
        for nest in node.kernel.nests
        for signal in getattr(nest, "signals", ())
        if isinstance(signal, Require)
    ]
    ((node, _),) = checks
    assert plan.graph.nodes.index(node) > plan.graph.nodes.index(loop_of(plan))
    assert [failure.error for failure in plan.failures] == ["StepLimitError"]
    assert loop_of(plan).construct.max_steps == 50


def test_a_loop_that_only_prints_is_kept():
    def show(n):
        tracegraph.fori_loop(0, n, lambda i, _: debug.print("{}", i), None)

    plan = host_plan_of(show, ArrayType("int64"))
    assert plan.outputs == ()
    assert len(of_kind(plan, PrintNest)) == 1


def test_an_empty_array_is_printed():
    (nest,) = nests(
        host_plan_of(lambda x: debug.print("{}", x), ArrayType("float64", (0, 3))).graph
    )
    assert isinstance(nest, PrintNest)
    assert nest.arguments[0].shape == (0, 3)


def test_the_text_of_a_plan_shows_its_effects():
    def show(x):
        debug.print("x = {}", x * 2.0)
        return tracegraph.while_loop(
            lambda n: n < 9, lambda n: n + 1, 0, max_steps=5, progress="counting"
        )

    lines = [line.split("  #")[0].strip() for line in str(host_plan_of(show, VECTOR)).splitlines()]
    for expected in (
        "monitor[0]: counting",
        "failure[0]: StepLimitError",
        "print[0]: 'x = {}'",
        "print[0]",
        "[8] multiply(input[0][i0], f64(2.0))",
    ):
        assert expected in lines
    assert sum(line.startswith("monitor[0] = ") for line in lines) == 1
    assert sum(line.startswith("failure[0] unless ") for line in lines) == 1
