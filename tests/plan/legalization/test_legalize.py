"""Plans for devices that lack something give the same results by other nodes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import tracegraph
from lowering.codegen import TableEntry, unit_source
from lowering.host.executable import HostExecutable
from lowering.legalization.legalize import legalize, needed_features
from lowering.legalization.pointer_table import bound_in_bodies, with_pointer_table
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Graph, KernelNode, MemcpyNode, walk
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.features import Features, declared, override, probed
from tests.corpus import CASES
from tests.helpers.compiled import host_plan_of
from tests.helpers.forced import BRANCHING
from tests.helpers.running import assert_case_agrees, lowered
from tracegraph import tree
from tracegraph.ir.types import ArrayType
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs

NO_UPDATES = Features(body_updates=False)


def fitted(features: Features, **options: Any) -> Callable[..., Any]:
    """Runs the Plan for these features on the host, twice."""

    def run(function: Any, *arguments: Any) -> Any:
        stage = lowered(function, *arguments)
        plan = legalize(stage.plan, features)
        assert_fits(plan, features)
        executable = HostExecutable(plan, **options)
        leaves = executable(tree.leaves(arguments))
        again = executable(tree.leaves(arguments))
        assert [x.tobytes() for x in leaves] == [x.tobytes() for x in again]
        return tree.unflatten(stage.traced.out_structure, leaves)

    return run


def assert_fits(plan: Plan, features: Features) -> None:
    for feature in needed_features(plan):
        assert getattr(features, feature), f"the plan still needs {feature}"


@pytest.mark.parametrize("name", BRANCHING)
def test_corpus_programs_give_the_same_results(name: str) -> None:
    run = fitted(NO_UPDATES, poison=True, order=Random(len(name)))
    assert_case_agrees(CASES[name], run)


@given(program=programs())
def test_random_programs_give_the_same_results(program: RandomProgram) -> None:
    run = fitted(NO_UPDATES, poison=True, order=Random(0))
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways={"fitted": run})


def choose(i: Any, x: Any) -> Any:
    y = tracegraph.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x)
    return tracegraph.cond(y.sum() > 0, lambda y: y * x, lambda y: y - x, y)


def test_bodies_find_arguments_by_a_table_where_they_take_no_updates() -> None:
    def loop(x: Any, y: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, c: c + y * x.sum(), x) + y

    plan = host_plan_of(loop, np.ones(40), np.ones(40), 3)
    indirect = bound_in_bodies(plan)
    assert {b.space for b in indirect} >= {"input"}
    rewritten = legalize(plan, Features(body_updates=False))
    assert rewritten.indirect == indirect
    assert "body_updates" not in needed_features(rewritten)
    assert f"pointer table in bodies: {', '.join(map(str, indirect))}" in str(rewritten)
    unit = unit_source(rewritten)
    inside = {n for node in rewritten.graph.nodes for b in node.bodies for n in walk(b)}
    for node, code in unit.kernels.items():
        direct = {p for p in code.parameters if isinstance(p, Buffer)} & set(indirect)
        entries = {p.buffer for p in code.parameters if isinstance(p, TableEntry)}
        assert entries <= set(indirect)
        assert not (direct if node in inside else entries)
        assert direct | entries >= node.accessed_buffers & set(indirect)


def test_copies_in_bodies_are_kernels_that_find_addresses_by_the_table() -> None:
    x, y = (Buffer("input", number, ArrayType("float32", (2, 3))) for number in range(2))
    out = Buffer("output", 0, x.type)
    inner = WhileNode(1, Graph((MemcpyNode(out, y),), frozenset()))
    order = frozenset({(0, 1)})
    outer = WhileNode(0, Graph((MemcpyNode(out, x), inner), order))
    graph = Graph((MemcpyNode(out, x), outer), order)
    plan = Plan("copies", graph, (x, y), (out,), (), {}, 0, 2)
    rewritten = with_pointer_table(plan)
    assert rewritten.indirect == (x, y, out)
    kinds = [type(node) for node in walk(rewritten.graph)]
    assert kinds == [MemcpyNode, WhileNode, KernelNode, WhileNode, KernelNode]
    copies = [node for node in walk(rewritten.graph) if isinstance(node, KernelNode)]
    assert [copy.accessed_buffers for copy in copies] == [{out, x}, {out, y}]
    assert rewritten.graph.edges == plan.graph.edges


def test_a_plan_that_needs_nothing_is_not_rewritten() -> None:
    plan = host_plan_of(lambda x: np.sin(x), np.ones(3))
    assert needed_features(plan) == ("programmatic_edges",)
    nothing = Features(
        conditional_nodes=True,
        body_updates=False,
        programmatic_edges=False,
    )
    assert legalize(plan, nothing) is plan


def test_without_conditional_nodes_the_plan_is_for_the_host_to_drive() -> None:
    plan = host_plan_of(choose, 1, np.ones(3))
    driven = legalize(plan, Features(conditional_nodes=False))
    assert driven.node_counts == plan.node_counts
    assert explain(driven).count("host-driven") == 2


def test_the_table_of_control_flow_says_which_way_was_taken() -> None:
    plan = host_plan_of(choose, 1, np.ones(3))
    assert "SWITCH node" in explain(plan)
    indirect = explain(legalize(plan, Features(body_updates=False)))
    assert indirect.count("pointer table") == 2
    assert indirect.count("SWITCH node") == 1


def test_what_a_plan_needs() -> None:
    assert "body_updates" in needed_features(host_plan_of(choose, 1, np.ones(3)))
    loop = host_plan_of(lambda x: tracegraph.while_loop(lambda c: c < 9, lambda c: c + 1, x), 1)
    assert needed_features(loop)[0] == "conditional_nodes"
    assert "memory_nodes" not in needed_features(loop)
    assert any(node.bodies for node in loop.graph.nodes)


def test_features_are_asked_of_the_device_only_if_wanted_and_not_declared() -> None:
    asked = []

    def supports(feature: str) -> bool:
        asked.append(feature)
        return False

    with override(memory_nodes=True):
        found = probed(("conditional_nodes", "body_updates", "memory_nodes"), supports)
    assert asked == ["conditional_nodes"]
    assert not found.conditional_nodes
    with override(conditional_nodes=True, memory_nodes=True):
        found = probed(("conditional_nodes", "body_updates", "memory_nodes"), supports)
    assert asked == ["conditional_nodes", "body_updates"]
    assert found == Features(body_updates=False)


def test_features_declared_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_FEATURES", "no-memory-nodes, no-body-updates")
    assert declared() == {"memory_nodes": False, "body_updates": False}
    with override(memory_nodes=True):
        assert declared() == {"memory_nodes": True, "body_updates": False}
    monkeypatch.setenv("TRACEGRAPH_FEATURES", "no-memory")
    with pytest.raises(ValueError, match=r"'no-memory'.*no-body-updates.*no-memory-nodes"):
        declared()


def test_an_unknown_feature_cannot_be_overridden() -> None:
    with pytest.raises(TypeError, match=r"no feature loops; .*memory_nodes"), override(loops=False):
        pass
