"""Plans whose branches are predicated and whose loops are unrolled: how they look, and when."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET as CUDA
from lowering.legalization.legalize import legalize, needed_features
from lowering.lower import lower
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.analysis import nest_signals
from lowering.plan.nests.kernel import SetCondition
from lowering.plan.nodes import KernelNode, LibraryNode, walk
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import Features
from lowering.plan.target.overrides import Choices
from lowering.scheduling.branch_schedules import BRANCH_SCHEDULES
from lowering.scheduling.loop_schedules import LOOP_SCHEDULES, MOST_NODES
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.compiled import nodes_planned_for
from tests.helpers.forced import FORCED, on_host, scheduled
from tracegraph import ArrayType, cond, errors, fori_loop, scan, switch, while_loop

VECTOR = ArrayType("float64", (8,))
NUMBER = ArrayType("int64")
FLAG = ArrayType("bool")


def plan_of_nodes(function: Any, *types: Any) -> Plan:
    """The plan where no loop is one kernel."""
    target = replace(CUDA, persistent=None, graphs=False)
    return lower(stage_of(function, *types).traced.optimized, target)


def stage_of(function: Any, *types: Any) -> Any:
    return tracegraph.jit(function, device="host").lower(*types)


def bare(function: Any, *types: Any) -> Plan:
    return nodes_planned_for(function, *types, device="host")


def rows(plan: Plan) -> list[list[str]]:
    """The table of control flow: construct, schedule, nodes, why."""
    _, head, *lines = explain(replace(plan, as_graph=False)).splitlines()
    starts = [head.index(name) for name in ("construct", "steps", "schedule", "nodes", "why")]
    ends = [*starts[1:], None]
    cut = [[line[i:j].strip() for i, j in zip(starts, ends, strict=True)] for line in lines]
    return [[cells[0], *cells[2:]] for cells in cut if cells[2] != "-"]  # that is no loop or branch


def text(plan: Plan) -> str:
    """The Plan as text, without the user's lines, and what a launch does for arguments."""
    return re.sub(r"  # .*", "", str(replace(plan, as_graph=False)))


# -- how they look -----------------------------------------------------------------------------


def choose(p: Any, x: Any) -> Any:
    return cond(p, lambda x: x[::-1], lambda x: x - 1, x)


def halve(x: Any) -> Any:
    return while_loop(lambda v: np.sum(v) > 1.0, lambda v: v * 0.5, x)


def power(x: Any) -> Any:
    return fori_loop(0, 6, lambda i, c: c * 2, x)


CHOSEN = """\
plan choose {
  input[0]: bool[]
  input[1]: f64[8]
  output[0]: f64[8]
  scratch[1]: bool[] @ 0
  arena: 256 bytes, conditions: 1
  0: kernel choose_k0
      map []
        scratch[1][] = input[0][]
  1: kernel choose_k1_subtract after 0
      map [8] where scratch[1] == true
        output[0][i0] = input[1][-i0 + 7]
      map [8] where scratch[1] == false
        output[0][i0] = subtract(input[1][i0], f64(1.0))
}"""

HALVED = """\
  1: while condition[0] after 0
    body
      0: kernel halve_k1_multiply_greater
          rows [] over [8]
            t0 = multiply(scratch[1][i0], f64(0.5))
            t1 = greater(acc0, f64(1.0))
            pass
              acc0 = add t0
              scratch[1][i0] = t0
            scratch[4][] = t1
            condition[0] = t1
      1: kernel halve_k1_multiply_greater after 0
          rows [] over [8] where scratch[4] == true
            t0 = multiply(scratch[1][i0], f64(0.5))
            t1 = greater(acc0, f64(1.0))
            pass
              acc0 = add t0
              scratch[1][i0] = t0
            scratch[5][] = t1
            condition[0] = t1
          map [] where scratch[4] == false
            scratch[5][] = bool(False)
"""

POWER = """\
  1: while condition[0] after 0
    body
      0: kernel power_k1_add_less_multiply
          map []
            scratch[2][] = add(scratch[2][], 1)
          map [8]
            scratch[1][i0] = multiply(scratch[1][i0], f64(2.0))
      1: kernel power_k1_add_less_multiply after 0
          map []
            t0 = add(scratch[2][], 1)
            scratch[2][] = t0
            condition[0] = less(t0, 6)
          map [8]
            scratch[1][i0] = multiply(scratch[1][i0], f64(2.0))
"""


