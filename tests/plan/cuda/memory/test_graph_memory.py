"""Scratch that each launch allocates: its nodes, what holds it, and room for it."""

from dataclasses import replace

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.backends.host import HostBackend
from lowering.cuda.libraries.cublas import WORKSPACE_BYTES, Cublas
from lowering.cuda.memory.graph_memory import GRANULE
from lowering.cuda.streams.owned_stream import OwnedStream
from lowering.host import arena
from lowering.legalization.legalize import legalize, needed_features
from lowering.plan.reports.explain import explain
from lowering.plan.target.features import Features
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import (
    VECTOR,
    arguments_of,
    diamond,
    nested_loops,
    products,
    products_per_launch,
)
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.errors import OutOfMemoryError
from tracegraph.staging import executable_cache


def per_launch(plan):
    return replace(plan, per_launch=True)


# ---- the graph ----


def test_all_that_uses_scratch_stands_between_the_nodes_that_allocate_and_free_it():
    backend = RecordingBackend()
    plan = products_per_launch()
    backend.compile(plan)
    allocate, *between, free = backend.device.driver.graphs[0].nodes
    nbytes = plan.arena_bytes + WORKSPACE_BYTES
    assert (allocate.kind, allocate.name) == ("memory", f"allocate {nbytes}")
    assert (free.kind, free.name) == ("memory", f"free {nbytes}")
    assert [node.kind for node in between] == [
        "kernel", "library", "library", "kernel", "while", "kernel",
    ]  # fmt: skip
    assert all(allocate in node.behind() for node in between)
    assert free.behind() == {allocate, *between, free}
    assert [node for node in between if allocate in node.dependencies] == [between[0], between[3]]


def test_kernels_point_into_the_memory_that_the_launch_has():
    backend = RecordingBackend()
    driver, made = backend.device.driver, []
    driver.add_memory, add = lambda *args: made.append(add(*args)) or made[-1], driver.add_memory
    plan = per_launch(diamond())
    backend.compile(plan)
    (memory,) = made
    kernels = [node for node in driver.graphs[0].nodes if node.kind == "kernel"]
    pointed = {value for node in kernels for value in node.values if value}
    assert pointed == {memory.pointer + offset for offset in plan.offsets.values()}


def test_products_that_run_before_the_first_launch_touch_no_scratch():
    backend = RecordingBackend()
    driver, run = backend.device.driver, []
    library = driver.library(Cublas)
    library.multiply, multiply = lambda gemm: run.append(gemm) or multiply(gemm), library.multiply
    driver.add_memory, add = lambda *args: run.append(add(*args)) or run[-1], driver.add_memory
    backend.compile(products_per_launch())
    memory, *gemms = run
    inside = [
        [memory.pointer <= address < memory.pointer + memory.nbytes for address in (g.a, g.b, g.c)]
        for g in gemms
    ]
    assert inside == [[False] * 3, [True] * 3] * 3  # each first outside, then captured


def test_an_executable_holds_no_scratch():
    backend = RecordingBackend()
    kept, idle = backend.compile(products()), backend.compile(products_per_launch())
    assert backend.device.memory_stats()["arenas"] == sum(
        memory.nbytes for memory in kept._default_graph.memory
    )
    assert idle._default_graph.memory == ()
    assert sum(kept.pieces().values()) - sum(idle.pieces().values()) >= WORKSPACE_BYTES
    assert idle.slots.nbytes == kept.slots.nbytes - kept._default_graph.memory[0].nbytes
    table = str(idle.slots)
    assert "arena" not in table
    assert "library workspace" not in table
    nbytes = WORKSPACE_BYTES + products().arena_bytes
    assert [node.name for node in idle.slots.nodes if node.kind == "memory"] == [
        f"allocate {nbytes:,} B",
        f"free {nbytes:,} B",
    ]


def test_a_plan_without_scratch_has_no_memory_nodes():
    def double(x):
        return 2 * x

    plan = tracegraph.jit(double, scratch="per_launch").lower(VECTOR).plan
    assert plan.per_launch
    assert plan.arena_bytes == 0
    backend = RecordingBackend()
    executable = backend.compile(plan)
    executable(arguments_of(executable))
    assert [node.kind for node in backend.device.driver.graphs[0].nodes] == ["kernel"]
    assert executable._default_graph.plain


