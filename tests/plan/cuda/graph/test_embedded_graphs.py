"""Somebody's graphs in ours: nodes, edges, owners, refusals and failures."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.embedded_graph import EmbeddedGraphNode
from lowering.plan.nodes import walk
from lowering.plan.plan import Plan
from lowering.testing.call_log import InjectedError
from lowering.testing.recorded_objects import RecordedGraph, RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign
from tests.helpers.compiled import plan_of
from tracegraph import ArrayType, errors

V = ArrayType("float64", (1000,))
X = np.arange(1000.0)
GRAPH, READS, WRITES = 7, 1 << 40, 1 << 41


class Definition:
    """Somebody's graph."""

    handle = GRAPH


def embedded(x: Any, **options: Any) -> Any:
    given = {"at": Foreign(READS), "out": Foreign(WRITES), **options}
    return tracegraph.embed(given.pop("graph", GRAPH), reads=x, **given)


def effect(x: Any) -> None:
    tracegraph.embed(GRAPH, reads=x, at=Foreign(READS))


def emitted(plan: Plan, driver: RecordingDriver | None = None) -> RecordedGraph:
    backend = RecordingBackend(driver)
    backend.compile(plan)
    return backend.device.driver.graphs[0]


def children(graph: RecordedGraph) -> list[RecordedNode]:
    return [node for node in graph.walk() if node.kind == "graph"]


def copies(graph: RecordedGraph) -> list[RecordedNode]:
    return [node for node in graph.walk() if node.kind == "copy"]


def test_the_graph_runs_between_copies_to_its_memory_and_from_it() -> None:
    graph = emitted(plan_of(lambda x: embedded(x + 1) * 2, X))
    (child,) = children(graph)
    to_it, from_it = copies(graph)
    assert to_it.values[::2] == [READS, V.nbytes]
    assert from_it.values[1:] == [WRITES, V.nbytes]
    assert child.values == [GRAPH]
    assert child.dependencies == (to_it,)
    assert from_it.dependencies == (child,)
    before, *_, last = (node for node in graph.nodes if node.kind == "kernel")
    assert to_it.values[1] in before.added
    assert before in to_it.behind()
    assert from_it.values[0] in last.added
    assert from_it in last.behind()


def test_arguments_are_copied_to_scratch_and_results_from_it() -> None:
    """Calls pass other addresses, which the copies cannot follow."""
    graph = emitted(plan_of(embedded, X))
    to_it, from_it = copies(graph)
    assert to_it.values[1]
    assert from_it.values[0]


def test_two_graphs_run_one_after_the_other() -> None:
    graph = emitted(plan_of(lambda x: (embedded(x), embedded(x + 1)), X))
    first, second = children(graph)
    ends = [node for node in copies(graph) if first in node.dependencies]
    assert ends

    def before(node: RecordedNode) -> set[RecordedNode]:
        found = set(node.dependencies)
        return found.union(*map(before, node.dependencies))

    assert set(ends) <= before(second)


def test_a_graph_without_results_is_kept_in_the_order_of_effects() -> None:
    def f(x: Any) -> Any:
        effect(x)
        tracegraph.debug.print("{}", x[0])
        effect(x + 1)
        return x

    plan = plan_of(f, X)
    nodes = plan.graph.nodes
    positions = [i for i, node in enumerate(nodes) if isinstance(node, EmbeddedGraphNode)]
    assert len(positions) == 2
    (between,) = [i for i, node in enumerate(nodes) if "print" in str(node)]
    assert (positions[0], between) in plan.graph.edges
    assert (between, positions[1]) in plan.graph.edges
    assert len(children(emitted(plan))) == 2


def test_a_result_that_is_not_used_leaves_the_graph_out() -> None:
    plan = plan_of(lambda x: (embedded(x), x + 1)[1], X)
    assert not any(isinstance(node, EmbeddedGraphNode) for node in walk(plan.graph))


@pytest.mark.parametrize("schedule", ["conditional", "unrolled"])
def test_it_stays_in_its_loop(schedule: Any) -> None:
    def f(x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, y: embedded(y), x, schedule=schedule)

    graph = emitted(plan_of(f, X))
    top = [node for node in graph.nodes if node.kind == "graph"]
    assert len(top) == (0 if schedule == "conditional" else 3)
    assert len(children(graph)) == (1 if schedule == "conditional" else 3)


