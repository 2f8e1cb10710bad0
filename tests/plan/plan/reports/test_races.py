"""Races: the check that the edges of a Plan order what must not run side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.lower import lower
from lowering.plan.conditional_nodes import IfElseNode, WhileNode
from lowering.plan.event_node import EventNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, MapNest, Predicate, PrintedArray, PrintNest, Require
from lowering.plan.nodes import Graph, HostNode, KernelNode
from lowering.plan.plan import Plan
from lowering.plan.reports.races import races
from tests.corpus import CASES, beside
from tests.helpers.forced import FORCED, scheduled
from tests.helpers.running import traced
from tests.programs import hand_made_plans
from tests.programs.hand_made_plans import LINE, SCALAR, VECTOR, condition_kernel, copy_kernel, plan
from tracegraph.ir.callbacks import HostCall
from tracegraph.ir.events import EventUse
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.types import ArrayType
from tracegraph.testing import assert_no_races
from tracegraph.testing.ways import LOWERINGS

X, Y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
OTHER = Buffer("output", 1, VECTOR)
A, B, C = (Buffer("scratch", number, VECTOR) for number in range(3))
N = Buffer("scratch", 3, SCALAR)
FLAG = Buffer("scratch", 4, ArrayType("bool", ()))


def made(nodes: Any, edges: Any = (), scratch: Any = (A, B, C, N, FLAG)) -> Plan:
    return plan(nodes, edges, [X], [Y, OTHER], scratch, conditions=2)


def shared(found: Plan) -> list[str]:
    return [race.shared for race in races(found)]


@pytest.mark.parametrize("make", hand_made_plans.ALL)
def test_plans_with_their_edges_do_not_race(make: Any) -> None:
    assert races(make()) == ()


@pytest.mark.parametrize(
    "nodes",
    [
        [copy_kernel(A, X), copy_kernel(Y, A)],  # read after write
        [copy_kernel(Y, A), copy_kernel(A, X)],  # write after read
        [copy_kernel(A, X), copy_kernel(A, B)],  # write after write
    ],
)
def test_a_missing_edge_is_a_race(nodes: Any) -> None:
    assert shared(made(nodes)) == ["scratch[0]"]
    assert shared(made(nodes, {(0, 1)})) == []
    with pytest.raises(AssertionError, match=r"no edge orders kernel copy before kernel copy, wh"):
        assert_no_races(made(nodes))


def test_a_path_orders_and_reads_need_no_order() -> None:
    nodes = [copy_kernel(A, X), copy_kernel(B, A), copy_kernel(C, A), copy_kernel(A, B)]
    assert shared(made(nodes, {(0, 1), (0, 2), (2, 3), (1, 3)})) == []
    assert shared(made(nodes, {(0, 1), (0, 2), (1, 3)})) == ["scratch[0]"]
    assert shared(made([copy_kernel(Y, X), copy_kernel(OTHER, X)])) == []


def test_bytes_of_the_arena_are_what_matters() -> None:
    nodes = [copy_kernel(A, X), copy_kernel(Y, A), copy_kernel(B, X), copy_kernel(OTHER, B)]
    found = made(nodes, {(0, 1), (2, 3)})
    assert shared(found) == []
    half = VECTOR.nbytes // 2
    for offset in (0, half, VECTOR.nbytes - 1):
        assert races(replace(found, offsets={A: 0, B: offset}))
    assert not races(replace(found, offsets={A: 0, B: VECTOR.nbytes}))
    ordered = replace(found, graph=Graph(tuple(nodes), frozenset({(0, 1), (1, 2), (2, 3)})))
    assert not races(replace(ordered, offsets={A: 0, B: half}))


def test_a_body_counts_as_its_node_and_is_checked_itself() -> None:
    loop = WhileNode(0, Graph((copy_kernel(A, B), condition_kernel(0, N)), frozenset()), LINE)
    start = condition_kernel(0, N)
    assert shared(made([start, loop])) == ["condition 0, scratch[3]"]
    assert shared(made([start, loop], {(0, 1)})) == []
    assert shared(made([start, loop, copy_kernel(Y, A)], {(0, 1)})) == ["scratch[0]"]
    branch = IfElseNode(
        0, Graph((copy_kernel(A, X), copy_kernel(Y, A)), frozenset()), Graph((), frozenset()), LINE
    )
    assert shared(made([start, branch], {(0, 1)})) == ["scratch[0]"]


def test_conditions_are_shared() -> None:
    branch = IfElseNode(0, Graph((), frozenset()), Graph((), frozenset()), LINE)
    assert shared(made([condition_kernel(0, N), branch])) == ["condition 0"]
    assert shared(made([condition_kernel(0, N), branch], {(0, 1)})) == []


def one_print() -> KernelNode:
    nest = PrintNest((), 0, (PrintedArray((), Load.make(N, (), None)),))
    return KernelNode(Kernel("show", (nest,)), LINE)


def one_check() -> KernelNode:
    nest = MapNest((), (), (Require(0, Load.make(FLAG, (), None)),))
    return KernelNode(Kernel("check", (nest,)), LINE)


def a_call() -> HostNode:
    return HostNode(HostCall("work", 1 << 40, 0, None, None, LINE[0]), LINE)


def an_event() -> EventNode:
    return EventNode(EventUse("wait", 1, None), (), LINE)


@pytest.mark.parametrize("second", [one_print, one_check])
@pytest.mark.parametrize("first", [one_print, one_check])
def test_the_host_sees_effects_in_order(first: Any, second: Any) -> None:
    nodes = [first(), second()]
    assert shared(made(nodes)) == ["the order of effects"]
    assert shared(made(nodes, {(0, 1)})) == []


@pytest.mark.parametrize("barrier", [a_call, an_event])
def test_a_barrier_is_ordered_with_everything(barrier: Any) -> None:
    nodes = [copy_kernel(Y, X), barrier(), copy_kernel(OTHER, X)]
    assert shared(made(nodes)) == ["what a barrier orders"] * 2
    assert shared(made(nodes, {(0, 1)})) == ["what a barrier orders"]
    assert shared(made(nodes, {(0, 2)})) == ["what a barrier orders"] * 2
    assert shared(made(nodes, {(0, 1), (1, 2)})) == []


def test_the_nests_of_one_kernel_run_side_by_side() -> None:
    (one,), (other,) = copy_kernel(A, X).kernel.nests, copy_kernel(Y, A).kernel.nests
    both = KernelNode(Kernel("both", (one, other)), LINE)
    (race,) = map(str, races(made([both])))
    assert race == "kernel both writes scratch[0], which another of its nests accesses"
    never = [
        replace(nest, predicates=(Predicate(FLAG, value),))
        for nest, value in ((one, True), (other, False))
    ]
    assert shared(made([KernelNode(Kernel("both", tuple(never)), LINE)])) == []


def test_a_nest_reads_no_other_buffer_where_it_writes() -> None:
    found = made([copy_kernel(A, B), copy_kernel(Y, A)], {(0, 1)})
    assert not races(found)
    (race,) = {str(race) for race in races(replace(found, offsets={A: 0, B: 256}))}
    assert race == "kernel copy writes bytes of scratch[0] that are also in scratch[1]"


def test_a_cuda_graph_loads_and_allocates_before_all_that_needs_it() -> None:
    found = replace(
        made([copy_kernel(A, X), copy_kernel(Y, A)], {(0, 1)}), as_graph=True, per_launch=True
    )
    assert not races(found)
    whole = found.launch_graph
    for missing in whole.edges:
        broken = replace(found)
        object.__setattr__(broken, "_launch_graph", Graph(whole.nodes, whole.edges - {missing}))
        assert races(broken), missing


# -- what planning makes ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f.__name__ for f in beside.CONSTRUCTS])
def test_what_is_beside_a_loop_or_a_branch_does_not_race(name: str) -> None:
    stage = traced(CASES[name].function, *CASES[name].arguments)
    plans = [scheduled(stage, chosen) for chosen in FORCED.values()]
    plans += [lower(stage.optimized, device) for device in ("host", "cuda")]
    for each in plans:
        assert races(each) == ()


def test_flags_of_an_unrolled_loop_do_not_race_with_what_runs_beside_it() -> None:
    """They live in the loop's body, though no stage of the body names them."""

    def f(p: Any, s: Any) -> Any:
        c = np.cumsum(np.cumsum(np.sort(p)))
        y = tracegraph.while_loop(lambda v: v.max() < 1000, lambda v: np.sort(v) * 2 + 1, s)
        return y, np.cumsum(np.sort(c - c.max()))[::-1] * 2

    stage = traced(f, np.ones(300), np.ones(5000))
    found = scheduled(stage, LOWERINGS["unrolled"].chosen)
    (loop,) = [node for node in found.graph.nodes if isinstance(node, WhileNode)]
    stored = {b for node in loop.body.nodes for b in node.writes}
    names = {str(b) for b in stored}
    assert any(b.type == FLAG.type for b in stored), names
    assert races(found) == ()


def test_a_plan_is_asked_for() -> None:
    with pytest.raises(TypeError, match=r"assert_no_races takes what jit\(f\).lower"):
        assert_no_races(np.sin)


def copied(x: Any) -> Any:
    return np.cumsum(x) * 2


def test_compiled_functions_are_taken() -> None:
    lowered = tracegraph.jit(copied, device="host").lower(np.ones(4))
    assert_no_races(lowered)
    assert_no_races(lowered.compile())


@pytest.mark.parametrize("name", [*list(CASES)[::8], *(f.__name__ for f in beside.CONSTRUCTS)])
def test_without_any_edge_of_a_plan_nodes_race(name: str) -> None:
    stage = traced(CASES[name].function, *CASES[name].arguments)
    for way in ("conditional", "predicated"):
        found = scheduled(stage, LOWERINGS[way].chosen)
        edges = found.graph.edges
        for missing in edges:
            assert races(replace(found, graph=Graph(found.graph.nodes, edges - {missing})))