def test_one_executable_serves_calls_with_other_addresses():
    backend = RecordingBackend()
    driver = backend.device.driver
    executable = backend.compile(per_launch(diamond()))
    arrays = [backend.device.pool.buffer(VECTOR) for _ in range(3)]
    for _ in range(10):
        for x in arrays:
            (y,) = executable([x])
            nodes = [n for n in driver.graphs[0].nodes if n.kind == "kernel"]
            assert x.pointer in nodes[0].values
            assert y.pointer in nodes[-1].values
    assert driver.count("instantiate") == 1  # CUDA allows no other
    assert driver.count("launch") == 30


def test_an_exported_graph_allocates_its_scratch_as_well():
    backend = RecordingBackend()
    executable = backend.compile(per_launch(diamond()))
    arrays = backend.device.memory_stats()["arrays"]
    exported = executable.export_graph(arguments_of(executable))
    kinds = [node.kind for node in exported.definition.nodes]
    assert kinds == ["memory", "kernel", "kernel", "kernel", "kernel", "memory"]
    stats = backend.device.memory_stats()
    assert stats["arenas"] == 0
    assert stats["arrays"] > arrays  # the copied argument, and the result


# ---- where there are no memory nodes ----


def test_without_memory_nodes_scratch_is_kept_and_explain_says_so():
    backend = RecordingBackend(lacks=["memory_nodes"])
    executable = backend.compile(per_launch(diamond()))
    assert not executable.plan.per_launch
    assert backend.device.memory_stats()["arenas"] > 0
    told = explain(executable.plan)
    assert told.splitlines()[-1] == "scratch: kept between launches: no memory nodes here"
    executable(arguments_of(executable))


def test_launches_that_the_host_drives_keep_their_scratch():
    backend = RecordingBackend(lacks=["conditional_nodes"])
    executable = backend.compile(per_launch(nested_loops()))
    assert backend.device.driver.count("add_memory") == 0
    told = explain(executable.plan)
    assert told.splitlines()[-1] == "scratch: kept between launches: the host drives the loops"


def test_memory_nodes_are_asked_for_where_they_are_wanted():
    assert "memory_nodes" not in needed_features(products())
    assert "memory_nodes" in needed_features(products_per_launch())
    assert legalize(products_per_launch(), Features()).per_launch


# ---- room ----


class Full(RecordingDriver):
    """A device of ten granules, of whose graphs nothing is left when they are closed."""

    def __init__(self):
        super().__init__(memory=10 * GRANULE)

    def allocate(self, nbytes):
        self.graphs.clear()
        return super().allocate(nbytes)


@pytest.fixture
def device(monkeypatch):
    """A recorded GPU, on which functions for "cuda:0" run."""
    backend = RecordingBackend(Full())
    monkeypatch.setattr(lowering, "backend", lambda _: backend)
    monkeypatch.setattr(executable_cache, "_cached", ConcurrentWeakSet())
    return backend.device