def test_loops_with_it_do_not_become_one_kernel() -> None:
    def f(x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, y: embedded(y), x, schedule="one_kernel")

    with pytest.raises(errors.UnschedulableError, match="an embedded graph inside"):
        plan_of(f, X)


@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}])
def test_owners_live_as_long_as_our_graph(options: dict[str, Any]) -> None:
    given = {"graph": Definition(), "at": Foreign(READS), "out": Foreign(WRITES)}
    plan = plan_of(lambda x: embedded(x, **given), X, **options)
    backend = RecordingBackend()
    executable = backend.compile(plan)
    owners = [weakref.ref(each) for each in given.values()]
    text = str(executable.slots)
    assert "graph, its input 0 f64[1000], its output 0 f64[1000]" in text
    given.clear()
    del plan
    gc.collect()
    assert all(owner() is not None for owner in owners)
    executable.close()
    backend.device.driver.graphs.clear()
    del executable, backend
    tracegraph.reset()
    gc.collect()
    assert all(owner() is None for owner in owners)


REFUSED = {
    "conditional": (("kernel", "conditional"), False, "conditional, which CUDA allows in no child"),
    "allocation": (
        ("mem_alloc", "mem_free"),
        False,
        "mem_alloc, mem_free, which CUDA allows in no",
    ),
    "host in a loop": (("host",), True, "host, which CUDA allows in no loop or branch: embed it"),
    "event in a loop": (("graph", "event_record"), True, "event_record, which CUDA allows in no"),
}


@pytest.mark.parametrize(("kinds", "loop", "match"), REFUSED.values(), ids=REFUSED)
def test_what_no_child_graph_may_hold_is_refused(
    kinds: tuple[str, ...], loop: bool, match: str
) -> None:
    def f(x: Any) -> Any:
        if not loop:
            return embedded(x)
        return tracegraph.fori_loop(0, 3, lambda i, y: embedded(y), x, schedule="conditional")

    driver = RecordingDriver()
    driver.foreign_graphs[GRAPH] = kinds
    plan = plan_of(f, X)
    with pytest.raises(errors.CapturedCallError, match=match) as caught:
        emitted(plan, driver)
    assert "embedded graph at" in str(caught.value)
    assert "test_embedded_graphs.py" in str(caught.value)
    driver.foreign_graphs[GRAPH] = ("kernel",)
    assert children(emitted(plan, driver)) or driver.graphs


def test_at_the_top_host_nodes_are_allowed() -> None:
    driver = RecordingDriver()
    driver.foreign_graphs[GRAPH] = ("kernel", "host", "event_record")
    assert children(emitted(plan_of(embedded, X), driver))


def test_a_type_is_no_memory_on_a_device() -> None:
    for options in ({"at": V}, {"out": V}):
        with pytest.raises(errors.CapturedCallError, match="only the type of its memory is known"):
            emitted(plan_of(lambda x, o=options: embedded(x, **o), X))


def test_without_conditional_nodes_the_host_runs_it_between_parts() -> None:
    def f(x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, y: embedded(y), x, schedule="conditional")

    backend = RecordingBackend(lacks=("conditional_nodes",))
    backend.compile(plan_of(f, X))
    graphs = backend.device.driver.graphs
    assert sum(len(children(graph)) for graph in graphs) == 1


def test_every_failure_drops_the_graph_and_its_owners() -> None:
    plan = plan_of(lambda x: embedded(x) + 1, X)
    reference = RecordingBackend()
    reference.compile(plan)
    for number in range(1, len(reference.device.driver.calls) + 1):
        driver = RecordingDriver(fail_at=number)
        with pytest.raises((InjectedError, errors.CapturedCallError), match="fails as asked"):
            RecordingBackend(driver).compile(plan)
        assert not driver.live_executables


def test_an_exported_graph_owns_it_too() -> None:
    given = {"graph": Definition()}
    plan = plan_of(lambda x: embedded(x, **given), X)
    backend = RecordingBackend()
    executable = backend.compile(plan)
    exported = executable.export_graph(
        [backend.device.pool.buffer(b.type.strong()) for b in plan.inputs]
    )
    (child,) = children(exported.definition)
    assert child.values == [GRAPH]
    kept = weakref.ref(given.pop("graph"))
    del plan, executable, backend
    gc.collect()
    assert kept() is not None
