"""A library call and a node kind from outside: those of docs/extending.md, on every executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.libraries.library_calls import CAPTURED
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.reports.explain import explain
from lowering.plan.reports.graphviz import dot
from lowering.planning.rules import RULES
from lowering.testing.recording_backend import RecordingBackend
from tests.helpers.compiled import plan_of
from tests.programs.extension import (
    MATRIX,
    PROGRAMS,
    blanked_in_a_loop,
    extended,
    in_a_branch,
    in_a_loop,
    once,
)


@pytest.fixture
def extension() -> Iterator[Any]:
    with extended() as names:
        yield names


@PROGRAMS
def test_it_runs_on_the_host(extension: Any, program: Callable[..., Any], x: Any) -> None:
    fn = program(extension)
    result = tracegraph.jit(fn, device="host")(x)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(fn(tracegraph.asarray(x))))


@PROGRAMS
def test_it_is_emitted_into_a_graph(extension: Any, program: Callable[..., Any], x: Any) -> None:
    backend = RecordingBackend()
    plan = plan_of(program(extension), x)
    executable = backend.compile(plan)
    (graph,) = backend.device.driver.graphs
    kinds = [node.kind for node in graph.walk()]
    calls = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    fills = [node for node in walk(plan.graph) if node.kind == "fill"]
    assert kinds.count("library") == len(calls)
    assert len(calls) + len(fills) > 0
    names = [node.name for node in graph.walk()]
    assert sum("fill_bytes" in name for name in names) == len(fills)
    reported = {node.name for node in executable.slots.nodes}
    assert {node.name for node in calls} <= reported


@PROGRAMS
@pytest.mark.parametrize("says", [True, False])
def test_its_nodes_are_counted(
    extension: Any, program: Callable[..., Any], x: Any, says: bool
) -> None:
    if not says:
        del extension.FillNode.graph_nodes
    backend = RecordingBackend()
    plan = plan_of(program(extension), x)
    unknown = [n for n in walk(plan.graph) if plan.graph_nodes(n) is None]
    assert ("at least" in explain(plan)) == bool(unknown)
    later = backend.compile(plan).plan
    (graph,) = backend.device.driver.graphs
    size = sum(1 for _ in graph.walk())
    assert explain(later).startswith(f"{plan.name}: {size} nodes, ")
    assert {later.graph_nodes(node) for node in unknown} <= {("kernel",)}


@PROGRAMS
def test_every_report_names_it(extension: Any, program: Callable[..., Any], x: Any) -> None:
    plan = plan_of(program(extension), x, device="host")
    assert sum(plan.node_counts.values()) == sum(1 for _ in walk(plan.graph))
    new = [node for node in walk(plan.graph) if node.kind in ("library", "fill")]
    for node in new:
        assert node.text in str(plan)
        assert node.title in dot(plan)
    assert explain(plan)


def test_a_call_counts_and_is_copied_as_products_are(extension: Any) -> None:
    plan = plan_of(in_a_loop(extension), MATRIX)
    calls = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    assert len(calls) == 5  # unrolled: the call runs once in each step
    assert {type(node.call) for node in calls} == {extension.Gram}
    assert calls[0].weight.operations == 2 * 4 * 4 * 3
    text = explain(plan_of(in_a_branch(extension), np.eye(3)))
    assert "a Gram matrix inside" in text


def test_a_kind_that_stays_keeps_its_loop(extension: Any) -> None:
    assert "a node inside" in explain(plan_of(blanked_in_a_loop(extension), MATRIX))


def test_what_no_table_has_is_named(extension: Any) -> None:
    plan = plan_of(once(extension), MATRIX)
    del CAPTURED[extension.Gram]
    with pytest.raises(ValueError, match=r"a Gram matrix at extension\.py:\d+ cannot be capt"):
        RecordingBackend().compile(plan)
    del RULES["gram"]
    with pytest.raises(NotImplementedError, match="no planning rule for the op 'gram'"):
        plan_of(once(extension), MATRIX)