def test_branches_become_one_kernel_behind_the_flag() -> None:
    assert text(nodes_planned_for(choose, FLAG, VECTOR)) == CHOSEN


def test_each_copy_of_a_body_reads_one_flag_and_writes_the_next() -> None:
    assert HALVED in text(scheduled(stage_of(halve, VECTOR), Choices(loops="unrolled", unroll=2)))


def test_a_number_of_steps_that_divides_needs_no_flags() -> None:
    assert POWER in text(scheduled(stage_of(power, VECTOR), Choices(loops="unrolled", unroll=2)))


def test_a_loop_of_few_steps_has_no_node_and_sets_no_condition() -> None:
    plan = plan_of_nodes(lambda x: fori_loop(0, 16, lambda i, c: np.cumsum(c), x), VECTOR)
    assert [row[:3] for row in rows(plan)] == [["fori_loop", "unrolled", "16"]]
    assert all(isinstance(node, KernelNode) for node in plan.graph.nodes)
    assert plan.graph.edges == {(i, i + 1) for i in range(len(plan.graph.nodes) - 1)}
    nests = [nest for node in plan.graph.nodes for nest in node.kernel.nests]
    assert not any(isinstance(s, SetCondition) for nest in nests for s in nest_signals(nest))
    assert len(set(map(id, plan.graph.nodes))) == len(plan.graph.nodes)


