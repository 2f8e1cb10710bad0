"""Profiles: a row for each node, with its runs and its time; clocks change no result."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.registry import backend
from lowering.cuda.compilation.compile import cubin
from lowering.plan.clocks import _TEXT, with_clocks
from lowering.plan.nests.buffer import overlap
from lowering.plan.nests.work import Work
from lowering.plan.nodes import KernelNode, launched
from lowering.plan.reports.node_times import NodeTime, alike
from lowering.plan.reports.profile import Profile
from lowering.plan.reports.races import races
from lowering.plan.target.rates import H100
from lowering.testing.recording_backend import RecordingBackend
from tests.emulation.emulated_driver import EmulatedDriver
from tests.emulation.emulator import COMPILER
from tests.helpers.compiled import plan_of
from tracegraph.inspection.diagram import boxes_in
from tracegraph.inspection.page import page

X = np.linspace(0.0, 1.0, 300)
A = np.random.default_rng(0).random((300, 300))


def program(a: Any, x: Any) -> Any:
    """A loop of known length, one that depends on data, a branch in it, and a sort."""
    first = tracegraph.fori_loop(0, 5, lambda i, v: np.sort(np.tanh(a @ v)), x)

    def step(v: Any) -> Any:
        return tracegraph.cond(v[3] > 0.01, lambda: np.sort(v[::-1]) / 2, lambda: v / 4)

    second = tracegraph.while_loop(lambda v: np.sum(v * v) > 1e-3, step, x)
    return np.sort(first), second


def steps() -> int:
    """How many steps the second loop takes."""
    v, count = X, 0
    while np.sum(v * v) > 1e-3:
        v = np.sort(v[::-1]) / 2 if v[3] > 0.01 else v / 4
        count += 1
    return count


@pytest.mark.parametrize("device", ["cuda", "host"])
def test_every_node_has_a_place_and_none_runs_beside_another(device: str) -> None:
    plan = plan_of(program, A, X, device=device)
    clocked, timed = with_clocks(plan)
    assert [each.node for each in timed] == [*launched(plan.graph)]
    places = [p for each in timed for p in (each.own, *each.entering)]
    assert len({*places}) == len(places)
    assert not races(clocked)
    (times,) = {*clocked.offsets} - {*plan.offsets}
    assert not any(overlap(times, other, clocked.offsets) for other in plan.offsets)
    assert clocked.arena_bytes >= clocked.offsets[times] + times.type.nbytes
    assert 2 * max(places) + 1 < times.type.size


def test_clocks_change_no_result() -> None:
    plan = plan_of(program, A, X, device="host")
    clocked, timed = with_clocks(plan)
    wanted = backend("host").compile(plan)([A, X])
    run = backend("host").compile(clocked)
    for _ in range(2):  # each launch begins anew
        *found, times = run([A, X])
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        assert max(each.runs(np.asarray(times)) for each in timed) == max(5, steps())


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_kernels_between_clocks_compute_what_they_did(tmp_path: Any) -> None:
    plan, timed = with_clocks(plan_of(program, A, X, device="cuda"))
    executable = RecordingBackend(EmulatedDriver(tmp_path), lacks=["conditional_nodes"]).compile(
        plan
    )
    for _ in range(2):
        *found, times = [buffer.to_host() for buffer in executable([A, X])]
        for one, other in zip(found, program(A, X), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert max(each.runs(times) for each in timed) == max(5, steps())


def test_the_clock_compiles() -> None:
    assert len(cubin(_TEXT, "sm_80").code) > 0


def test_loops_run_as_often_as_they_do() -> None:
    compiled = tracegraph.jit(program, device="host").lower(A, X).compile()
    profile = compiled.profile(A, X)
    by_title: dict[str, list[NodeTime]] = {}
    for node in profile.nodes:
        by_title.setdefault(node.title, []).append(node)
    assert sorted(node.runs for node in by_title["sort 300"]) == sorted(
        [5, 1, sum(1 for _ in range(steps()) if X[3] / 2**_ > 0.01)]
    )
    assert all(node.seconds >= 0 for node in profile.nodes)
    assert profile.seconds > 0
    assert profile.call_seconds > 0
    assert all(node.least is None and node.part is None for node in profile.nodes)
    text = str(profile).splitlines()
    assert len(text) == 2 + len(profile.nodes)
    assert text[1].split()[0] == "node"


def test_a_row_has_the_part_of_the_limit() -> None:
    work = Work(required=30_000_000, moved=40_000_000)
    node = NodeTime("kernel f", "f.py:1", 1, 20.0, 400e-6, work, 20 * 10e-6)
    assert node.part == pytest.approx(0.5)
    unknown = NodeTime("kernel g", "f.py:2", 0, 1.0, 10e-6, Work(), None)
    assert Profile("f", (node,), 10, 500e-6, H100).least == pytest.approx(200e-6)
    assert Profile("f", (node, unknown), 10, 500e-6, H100).least is None
    text = str(Profile("f", (node,), 10, 500e-6, H100))
    assert text.splitlines() == [
        "f: 400 µs in nodes, 500 µs a call",
        "node        line    runs  µs a run   µs  of all  must move  least µs  part",
        "  kernel f  f.py:1    20        20  400    100%      30 MB        10  0.50",
        f"limits of {H100.name}",
    ]


def test_copies_in_an_unrolled_loop_have_one_row() -> None:
    def node(title: str, depth: int, runs: float, seconds: float) -> NodeTime:
        return NodeTime(title, "f.py:1", depth, runs, seconds, Work(required=3000), runs * 1e-9)

    copies = [node("kernel a", 1, 5, 1e-6), node("kernel b", 1, 5, 3e-6)] * 3
    nodes = (node("while", 0, 1, 0.0), *copies, node("while", 0, 1, 0.0), copies[0])
    _, _, *rows, _ = str(Profile("f", nodes, 10, 1e-3, H100)).splitlines()
    assert [row.split("f.py:1")[0].strip() for row in rows] == [
        *("while", "kernel a", "kernel b"),
        *("while", "kernel a"),
    ]
    assert [row.split()[3] for row in rows if "kernel b" in row] == ["15"]


def test_each_nest_is_measured_on_the_host() -> None:
    plan = plan_of(lambda x: (np.sin(x), x.sum()), X, device="host")
    (kernel,) = plan.graph.nodes
    assert isinstance(kernel, KernelNode)
    assert len(kernel.kernel.nests) == 2
    clocked, timed = with_clocks(plan, each_nest=True)
    assert [(each.number, len(each.node.contents)) for each in timed] == [(0, 1), (0, 1)]
    *found, _ = backend("host").compile(clocked)([X])
    np.testing.assert_allclose(found[0], np.sin(X))
    np.testing.assert_allclose(found[1], X.sum())


def measured() -> Profile:
    """A profile without measuring: node k takes k microseconds."""
    plan = plan_of(program, A, X, device="cuda")
    timed = with_clocks(plan)[1]
    nodes = [
        NodeTime(t.node.title, "f.py:1", t.depth, 2.0, k * 1e-6, Work(8, 8), None, t.number)
        for k, t in enumerate(timed)
    ]
    return Profile("program", tuple(nodes), 10, 1e-3, None, plan)


def test_the_picture_has_the_times() -> None:
    profile = measured()
    boxes = list(boxes_in(profile.diagram().region))
    took = {box.title: box.seconds for box in boxes if box.seconds is not None}
    plain = [box for box in boxes if box.seconds is not None and not box.is_folded]
    assert sum(box.seconds or 0 for box in plain) == pytest.approx(profile.seconds)
    assert sum(box.share for box in plain) == pytest.approx(1)
    for node in profile.nodes:
        if [each.title for each in profile.nodes].count(node.title) == 1:
            assert took[node.title.replace("program_", "")] == pytest.approx(node.seconds)
    text = page(profile.diagram(), str(profile))
    assert text.count('class="heat"') == sum(box.seconds is not None for box in boxes)
    assert repr(profile) == f"<Profile {profile.line()}>"


def test_trace_events_are_nested_as_the_nodes_are() -> None:
    profile = measured()
    text = json.dumps(profile.trace_events())
    events = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events] == [node.title for node in profile.nodes]
    ends: list[tuple[int, float]] = []
    for node, event in zip(profile.nodes, events, strict=True):
        while ends and ends[-1][0] >= node.depth:
            ends.pop()
        assert not ends or event["ts"] + event["dur"] <= ends[-1][1] + 1e-6
        ends.append((node.depth, event["ts"] + event["dur"]))
        assert event["args"]["own microseconds"] == pytest.approx(node.seconds * 1e6)
    assert max(e["ts"] + e["dur"] for e in events) == pytest.approx(profile.seconds * 1e6)


def test_a_profile_is_plotted_where_matplotlib_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        measured().plot()


def test_a_plot_has_a_bar_for_each_node() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    matplotlib.use("Agg")
    profile = measured()
    shown = alike(profile.nodes)
    axes = profile.plot()
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx(sorted((node.seconds * 1e6 for node in shown), reverse=True))
    assert axes.get_title() == "program"
    assert profile.plot(axes) is axes
    matplotlib.pyplot.close("all")


def test_a_jitted_function_is_profiled_as_it_is() -> None:
    jitted = tracegraph.jit(program, device="host")
    profile = jitted.profile(A, X)
    assert jitted.stats()["builds"] == 1
    assert jitted.profile(A, X).nodes[0].title == profile.nodes[0].title
    assert jitted.stats()["builds"] == 1


def test_arguments_must_fit() -> None:
    compiled = tracegraph.jit(program, device="host").lower(A, X).compile()
    with pytest.raises(tracegraph.errors.ArgumentTypesError):
        compiled.profile(A, X[1:])


def test_donated_arguments_stay() -> None:
    jitted = tracegraph.jit(lambda x: x * 2, device="host", donate_argnums=0)
    x = np.ones(5)
    jitted.lower(x).compile().profile(x)
    np.testing.assert_array_equal(x, np.ones(5))
