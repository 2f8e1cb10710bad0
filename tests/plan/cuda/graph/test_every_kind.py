"""The program with every kind of node has them, at the top and in bodies, and computes its values.

`tests/gpu/graph/test_gpu_every_kind.py` launches it often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import LibraryNode, Node, launched
from lowering.plan.plan import Plan
from lowering.testing.recorded_objects import RecordedGraph
from lowering.testing.recording_backend import RecordingBackend
from tests.cases.custom_kernels import saxpy
from tests.fakes.foreign_arrays import Foreign
from tests.programs.every_kind import (
    CALLS,
    KINDS_IN_BODIES,
    KINDS_ON_TOP,
    LIBRARIES,
    POSTS,
    PRINTS,
    QUESTIONS,
    VECTOR,
    Outside,
    arguments,
    program_of,
)


def plan_of(**options: Any) -> Plan:
    at, out = (Foreign(address, shape=VECTOR.shape) for address in (1 << 40, 1 << 41))
    outside = Outside(graph=7, at=at, out=out)
    jitted = tracegraph.jit(program_of(outside), device="cuda", **options)
    plan: Plan = jitted.lower(*arguments(0)).plan
    return plan


def test_no_kind_of_node_is_missing() -> None:
    """A class of nodes that is new is to be a line of the program. Drivers with updates of nodes in
    bodies need no table.
    """
    found = {node.kind for node in plan_of(scratch="per_launch").launch_graph.nodes}
    assert {kind.kind for kind in _kinds_of(Node) if hasattr(kind, "kind")} == found | {"table"}


def _kinds_of(base: type[Node]) -> Iterator[type[Node]]:
    for each in base.__subclasses__():
        if each.__module__.startswith("lowering."):
            yield each
            yield from _kinds_of(each)


def test_a_plan_has_every_kind_of_node() -> None:
    plan = plan_of()
    top = plan.graph.nodes
    assert {node.kind for node in plan.launch_graph.nodes} == KINDS_ON_TOP | {"load", "pointers"}
    assert {node.kind for node in top} == KINDS_ON_TOP
    inside = [node for node in launched(plan.graph) if node not in top]
    assert {node.kind for node in inside} >= KINDS_IN_BODIES
    for nodes in (top, inside):
        calls = [node.text for node in nodes if isinstance(node, LibraryNode)]
        found = {name for name in LIBRARIES if any(text.startswith(f"{name} ") for text in calls)}
        assert found == LIBRARIES - ({"fft"} if nodes is top else {"rfft"})


@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}])
def test_its_graph_has_them_too(options: dict[str, Any]) -> None:
    backend = RecordingBackend()
    executable = backend.compile(plan_of(**options))
    graph: RecordedGraph = backend.device.driver.graphs[0]
    kinds = {node.kind for node in graph.nodes} - {"memory"}
    are_kernels = {"persistent", "sort", "selection", "custom kernel"}
    assert kinds == KINDS_ON_TOP - are_kernels
    names = {node.name.split()[0] for node in graph.nodes if node.kind == "memory"}
    assert names == ({"allocate", "free"} if options else set())
    del executable


def test_values_and_counts_on_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    for k in range(3):
        outside = Outside()
        expected = program_of(outside)(*arguments(k))
        found = tracegraph.jit(program_of(outside), device="host")(*arguments(k))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12)
        assert (outside.calls, outside.questions) == (2 * CALLS, 2 * QUESTIONS)
        assert outside.semaphore.value == 2 * POSTS
        assert capsys.readouterr().out.count("\n") == 2 * PRINTS


def assert_calls_are_barriers(plan: Plan, calls: int, lacks: Any = ()) -> None:
    """All that is before a C function is done when it is called, and all behind it waits."""
    backend = RecordingBackend(lacks=lacks)
    executable = backend.compile(plan)
    graph: RecordedGraph = backend.device.driver.graphs[0]
    over: dict[Any, set[Any]] = {}
    for node in graph.nodes:
        over[node] = {*node.dependencies}.union(*[over[each] for each in node.dependencies])
    hosts = [node for node in graph.nodes if node.kind == "host"]
    assert len(hosts) == calls
    launched = ("tracegraph_load", "tracegraph_table", "tracegraph_pointer_arrays", "allocate")
    roots = [node for node in graph.nodes if node.name.startswith(launched)]
    for host in hosts:
        at = graph.nodes.index(host)
        assert over[host].issuperset(set(graph.nodes[:at]) - set(roots))
        assert all(host in over[node] for node in graph.nodes[at + 1 :])
    del executable


@pytest.mark.parametrize("lacks", [(), ("body_updates", "library_updates"), ("memory_nodes",)])
def test_c_functions_are_called_between_what_is_before_and_behind_them(lacks: Any) -> None:
    assert_calls_are_barriers(plan_of(scratch="per_launch"), POSTS, lacks)


def test_c_functions_are_called_between_graphs_of_others_and_captured_calls() -> None:
    at, out = (Foreign(address, shape=VECTOR.shape) for address in (1 << 40, 1 << 41))
    outside = Outside(graph=7, at=at, out=out)
    captured = tracegraph.capture(outside.doubles, out=lambda x: x, host=lambda x: 2 * x)

    def f(x: Any) -> Any:
        def all_kinds() -> Any:
            found = outside.embedded(x), captured(x), saxpy(2.0, x, x), np.sort(x), x.sum()
            tracegraph.host_call(outside.semaphore.post, outside.semaphore.address)
            return found

        return all_kinds(), all_kinds(), all_kinds()

    plan = tracegraph.jit(f, device="cuda").lower(VECTOR).plan
    kinds = [node.kind for node in plan.graph.nodes]
    assert [kinds.count(kind) for kind in ("graph", "library", "host")] == [3, 3, 3]
    assert_calls_are_barriers(plan, 3)