def test_flags_of_copies_share_memory_with_nothing_in_the_body() -> None:
    def run(x: Any, n: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return cond(i % 2 == 0, np.sin, lambda x: x + np.sum(np.cumsum(x)[::-1]), x)

        return fori_loop(0, n, body, x)

    plan = scheduled(stage_of(run, VECTOR, NUMBER), FORCED["both"])
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    nests = [nest for node in walk(loop.body) for nest in node.kernel.nests]
    flags = {predicate.flag for nest in nests for predicate in nest.predicates}
    assert len(flags) == 3  # of two copies, and of the branch in all of them
    used = {b for node in walk(loop.body) for b in node.accessed_buffers if b in plan.offsets}
    places = [plan.offsets[b] for b in used]
    assert all(places.count(plan.offsets[flag]) == 1 for flag in flags)
    assert len({b.number for b in plan.offsets}) == len(plan.offsets)


def test_a_branch_inside_a_branch_asks_for_both() -> None:
    def run(p: Any, q: Any, x: Any) -> Any:
        inner = lambda x: cond(q, np.sin, np.cos, x)  # noqa: E731
        return cond(p, inner, lambda x: -x, x)

    plan = nodes_planned_for(run, FLAG, FLAG, VECTOR)
    asked = [
        [p.value for p in nest.predicates]
        for node in plan.graph.nodes
        for nest in node.kernel.nests
        if nest.predicates
    ]
    assert sorted(asked) == [[False], [True], [True, False], [True, True]]
    assert [row[:3] for row in rows(plan)] == [
        ["cond", "predicated", "2+1"],
        ["cond", "predicated", "1+1"],
    ]


# -- when --------------------------------------------------------------------------------------


def test_a_host_decides_for_nothing() -> None:
    def run(p: Any, x: Any) -> Any:
        return fori_loop(0, 4, lambda i, x: choose(p, x), x)

    plan = bare(run, FLAG, VECTOR)
    assert [row[1] for row in rows(plan)] == ["WHILE node", "IF/ELSE node"]
    assert nodes_planned_for(run, FLAG, VECTOR, device="cuda:1").node_counts.keys() == {
        "KernelNode"
    }


# -- as if written by hand -----------------------------------------------------------------------


def by_hand(step: Any, n: int) -> Any:
    def run(x: Any) -> Any:
        for i in range(n):
            x = step(i, x)
        return x

    return run


@pytest.mark.parametrize(
    "step",
    [
        lambda i, c: c * 2,
        lambda i, c: np.sin(c) + i,
        lambda i, c: np.roll(c, 1) * 0.5,
        lambda i, c: c - c[::-1] * i,
        lambda i, c: c / np.sum(c),
        lambda i, c: np.cumsum(c) * 0.5,
        lambda i, c: c.reshape(2, 4).T.reshape(8) + c[i],
        lambda i, c: np.where(c > i, c, -c) @ np.eye(8),
    ],
)
def test_a_short_loop_plans_to_the_kernels_of_the_same_code_by_hand(step: Any) -> None:
    loop = nodes_planned_for(lambda x: fori_loop(0, 4, step, x), VECTOR)
    hand = nodes_planned_for(by_hand(step, 4), VECTOR)
    assert loop.node_counts == hand.node_counts
    assert re.sub(r"lambda", "run", text(loop)) == text(hand)


def test_writes_in_a_short_loop_plan_to_the_kernels_of_the_same_code_by_hand() -> None:
    def step(i: Any, c: Any) -> Any:
        return c.at[i].set(c[-1] + 1) * 2

    loop = nodes_planned_for(lambda x: fori_loop(0, 4, step, x), VECTOR)
    assert loop.node_counts == nodes_planned_for(by_hand(step, 4), VECTOR).node_counts


def test_a_short_scan_is_unrolled_with_its_stacks() -> None:
    def run(xs: Any) -> Any:
        return scan(lambda c, x: (c + x, c * x), 0.0, xs, reverse=True)

    plan = nodes_planned_for(run, ArrayType("float64", (4,)))
    assert not any(node.bodies for node in plan.graph.nodes)
    xs = np.arange(1.0, 5)
    (carry, ys), wanted = tracegraph.jit(run, device="host")(xs), run(xs)
    assert float(carry) == wanted[0]
    np.testing.assert_array_equal(ys, wanted[1])
    found = on_host(Choices())(run, xs)
    np.testing.assert_array_equal(found[1], wanted[1])


def test_branches_of_an_unrolled_loop_are_shown_inside_it() -> None:
    def run(p: Any, x: Any) -> Any:
        return fori_loop(0, 3, lambda i, x: choose(p, x), x)

    assert [row[:2] for row in rows(nodes_planned_for(run, FLAG, VECTOR))] == [
        ["fori_loop", "unrolled"],
        *[["cond", "predicated"]] * 3,
    ]


def test_a_predicated_branch_of_two_maps_is_a_flag_and_a_kernel() -> None:
    for length in (8, 1 << 20):
        x = ArrayType("float32", (length,))

        def run(p: Any, x: Any) -> Any:
            return cond(p > 0, lambda x: x * 2 + 1, np.sin, x, schedule="predicated")

        plan = nodes_planned_for(run, NUMBER, x)
        assert plan.node_counts == {"KernelNode": 2}


def test_nodes_do_not_grow_with_the_number_of_steps() -> None:
    def nodes(n: int) -> int:
        plan = nodes_planned_for(lambda x: fori_loop(0, n, lambda i, c: np.sin(c) + i, x), VECTOR)
        return sum(plan.node_counts.values())

    assert max(map(nodes, (1, 2, 17, 32, 33, 997, 1000, 10_007, 10_000_000))) <= 3 + MOST_NODES


def test_a_known_number_of_steps_is_divided_if_it_can_be() -> None:
    def schedule_of(n: int) -> str:
        plan = plan_of_nodes(lambda x: fori_loop(0, n, lambda i, c: c * 2, x), VECTOR)
        return rows(plan)[0][1]

    assert schedule_of(7) == "unrolled"
    assert schedule_of(1000) == "unrolled x25"
    assert schedule_of(997) == "unrolled x32"


def test_a_long_body_is_not_unrolled() -> None:
    def step(_: Any, c: Any) -> Any:
        return c / (1 + c.max())

    long = ArrayType("float32", (1 << 26,))
    plan = nodes_planned_for(lambda x, n: fori_loop(0, n, step, x), long, NUMBER)
    assert rows(plan)[0][1::2] == ["WHILE node", "its body takes longer"]


def test_a_branch_that_would_cost_much_to_skip_stays_a_node() -> None:
    large = ArrayType("float32", (1 << 26,))
    assert rows(nodes_planned_for(choose, FLAG, large))[0][1:] == [
        "IF/ELSE node",
        "1+1",
        "no gain without a node",
    ]


def test_long_bodies_are_copied_less() -> None:
    def factor(kernels: int) -> int:
        def body(x: Any) -> Any:
            for _ in range(kernels - 1):
                x = np.cumsum(x)
            return x

        plan = plan_of_nodes(lambda x: while_loop(lambda x: x[0] < 9.0, body, x), VECTOR)
        (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
        assert len(loop.body.nodes) <= 32
        schedule = rows(plan)[0][1]
        return int(schedule.removeprefix("unrolled x")) if "x" in schedule else 1

    factors = [factor(kernels) for kernels in (2, 4, 8, 20)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] >= 8
    assert factors[-1] == 1


def product(i: Any, x: Any) -> Any:
    return np.tanh(x @ x)


def test_copies_that_each_call_gives_new_addresses_are_fewer() -> None:
    def factor(captured: bool) -> int:
        def run(x: Any, y: Any) -> Any:
            step = (lambda c: c * y) if captured else (lambda c: c * 2)
            return while_loop(lambda c: c[0] < 9.0, step, x, max_steps=8, on_max_steps="stop")

        return int(rows(plan_of_nodes(run, VECTOR, VECTOR))[0][1].removeprefix("unrolled x"))

    assert 1 < factor(captured=True) < factor(captured=False)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: cond(x[0, 0] > 0, halve, lambda x: x, x), "a loop inside"),
        (lambda x: cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x, x), "a product inside"),
        (lambda x: while_loop(lambda x: x[0, 0] < 9, halve, x), "a loop inside"),
        (
            lambda x: cond(
                x[0, 0] > 0,
                lambda x: cond(x[1, 1] > 0, lambda x: x @ x, lambda x: x, x),
                lambda x: x,
                x,
            ),
            "a branch inside stays a node",
        ),
    ],
)
def test_what_cannot_be_predicated_or_unrolled_is_told(function: Any, why: str) -> None:
    matrix = ArrayType("float64", (64, 64))
    plan = scheduled(stage_of(function, matrix), FORCED["both"])
    assert rows(plan)[0][-1] == why


