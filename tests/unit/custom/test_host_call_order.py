"""C functions have their place among computations, which read memory before a call or behind it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import registry
from lowering.backends.host import HostBackend
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.nodes import HostNode
from lowering.testing.recorded_objects import RecordedGraph
from lowering.testing.recording_backend import RecordingBackend
from tests.programs.host_calls import COMPILER, PROGRAMS, TYPE, Memory, N
from tracegraph import event, tree
from tracegraph.ir import interpret
from tracegraph.staging.stages import Traced
from tracegraph.testing.ways import LOWERINGS

compiled = pytest.mark.skipif(COMPILER is None, reason="there is no g++")
each_program = pytest.mark.parametrize("name", PROGRAMS)


def eager(name: str) -> tuple[list[Any], list[float]]:
    """What a program returns, with copies, and the sums that the C function notes."""
    memory = Memory()
    found = PROGRAMS[name](memory.owned("host"), memory.call)
    return [np.array(leaf) for leaf in tree.leaves(found)], memory.noted


def assert_as_eagerly(name: str, run: Callable[[Traced, Memory], Any]) -> None:
    """Compare a run of the traced program with the eager one."""
    memory = Memory()
    wanted, noted = eager(name)
    stage = tracegraph.jit(lambda x: PROGRAMS[name](x, memory.call), device="host").trace(TYPE)
    found = [np.array(leaf) for leaf in tree.leaves(run(stage, memory))]
    assert memory.noted == noted
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@compiled
@each_program
def test_jitted_programs_read_what_eager_ones_read(name: str) -> None:
    assert_as_eagerly(name, lambda stage, memory: stage.lower().compile()(memory.owned("host")))


@compiled
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "elements_used_behind"])
def test_passes_move_no_read_across_a_call(name: str) -> None:
    """In the interpreter, elements are views."""
    for choose in (lambda stage: stage.program, lambda stage: stage.optimized):

        def run(stage: Traced, memory: Memory, choose: Any = choose) -> Any:
            return interpret.run(choose(stage), memory.array)

        assert_as_eagerly(name, run)


@compiled
@each_program
@pytest.mark.parametrize("way", [None, *LOWERINGS])
def test_plans_for_a_gpu_read_the_same_in_any_order_of_nodes(name: str, way: str | None) -> None:
    for seed in (None, 1):

        def run(stage: Traced, memory: Memory, seed: int | None = seed) -> Any:
            plan = (
                lower(stage.optimized, "cuda")
                if way is None
                else LOWERINGS[way].plan(_Trial(stage))  # type: ignore[arg-type]
            )
            order = None if seed is None else Random(seed)
            return HostExecutable(plan, poison=True, order=order)([memory.array])

        assert_as_eagerly(name, run)


@compiled
@each_program
@pytest.mark.parametrize("fusion", [True, False])
def test_unfused_plans_read_the_same(name: str, fusion: bool) -> None:
    def run(stage: Traced, memory: Memory) -> Any:
        plan = lower(stage.optimized, "host", fusion=fusion)
        return HostExecutable(plan, poison=True, order=Random(2))([memory.array])

    assert_as_eagerly(name, run)


class _Trial:
    """A traced call, as ways of running take it."""

    donated = ()

    def __init__(self, stage: Traced) -> None:
        self.optimized = stage.optimized


# -- the graph -------------------------------------------------------------------------------------


def recorded(function: Any, *arguments: Any, lacks: Any = ()) -> RecordedGraph:
    backend = RecordingBackend(lacks=lacks)
    executable = backend.compile(tracegraph.jit(function, device="cuda").lower(*arguments).plan)
    graph: RecordedGraph = backend.device.driver.graphs[0]
    del executable
    return graph


@compiled
@each_program
@pytest.mark.parametrize("lacks", [(), ("body_updates", "library_updates")])
def test_a_host_node_waits_for_all_before_it_and_all_behind_waits_for_it(
    name: str, lacks: Any
) -> None:
    memory = Memory()
    graph = recorded(lambda x: PROGRAMS[name](x, memory.call), TYPE, lacks=lacks)
    assert_calls_are_barriers(graph)


def assert_calls_are_barriers(graph: RecordedGraph) -> None:
    hosts = [node for node in graph.nodes if node.kind == "host"]
    assert hosts
    for host in hosts:
        at = graph.nodes.index(host)
        assert set(graph.nodes[:at]) <= host.behind()
        assert all(host in node.behind() for node in graph.nodes[at:])


@compiled
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "among_prints_and_callbacks"])
def test_so_they_do_in_exported_graphs(name: str) -> None:
    memory, backend = Memory(), RecordingBackend()
    function = tracegraph.jit(lambda x: PROGRAMS[name](x, memory.call), device="cuda")
    executable = backend.compile(function.lower(TYPE).plan)
    given = executable.export_graph([backend.device.pool.buffer(TYPE)])
    assert_calls_are_barriers(backend.device.driver.graphs[-1])
    del given


@compiled
def test_a_call_between_kernels_and_loops_is_a_chain() -> None:
    memory = Memory()

    def f(x: Any) -> Any:
        return PROGRAMS["between_loops"](x, memory.call)

    plan = tracegraph.jit(f, device="cuda").lower(TYPE).plan
    at = [i for i, node in enumerate(plan.graph.nodes) if isinstance(node, HostNode)]
    assert len(at) == 2
    for position in at:
        assert any((i, position) in plan.graph.edges for i in range(position))
        assert (position, position + 1) in plan.graph.edges


@compiled
def test_an_argument_that_is_copied_is_copied_again_behind_a_call() -> None:
    """Products take fixed addresses, where the device has no pointer arrays for them."""
    memory = Memory()

    def f(x: Any) -> Any:
        first = np.fft.rfft(x)
        memory.call()
        return first, np.fft.rfft(x)

    for chosen in ("copied-operands", "in-place-operands"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRACEGRAPH_SCHEDULES", chosen)
            plan = tracegraph.jit(f, device="cuda").lower(TYPE).plan
        copies = [node.kind for node in plan.graph.nodes if node.kind in ("copy", "host")]
        copied = chosen == "copied-operands"
        assert copies == (["copy", "host", "copy"] if copied else ["host"])
        x = memory.array
        x[:], memory.given.calls = 0, 0
        first, second = HostExecutable(plan, order=Random(3))([x])
        assert first[0] == 0
        assert second[0] == x.size


# -- events, which others write behind -------------------------------------------------------------


def test_reads_on_both_sides_of_a_wait_are_two() -> None:
    def f(x: Any) -> Any:
        first = x.sum()
        event.wait(0x5000)
        return first, x.sum(), x + 1

    plan = tracegraph.jit(f, device="cuda").lower(TYPE).plan
    assert [node.kind for node in plan.graph.nodes] == ["kernel", "event", "kernel"]
    assert {(0, 1), (1, 2)} <= plan.graph.edges


# -- outside of jitted functions -------------------------------------------------------------------


@compiled
def test_an_eager_call_waits_for_what_runs_on_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    called_by_then: list[int] = []

    class Waiting(HostBackend):
        def synchronize(self) -> None:
            called_by_then.append(len(memory.noted))

    monkeypatch.setattr(registry, "_made", [Waiting()])
    memory.call()
    memory.call()
    assert called_by_then == [0, 1]
    assert memory.noted == [0.0, N]