def scratch_of(granules, **options):
    """A function whose launches need as much scratch, and no more than a number otherwise."""

    def f(x):
        grid = tracegraph.numpy.cumsum(tracegraph.numpy.zeros(granules * GRANULE // 8) + x)
        return grid[::-1].sum() + grid[0]

    f.__name__ = f.__qualname__ = f"f{granules}"
    return tracegraph.jit(f, device="cuda:0", **options)


def test_a_launch_that_finds_its_memory_kept_asks_no_more(device):
    f = scratch_of(4, scratch="per_launch")
    f(1.0)
    asked = []
    device.driver.memory_info, ask = lambda: asked.append(1) or ask(), device.driver.memory_info
    f(2.0)
    assert not asked
    assert device.driver.graph_memory() >= 4 * GRANULE
    device.trim()
    assert device.driver.graph_memory() == 0
    f(3.0)
    assert asked


def test_memory_that_is_not_there_is_missed_before_the_launch(device):
    f = scratch_of(6, scratch="per_launch")
    f(1.0)
    hog = device.heap.allocate(3 * GRANULE, "arrays")
    f(1.0)  # it is kept
    device.trim()
    more = device.heap.allocate(2 * GRANULE, "arrays")
    launched = device.driver.count("launch")
    with pytest.raises(OutOfMemoryError) as raised:
        f(1.0)
    assert device.driver.count("launch") == launched
    assert raised.value.nbytes >= 6 * GRANULE
    assert "f6" in str(raised.value)
    assert "graph memory 0" in str(raised.value)
    del more
    f(1.0)
    assert device.driver.count("launch") == launched + 1
    del hog


def test_what_idle_executables_hold_makes_room(device):
    table = np.ones(6 * GRANULE // 8)
    held = tracegraph.jit(lambda x: (table * x).sum(), device="cuda:0")
    held(1.0)
    f = scratch_of(5, scratch="per_launch")
    f(1.0)
    assert held.stats()["evictions"] == 1
    assert f.stats()["evictions"] == 0


def test_scratch_that_is_kept_for_graphs_makes_room_for_arrays(device):
    f = scratch_of(8, scratch="per_launch")
    f(1.0)
    hog = device.heap.allocate(7 * GRANULE, "arrays")
    assert device.driver.graph_memory() == 0
    assert f.stats()["evictions"] == 0
    del hog


def test_functions_of_one_stream_use_the_same_memory_in_turn(device):
    f, g = (scratch_of(n, scratch="per_launch") for n in (7, 6))
    for _ in range(3):
        f(1.0), g(1.0)
    assert f.stats()["evictions"] == g.stats()["evictions"] == 0
    assert device.driver.count("trim") == 0
    assert 7 * GRANULE <= device.driver.graph_memory() < 8 * GRANULE


def test_streams_have_each_their_own(device):
    f = scratch_of(4, scratch="per_launch")
    with tracegraph.stream(OwnedStream(device)):
        f(1.0)
    f(1.0)
    assert device.driver.count("add_memory") == 2
    assert 8 * GRANULE <= device.driver.graph_memory() < 10 * GRANULE


def test_a_stream_is_not_given_what_another_one_keeps(device):
    f = scratch_of(6, scratch="per_launch")
    f(1.0)
    with tracegraph.stream(OwnedStream(device)):
        f(1.0)
    assert 6 * GRANULE <= device.driver.graph_memory() < 8 * GRANULE


# ---- functions ----


def test_what_is_held_does_not_count_scratch():
    def f(x):
        return tracegraph.numpy.cumsum(x)[::-1] * 2 + x

    kept, idle = (tracegraph.jit(f, device="host", scratch=s) for s in ("kept", "per_launch"))
    x = np.arange(1000.0)
    np.testing.assert_array_equal(kept(x), idle(x))
    held = kept.stats()["bytes_held"]
    assert held >= 8000
    assert idle.stats()["bytes_held"] == 0
    compiled = idle.lower(x).compile()
    assert compiled.memory["scratch"] == held
    assert compiled.slots.nbytes == 0
    assert "\nscratch: allocated and freed by each launch" in compiled.explain()
    assert "arena: 8192 bytes in each launch" in str(idle.lower(x))
    assert sum(compiled.executable.pieces().values()) == 0


def test_the_host_gives_scratch_back_after_each_call():
    def f(x):
        return tracegraph.numpy.cumsum(x)[::-1] * 2 + x

    x = np.arange(1.0, 10_001.0)
    executable = HostBackend().compile(tracegraph.jit(f, scratch="per_launch").lower(x).plan)
    expected = np.cumsum(x)[::-1] * 2 + x
    for _ in range(3):
        np.testing.assert_array_equal(executable([x])[0], expected)
        assert not executable._arena.any()  # fresh pages


def test_where_the_host_cannot_give_memory_back_it_is_kept(monkeypatch):
    monkeypatch.setattr("lowering.host.executable.RETURNABLE", False)
    compiled = tracegraph.jit(lambda x: x.sum() * x, device="host", scratch="per_launch")
    told = compiled.lower(np.ones(9)).compile().explain()
    assert "scratch: kept between launches: no madvise on this system" in told
    assert arena.RETURNABLE


def test_another_way_to_hold_scratch_is_refused():
    with pytest.raises(ValueError, match="scratch='pooled': it is 'kept' or 'per_launch'"):
        tracegraph.jit(lambda x: x, scratch="pooled")