def test_a_product_is_made_past_the_end_only_where_nothing_sees_it() -> None:
    matrix = ArrayType("float64", (64, 64))

    def kept(x: Any, n: Any) -> Any:
        return fori_loop(0, n, product, x)

    def leaving(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: (c[1] @ c[1], c[1] + 1), (x, x))

    unrolled = scheduled(stage_of(kept, matrix, NUMBER), FORCED["unrolled"])
    assert rows(unrolled)[0][1] == "unrolled x3"
    assert sum(isinstance(node, LibraryNode) for node in walk(unrolled.graph)) == 3
    plan = scheduled(stage_of(leaving, matrix, NUMBER), FORCED["unrolled"])
    assert rows(plan)[0][1::2] == ["WHILE node", "a product leaves its body"]


def test_a_product_of_an_inner_loop_that_has_no_node_may_leave_the_outer_one() -> None:
    def run(x: Any, n: Any) -> Any:
        def outer(i: Any, c: Any) -> Any:
            return fori_loop(0, 2, lambda j, c: (c[1] @ c[1], c[1] + 1), c)

        return fori_loop(0, n, outer, (x, x))

    x = np.arange(4096.0).reshape(64, 64) % 5
    for n in range(5):
        wanted = run(x, n)
        found = on_host(FORCED["unrolled"])(run, x, np.int64(n))
        np.testing.assert_array_equal(found[0], wanted[0])
    bare_inner = scheduled(
        stage_of(run, ArrayType("float64", (64, 64)), NUMBER), FORCED["unrolled"]
    )
    assert [row[1] for row in rows(bare_inner)] == ["WHILE node", "unrolled"]


def test_a_product_that_leaves_is_copied_where_no_step_is_past_the_end() -> None:
    matrix = ArrayType("float64", (64, 64))

    def run(x: Any) -> Any:
        return fori_loop(0, 6, lambda i, c: (c[1] @ c[1], c[1] + 1), (x, x))

    plan = scheduled(stage_of(run, matrix), FORCED["unrolled"])
    assert rows(plan)[0][1] == "unrolled x3"


