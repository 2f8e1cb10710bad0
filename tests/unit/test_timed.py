"""debug.timed: sections of programs, and how long they took in the last call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.event_node import EventNode
from lowering.plan.plan import Plan
from lowering.testing.recording_backend import RecordingBackend
from tests.helpers.compiled import plan_of
from tracegraph import debug, errors

pytestmark = pytest.mark.usefixtures("each_host")

X = np.arange(1000.0)


def sections(x: Any) -> Any:
    with debug.timed("first"):
        y = np.sin(x) * 2
    with debug.timed("second"):
        z = y + x
    return y, z.sum()


def titles(plan: Plan) -> list[str]:
    return [node.title if isinstance(node, EventNode) else node.kind for node in plan.graph.nodes]


def test_each_section_has_its_time_after_a_call() -> None:
    compiled = tracegraph.jit(sections, device="host").lower(X).compile()
    assert compiled.timings() == {}
    y, z = compiled(X)
    np.testing.assert_allclose(np.asarray(y), np.sin(X) * 2)
    assert float(z) == pytest.approx((np.sin(X) * 2 + X).sum())
    assert list(compiled.timings()) == ["first", "second"]
    assert all(milliseconds >= 0 for milliseconds in compiled.timings().values())


def test_the_time_is_from_the_start_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 3_000_000, 10_000_000, 17_500_000])
    monkeypatch.setattr("lowering.host.section_times.perf_counter_ns", lambda: next(clock))
    jitted = tracegraph.jit(sections, device="host")
    assert jitted.timings() == {}
    jitted(X)
    assert jitted.timings() == {"first": 3.0, "second": 7.5}


def test_sections_of_one_name_are_added() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            with debug.timed("step"):
                x = np.sin(x)
        return x

    jitted = tracegraph.jit(f, device="host")
    jitted(X)
    assert list(jitted.timings()) == ["step"]
    kinds = titles(plan_of(f, X))
    assert kinds == ["time step: start", "kernel", "time step: end"] * 3


def test_nested_sections() -> None:
    def f(x: Any) -> Any:
        with debug.timed("outer"):
            with debug.timed("inner"):
                y = np.sin(x)
            return np.cos(y)

    jitted = tracegraph.jit(f, device="host")
    jitted(X)
    timings = jitted.timings()
    assert timings["outer"] >= timings["inner"]


def test_what_is_computed_inside_is_not_computed_behind() -> None:
    """A kernel of each section; without them there would be one, at the end."""

    def f(x: Any) -> Any:
        with debug.timed("inside"):
            y = np.sin(x)
        return y * 2 + 1

    assert titles(plan_of(f, X)) == ["time inside: start", "kernel", "time inside: end", "kernel"]
    plan = plan_of(f, X)
    inside, behind = (str(node) for node in plan.graph.nodes if not isinstance(node, EventNode))
    assert "sin" in inside
    assert "sin" not in behind


def test_what_nothing_uses_stays_left_out() -> None:
    def f(x: Any) -> Any:
        with debug.timed("inside"):
            np.sin(x)
        return x + 1

    assert "sin" not in "".join(map(str, plan_of(f, X).graph.nodes))


def test_in_loops_it_is_refused_with_the_line() -> None:
    def f(x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            with debug.timed("step"):
                return y + 1

        return tracegraph.fori_loop(0, 3, step, x)

    for device in ("host", "cuda"):
        with pytest.raises(errors.EventInBodyError, match=r"debug.timed .*fori_loop") as caught:
            tracegraph.jit(f, device=device).lower(X)
        assert "test_timed.py" in str(caught.value)


def test_loops_and_lanes_inside_are_one_section() -> None:
    def f(x: Any) -> Any:
        with debug.timed("loop"):
            return tracegraph.fori_loop(0, 3, lambda i, y: y + i, x)

    jitted = tracegraph.jit(tracegraph.vmap(f), device="host")
    np.testing.assert_array_equal(np.asarray(jitted(np.ones((2, 4)))), np.full((2, 4), 4.0))
    assert list(jitted.timings()) == ["loop"]


def test_eagerly_nothing_is_measured() -> None:
    y, _ = sections(X)
    np.testing.assert_allclose(y, np.sin(X) * 2)


def test_a_name_that_is_no_string_is_refused() -> None:
    with pytest.raises(TypeError, match=r"debug\.timed: the name must be a string"), debug.timed(3):  # type: ignore[arg-type]
        pass


def test_an_error_inside_leaves_no_time() -> None:
    def f(x: Any) -> Any:
        with debug.timed("inside"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tracegraph.jit(f, device="host")(X)


@pytest.mark.parametrize("lacks", [(), ("conditional_nodes",)])
def test_on_a_device_event_nodes_measure(lacks: Any) -> None:
    backend = RecordingBackend(lacks=lacks)
    executable = backend.compile(plan_of(sections, X))
    driver = backend.device.driver
    assert executable.timings() == {}
    nodes = [n for graph in driver.graphs for n in graph.nodes if n.kind == "event"]
    assert [node.name for node in nodes] == ["record"] * 4
    handles = [node.values[0] for node in nodes]
    assert len(set(handles)) == 4
    arguments = [backend.device.pool.buffer(b.type.strong()) for b in executable.plan.inputs]
    executable(arguments)
    before = driver.count("synchronize")
    assert executable.timings() == {
        "first": handles[1] - handles[0],
        "second": handles[3] - handles[2],
    }
    assert driver.count("synchronize") > before
    with tracegraph.stream(77):
        assert executable.timings() == {}
        executable(arguments)
        assert list(executable.timings()) == ["first", "second"]
    executable.close()
    assert executable.timings() == {}


def test_ranges_have_the_function_and_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    marked: list[str] = []

    @contextmanager
    def annotate(message: str, domain: str) -> Iterator[None]:
        marked.append(f"{domain}: {message}")
        yield
        marked.append("end")

    def double(x: Any) -> Any:
        return 2 * x

    jitted = tracegraph.jit(double, device="host")
    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(annotate=annotate))
    for _ in range(2):
        with debug.ranges():
            assert jitted(X)[1] == 2
        assert jitted(X)[1] == 2
    line = double.__code__.co_firstlineno
    test = "test_ranges_have_the_function_and_the_line"
    name = f"tracegraph: {test}.<locals>.double (test_timed.py:{line})"
    built = [f"tracegraph: {step} double" for step in ("trace", "lower", "compile")]
    parts = [text for step in built for text in (step, "end")]
    assert marked == [name, *parts, "end", name, "end"]
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(ImportError, match="pip install nvtx"), debug.ranges():
        pass
