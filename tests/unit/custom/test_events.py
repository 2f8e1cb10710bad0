"""Events of other code: on the host they do nothing; in plans they are barriers."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.lower import lower
from lowering.plan.event_node import EventNode
from lowering.plan.nodes import KernelNode
from lowering.plan.target.overrides import override
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.compiled import plan_of
from tests.helpers.threads import collect_garbage
from tracegraph import debug, errors, event

X = np.arange(1000.0)
ONE, TWO = 0x5000, 0x6000


def between(x: Any) -> Any:
    y = x * 2
    event.record(ONE, y)
    event.wait(TWO)
    return y, x + 1


def test_on_the_host_nothing_happens() -> None:
    y, z = tracegraph.jit(between, device="host")(X)
    np.testing.assert_array_equal(np.asarray(y), 2 * X)
    np.testing.assert_array_equal(np.asarray(z), X + 1)
    event.record(ONE)
    event.wait(ONE)


def test_what_comes_before_and_behind_is_ordered() -> None:
    plan = plan_of(between, X)
    nodes, edges = plan.graph.nodes, plan.graph.edges
    kinds = [node.title for node in nodes]
    (record,) = [i for i, node in enumerate(nodes) if node.title == "event record"]
    (wait,) = [i for i, node in enumerate(nodes) if node.title == "event wait"]
    kernels = [i for i, node in enumerate(nodes) if isinstance(node, KernelNode)]
    assert kernels[0] < record < wait < kernels[1], kinds  # which would be one kernel without
    assert edges >= {(kernels[0], record), (record, wait), (wait, kernels[1])}
    assert nodes[record].tone == "event"
    assert "test_events.py" in str(nodes[record].sources[0])


def test_they_are_barriers_for_all_kinds_of_nodes() -> None:
    def f(x: Any, a: Any) -> Any:
        y = a @ a
        z = tracegraph.fori_loop(0, 3, lambda i, z: z + y.sum(), x, schedule="conditional")
        debug.print("{}", z[0])
        event.record(ONE, y, z)
        b = a @ (a + 1)
        return b, tracegraph.fori_loop(0, 3, lambda i, z: z - 1, x, schedule="conditional")

    plan = plan_of(f, X, np.ones((8, 8)))
    nodes, edges = plan.graph.nodes, plan.graph.edges
    (at,) = [i for i, node in enumerate(nodes) if isinstance(node, EventNode)]
    ancestors: set[int] = {at}
    for i, j in sorted(edges, key=lambda edge: -edge[1]):
        if j in ancestors:
            ancestors.add(i)
    descendants: set[int] = {at}
    for i, j in sorted(edges):
        if i in descendants:
            descendants.add(j)
    assert ancestors == set(range(at + 1))
    assert descendants == set(range(at, len(nodes)))
    assert at not in (0, len(nodes) - 1)


def test_an_argument_that_is_used_behind_a_wait_is_copied_behind_it() -> None:
    def f(x: Any, a: Any) -> Any:
        before = a @ a
        event.wait(ONE)
        return before, x @ x

    with override(operands="copied"):
        nodes = plan_of(f, np.ones((512, 512)), np.ones((256, 256))).graph.nodes
    order = [node.kind for node in nodes]
    at = order.index("event")
    copied = [i for i, kind in enumerate(order) if kind == "copy"]
    assert any(i < at for i in copied), order
    assert any(i > at for i in copied), order


def test_a_result_is_in_its_own_memory_when_its_event_is_recorded() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        event.record(ONE, y)
        return y

    plan = plan_of(f, X)
    kernel, recorded = plan.graph.nodes
    assert isinstance(recorded, EventNode)
    assert plan.outputs[0] in kernel.writes
    assert recorded.reads == {plan.outputs[0]}


def test_once_under_vmap() -> None:
    def f(x: Any) -> Any:
        event.record(ONE, x * 2)
        return x + 1

    nodes = plan_of(tracegraph.vmap(f), np.ones((3, 4))).graph.nodes
    assert sum(isinstance(node, EventNode) for node in nodes) == 1


@pytest.mark.parametrize("action", [event.record, event.wait])
def test_in_bodies_they_are_refused_with_the_line(action: Any) -> None:
    def loop(x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            action(ONE)
            return y

        return tracegraph.fori_loop(0, 3, step, x)

    def branch(x: Any) -> Any:
        def then(x: Any) -> Any:
            action(ONE)
            return x

        return tracegraph.cond(x[0] > 0, then, lambda x: x, x)

    for f, construct in ((loop, "fori_loop"), (branch, "cond")):
        with pytest.raises(errors.EventInBodyError, match=f"inside {construct}") as caught:
            plan_of(f, X)
        assert f"event.{action.__name__}" in str(caught.value)
        assert "test_events.py" in str(caught.value)

    with pytest.raises(errors.EffectInConditionError, match="event"):
        tracegraph.jit(
            lambda x: tracegraph.while_loop(
                lambda y: (action(ONE), y[0] < 4)[1], lambda y: y + 1, x
            )
        ).lower(X)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (None, "not None"),
        ("event", "the handle of a CUevent"),
        (True, "the handle of a CUevent"),
        (-1, "the handle of a CUevent"),
        (SimpleNamespace(cuda_event=0), "has no handle yet"),
    ],
)
def test_what_is_no_event_is_refused(given: Any, match: str) -> None:
    for action in (event.record, event.wait):
        with pytest.raises(errors.EventError, match=match):
            action(given)


def test_a_value_that_is_no_array_is_refused() -> None:
    with pytest.raises(errors.EventError, match=r"a value: .*str is not an array"):
        event.record(ONE, "x")


class OfCore:
    handle = ONE


class OfTorch:
    cuda_event = ONE


class OfCupy:
    ptr = ONE


@pytest.mark.parametrize("kind", [OfCore, OfTorch, OfCupy])
def test_the_graph_keeps_events_of_other_libraries(kind: Any) -> None:
    given = [kind()]

    def f(x: Any) -> Any:
        event.record(given[0], x)
        return x + 1

    backend = RecordingBackend()
    plan = plan_of(f, X)
    executable = backend.compile(plan)
    kept = weakref.ref(given.pop())
    (node,) = [n for n in backend.device.driver.graphs[0].nodes if n.kind == "event"]
    assert (node.name, node.values) == ("record", [ONE])
    assert "event" in str(executable.slots)
    del plan
    collect_garbage()
    assert kept() is not None
    executable.close()
    backend.device.driver.graphs.clear()
    del executable, backend, node
    collect_garbage()
    assert kept() is None


@pytest.mark.parametrize("lacks", [(), ("conditional_nodes",)])
def test_the_graph_has_the_edges_of_the_plan(lacks: Any) -> None:
    def f(x: Any) -> Any:
        y = tracegraph.fori_loop(0, 3, lambda i, y: y + i, x, schedule="conditional")
        event.record(ONE, y)
        return y * 2

    backend = RecordingBackend(lacks=lacks)
    backend.compile(plan_of(f, X))
    found = [node for graph in backend.device.driver.graphs for node in graph.nodes]
    (node,) = [each for each in found if each.kind == "event"]
    assert any(node in each.dependencies for each in found)
    assert bool(node.dependencies) == (not lacks)  # else it is the first of its part


def test_every_failure_drops_the_graph() -> None:
    plan = plan_of(between, X)
    reference = RecordingBackend()
    reference.compile(plan)
    for number in range(1, len(reference.device.driver.calls) + 1):
        driver = RecordingDriver(fail_at=number)
        with pytest.raises(InjectedError):
            RecordingBackend(driver).compile(plan)
        assert not driver.live_executables


def test_plans_without_fusion_have_them_too() -> None:
    program = tracegraph.make_program(between)(X)
    nodes = lower(program, "cuda", fusion=False).graph.nodes
    assert sum(isinstance(node, EventNode) for node in nodes) == 2


def test_plans_with_them_are_explained_and_drawn() -> None:
    lowered = tracegraph.jit(between, device="cuda").lower(X)
    for text in (str(lowered.plan), lowered.dot(), str(lowered.diagram())):
        assert "event record" in text
        assert "event wait" in text
    assert "4 nodes" in lowered.explain()


def test_folds_may_be_given_to_an_event_alone() -> None:
    def f(x: Any) -> Any:
        event.record(0x5000, x.sum(), (x * 2).max() + 1, x.min().reshape(1), (x + x).sum() * x)
        return x + 1

    plan = tracegraph.jit(f, device="cuda").lower(np.ones(64)).plan
    kinds = [node.kind for node in plan.graph.nodes]
    assert kinds.index("event") > 0
    np.testing.assert_array_equal(tracegraph.jit(f, device="host")(np.ones(4)), np.full(4, 2.0))