# -- pins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["host", "cuda"])
def test_a_pinned_schedule_is_used_on_every_device(device: str) -> None:
    def run(p: Any, n: Any, x: Any) -> Any:
        x = cond(p, np.sin, np.cos, x, schedule="predicated")
        x = switch(n, [np.sin, np.cos], x, schedule="conditional")
        x = fori_loop(0, n, lambda i, x: x + i, x, unroll=5)
        x = while_loop(lambda x: x[0] < 3, lambda x: x + 1, x, schedule="conditional")
        x = scan(lambda c, _: (c * 2, None), x, None, 9, schedule="conditional")[0]
        return tracegraph.map(lambda y: y + 1, x, schedule="conditional")

    plan = nodes_planned_for(run, FLAG, NUMBER, VECTOR, device=device)
    assert [(row[0], row[1], row[3]) for row in rows(plan)] == [
        ("cond", "predicated", "asked for"),
        ("switch", "SWITCH node", "asked for"),
        ("fori_loop", "unrolled x5", "asked for"),
        ("while_loop", "WHILE node", "asked for"),
        ("scan", "WHILE node", "asked for"),
        ("map", "WHILE node", "asked for"),
    ]


def test_a_pin_goes_before_what_is_set_for_all() -> None:
    def run(p: Any, x: Any) -> Any:
        x = cond(p, np.sin, np.cos, x, schedule="conditional")
        return cond(p, np.sin, np.cos, x)

    with choices.override(branches="predicated"):
        plan = bare(run, FLAG, VECTOR)
    assert [row[1:2] + row[3:] for row in rows(plan)] == [
        ["IF/ELSE node", "asked for"],
        ["predicated", "set for all"],
    ]


def test_slices_taken_together_and_iterations_unrolled() -> None:
    def run(xs: Any) -> Any:
        return scan(lambda c, x: (c + x, None), 0.0, xs, unroll=2, schedule="unrolled")[0]

    plan = nodes_planned_for(run, ArrayType("float64", (16,)))
    assert rows(plan)[0][1] == "unrolled"
    assert len(plan.graph.nodes) < 32


def pinned_product(p: Any, x: Any) -> Any:
    return cond(p, lambda x: x @ x, lambda x: x, x, schedule="predicated")


def pinned_nest(p: Any, x: Any) -> Any:
    return while_loop(lambda x: x[0, 0] < 9, halve, x, schedule="unrolled")


def pinned_remainder(p: Any, x: Any) -> Any:
    return fori_loop(0, 7, lambda i, c: (c[1] @ c[1], c[1] + 1), (x, x), unroll=3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (pinned_product, "cond: it cannot be predicated: a product inside"),
        (pinned_nest, "while_loop: it cannot be unrolled: a loop inside"),
        (pinned_remainder, "fori_loop: it cannot be unrolled: a product leaves its body"),
    ],
)
def test_a_pin_that_is_impossible_is_an_error_with_the_line(function: Any, message: str) -> None:
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(errors.UnschedulableError) as raised:
        nodes_planned_for(function, FLAG, ArrayType("float64", (64, 64)))
    assert str(raised.value).startswith(message)
    assert f"test_schedule.py:{line}, in {function.__name__}" in str(raised.value)


@pytest.mark.parametrize("device", ["host", "cuda"])
def test_a_pinned_branch_of_empty_arrays_has_nothing_to_run(device: str) -> None:
    def either(p: Any, x: Any) -> Any:
        return cond(p, lambda x: x * 2, lambda x: x - 1, x, schedule="predicated")

    def loop(p: Any, x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, x: either(p, x), x, unroll=2)

    empty = ArrayType("float64", (0,))
    assert nodes_planned_for(either, FLAG, empty, device=device).node_counts.total() == 0
    unrolled = nodes_planned_for(loop, FLAG, empty, NUMBER, device=device)
    assert [row[:2] for row in rows(unrolled)] == [["fori_loop", "unrolled x2"]]
    result = tracegraph.jit(loop, device="host")(True, np.ones(0), 3)
    assert result.shape == (0,)


def test_users_and_the_environment_name_the_schedules_that_there_are() -> None:
    for field, schedules in (("loops", LOOP_SCHEDULES), ("branches", BRANCH_SCHEDULES)):
        named = {value for name, value in choices.WORDS.values() if name == field}
        assert named == {each.name for each in schedules}


