"""Captured calls of users in graphs: operands, owners, the run before, and failures."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.libraries.foreign_calls import CapturedArray, CaptureStream, ForeignStream
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.overrides import override
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.compiled import plan_of
from tracegraph import errors

X = np.arange(12.0).reshape(3, 4)


class RunningDriver(RecordingDriver):
    """Runs users' functions on a stream that is captured, or not."""

    def library(self, kind: Any) -> Any:
        if kind is not ForeignStream:
            return super().library(kind)
        driver = self

        class Running(ForeignStream):
            def run(self, function: Any, arrays: Sequence[CapturedArray]) -> None:
                driver._call_library("run", (driver.open_captures,))
                super().run(function, arrays)

        return Running(77)


class Foreign:
    """A function that notes its calls."""

    def __init__(self, driver: RunningDriver) -> None:
        self.driver = driver
        self.calls: list[tuple[int, Any, tuple[Any, ...]]] = []
        self.error: Exception | None = None
        self.fail_in_capture = True

    def call(self, stream: Any, *arrays: Any) -> None:
        self.calls.append((self.driver.open_captures, stream, arrays))
        if self.error is not None and self.fail_in_capture == bool(self.driver.open_captures):
            raise self.error


@pytest.fixture
def driver() -> RunningDriver:
    return RunningDriver()


@pytest.fixture
def foreign(driver: RunningDriver) -> Foreign:
    return Foreign(driver)


def captured(foreign: Foreign, **options: Any) -> Any:
    return tracegraph.capture(foreign.call, out=lambda x: x, **options)


def calls_in(plan: Plan) -> list[LibraryNode]:
    return [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]


def test_it_runs_once_before_and_once_while_captured(
    driver: RunningDriver, foreign: Foreign
) -> None:
    call = captured(foreign)
    plan = plan_of(lambda x: call(x.T + 1) * 2, X)
    (node,) = calls_in(plan)
    executable = RecordingBackend(driver).compile(plan)
    assert [is_captured for is_captured, _, _ in foreign.calls] == [0, 1]
    (_, stream, before), (_, _, arrays) = foreign.calls
    assert stream == CaptureStream(77)
    assert (stream.__cuda_stream__(), int(stream)) == ((0, 77), 77)
    assert [a.shape for a in arrays] == [(4, 3), (4, 3)]
    assert len({a.pointer for a in (*before, *arrays)}) == 4
    assert arrays[0].__cuda_array_interface__ == {
        "version": 3,
        "data": (arrays[0].pointer, False),
        "typestr": "<f8",
        "shape": (4, 3),
        "strides": None,
        "stream": None,
    }
    assert (arrays[0].size, arrays[0].nbytes) == (12, 96)
    assert driver.count("clear") >= 1  # the arrays of the run before are zero
    assert [n.kind for n in driver.graphs[0].walk()].count("library") == 1
    assert node.text in str(plan)
    assert "captured call call" in str(plan)
    executable.launch([X])
    assert len(foreign.calls) == 2


def test_arguments_are_copied_to_fixed_addresses(driver: RunningDriver, foreign: Foreign) -> None:
    call = captured(foreign)
    plan = plan_of(lambda x: call(x), X)
    assert [node.kind for node in plan.graph.nodes][:2] == ["copy", "library"]
    RecordingBackend(driver).compile(plan)
    assert all(a.pointer for a in foreign.calls[1][2])


def test_the_graph_keeps_the_function(driver: RunningDriver, foreign: Foreign) -> None:
    call = captured(foreign)
    executable = RecordingBackend(driver).compile(plan_of(lambda x: call(x), X))
    assert any(owner == foreign.call for owner in driver.graphs[0].tied._owners)
    assert "function Foreign.call (test_captured_calls.py:" in str(executable.slots)


def test_each_stream_has_a_capture_of_its_own(driver: RunningDriver, foreign: Foreign) -> None:
    call = captured(foreign)
    backend = RecordingBackend(driver)
    executable = backend.compile(plan_of(lambda x: call(x), X))
    executable.export_graph([X])
    assert [is_captured for is_captured, _, _ in foreign.calls][:2] == [0, 1]
    assert foreign.calls[-1][0] == 1
    assert len(foreign.calls) in (3, 4)


@pytest.mark.parametrize("in_body", [False, True])
def test_in_loops_and_branches(driver: RunningDriver, foreign: Foreign, in_body: bool) -> None:
    call = captured(foreign)

    def f(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return tracegraph.cond(x[0, 0] > 0, call, lambda x: x, x) if in_body else call(x)

        return tracegraph.fori_loop(0, 50, step, x)

    with override(loops="one_kernel", branches="predicated"):
        plan = plan_of(f, X)
    assert "a captured call inside" in explain(plan)
    RecordingBackend(driver).compile(plan)
    kinds = [n.kind for n in driver.graphs[0].walk()]
    assert {"while", "library"} <= set(kinds)
    assert ("if_else" in kinds) == in_body


@pytest.mark.parametrize("in_capture", [False, True])
def test_an_error_of_the_function_names_it(
    driver: RunningDriver, foreign: Foreign, in_capture: bool
) -> None:
    call = captured(foreign)
    plan = plan_of(lambda x: call(x), X)
    foreign.error, foreign.fail_in_capture = ValueError("of the library"), in_capture
    with pytest.raises(errors.CapturedCallError, match="ValueError: of the library") as caught:
        RecordingBackend(driver).compile(plan)
    assert "captured call Foreign.call (test_captured_calls.py:" in str(caught.value)
    assert "called at test_captured_calls.py:" in str(caught.value)
    assert caught.value.__cause__ is foreign.error
    assert driver.open_captures == 0
    foreign.error = None
    RecordingBackend(driver).compile(plan)  # the stream and the lock are usable


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        (("kernel", "host"), "nodes of kind host; it calls back to the host"),
        (("mem_alloc", "kernel", "mem_free"), "it allocates memory: give it a workspace"),
        ((), "no nodes"),
    ],
)
def test_nodes_that_no_loop_may_hold(kinds: Sequence[str], problem: str) -> None:
    driver = RunningDriver(library_kinds=kinds)
    call = captured(Foreign(driver))
    plan = plan_of(lambda x: call(x), X)
    with pytest.raises(errors.CapturedCallError, match=problem):
        RecordingBackend(driver).compile(plan)


def test_a_build_that_fails_anywhere_leaves_nothing(foreign: Foreign) -> None:
    call = captured(foreign)
    plan = plan_of(lambda x: call(call(x) + 1), X)
    reference = RunningDriver()
    RecordingBackend(reference).compile(plan)
    for number in range(1, len(reference.calls) + 1):
        driver = RunningDriver(fail_at=number)
        with pytest.raises((InjectedError, errors.CapturedCallError)) as caught:
            RecordingBackend(driver).compile(plan)
        error = caught.value
        assert isinstance(error, InjectedError) or isinstance(error.__cause__, InjectedError)
        assert driver.open_captures == 0
        driver.graphs.clear()
        foreign.calls.clear()
        del caught, error
        gc.collect()
        assert len(driver.live_memory) == 0


def test_a_call_of_a_jitted_function_from_inside_is_refused(
    driver: RunningDriver, foreign: Foreign
) -> None:
    call = captured(foreign)
    backend = RecordingBackend(driver)
    plan = plan_of(lambda x: call(x), X)

    def nested(stream: Any, *arrays: Any) -> None:
        backend.compile(plan)

    outer = tracegraph.capture(nested, out=lambda x: x)
    with pytest.raises(errors.CapturedCallError, match="NestedCaptureError"):
        backend.compile(plan_of(lambda x: outer(x), X))