def test_choices_are_set_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Choices("predicated", "unrolled", 4, products="nests", operands="in_place")
    name, _, words = chosen.setting.partition("=")
    monkeypatch.setenv(name, words.strip('"'))
    assert choices.declared() == chosen


def test_schedules_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choices.VARIABLE, "predicated-branches, unrolled-loops=4")
    assert choices.declared() == Choices("predicated", "unrolled", 4)
    plan = bare(lambda p, n, x: fori_loop(0, n, lambda i, x: choose(p, x), x), FLAG, NUMBER, VECTOR)
    assert [row[1] for row in rows(plan)] == ["unrolled x4", "predicated"]
    with choices.override(loops="conditional"):
        assert choices.declared() == Choices(None, "conditional", None)
    monkeypatch.setenv(choices.VARIABLE, "unrolled-loops,conditional-branches,conditional-loops")
    assert choices.declared() == Choices("conditional", "conditional", None)
    for form in ("library", "own", "small"):
        word = f"{form}-factorizations"
        monkeypatch.setenv(choices.VARIABLE, word)
        assert choices.declared() == Choices(factorizations=form)
    for word, form in (("library-products", "library"), ("nest-products", "nests")):
        monkeypatch.setenv(choices.VARIABLE, word)
        assert choices.declared() == Choices(products=form)
    for wrong in ("unrolled-loops=0", "predicated", "unrolled-loops=x"):
        monkeypatch.setenv(choices.VARIABLE, wrong)
        with pytest.raises(ValueError, match=rf"TRACEGRAPH_SCHEDULES has '{wrong}'; it takes"):
            choices.declared()


# -- on devices --------------------------------------------------------------------------------


def test_a_device_needs_less_where_branches_are_predicated() -> None:
    assert "conditional_nodes" in needed_features(bare(choose, FLAG, VECTOR))
    assert needed_features(nodes_planned_for(choose, FLAG, VECTOR)) == ("programmatic_edges",)


def test_the_host_may_drive_what_is_unrolled() -> None:
    plan = scheduled(stage_of(halve, VECTOR), Choices(loops="unrolled", unroll=2))
    driven = legalize(plan, Features(conditional_nodes=False))
    assert [row[1] for row in rows(driven)] == ["host-driven, unrolled x2"]


def test_legalization_keeps_predicates() -> None:
    def run(p: Any, n: Any, x: Any) -> Any:
        x = fori_loop(0, n, lambda i, y: choose(p, y) + x, x)
        return cond(p, lambda x: x @ x, lambda x: x + 1, x)

    plan = nodes_planned_for(run, FLAG, NUMBER, ArrayType("float64", (64, 64)))
    fitted = legalize(plan, Features(body_updates=False))

    def guards(plan: Plan) -> list[int]:
        kernels = [node.kernel for node in walk(plan.graph) if isinstance(node, KernelNode)]
        return [len(nest.predicates) for kernel in kernels for nest in kernel.nests]

    assert sum(guards(plan)) > 0
    assert sorted(filter(None, guards(fitted))) == sorted(filter(None, guards(plan)))
    assert [row[:3] for row in rows(fitted)][:2] == [row[:3] for row in rows(plan)][:2]


def test_kernels_get_the_addresses_of_their_flags_and_new_ones_of_arguments() -> None:
    driver = RecordingDriver()
    executable = RecordingBackend(driver).compile(nodes_planned_for(choose, FLAG, VECTOR))
    (graph,) = driver.graphs
    first, either = graph.nodes[1:]
    assert (1, 2) in set(graph.edges)
    assert first.values[-1] in either.values
    x = executable([True, np.ones(8)])
    moved = executable([True, *x])
    assert {x[0].pointer, moved[0].pointer} <= set(either.values)


def test_a_loop_without_a_node_is_no_loop_to_the_device() -> None:
    driver = RecordingDriver()
    RecordingBackend(driver).compile(nodes_planned_for(power, VECTOR))
    assert driver.count("create_condition") == 0
    assert all(node.kind == "kernel" for node in driver.graphs[0].nodes)
