"""Collectives of a mesh of GPUs against drivers that only log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import mesh as mesh_backend
from lowering.backends.mesh import MeshBackend
from lowering.cuda.libraries import nccl
from lowering.cuda.libraries.nccl import PreparedCollective
from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.calls.rendezvous import place
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import KernelNode, LibraryNode, walk
from lowering.plan.target.overrides import override
from lowering.testing.recording_backend import RecordingBackend
from tracegraph import Mesh, PartitionSpec, errors, shard

LIBRARY = nccl._library

P = PartitionSpec
PAIR = Mesh(2, "x", device="cuda")
X = np.ones((8, 4))


class FakeNccl:
    """Logs calls; communicators are pairs of the devices and a rank."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def comm_init_all(self, count: int, devices: list[int]) -> list[tuple[tuple[int, ...], int]]:
        self.calls.append(("comm_init_all", tuple(devices)))
        return [(tuple(devices), rank) for rank in range(count)]

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNccl]:
    fake = FakeNccl()
    monkeypatch.setattr(nccl, "_library", lambda: fake)
    with override(collectives="library"):
        yield fake


def compiled(fun: Any, mesh: Mesh, in_specs: Any, out_specs: Any, *args: Any) -> Any:
    """The backends of the devices, and the executable of all."""
    lowered = tracegraph.jit(shard(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs)).lower(
        *args
    )
    devices = [RecordingBackend() for _ in range(mesh.size)]
    return devices, MeshBackend(mesh, devices).compile(lowered.plan)


def issued(backend: RecordingBackend) -> list[str]:
    names = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "at_once"}
    return [call.operation for call in backend.device.driver.calls if call.operation in names]


def launches(backend: RecordingBackend) -> int:
    return sum(call.operation == "launch" for call in backend.device.driver.calls)


def solve(b: Any) -> Any:
    def body(state: Any) -> Any:
        x, _ = state
        before, behind = tracegraph.halo(x, "x", boundary=0.0)
        x = 0.5 * x + 0.1 * (np.concatenate([before, x[:-1]]) + np.concatenate([x[1:], behind]))
        return x, tracegraph.psum(np.sum(x * x), "x")

    return tracegraph.while_loop(
        lambda state: state[1] > 1e-3, body, (b, 1.0), schedule="conditional"
    )


def test_each_device_runs_and_captures_the_same_collectives_in_one_order() -> None:
    devices, executable = compiled(solve, PAIR, P("x"), (P("x"), P()), X)
    first, second = map(issued, devices)
    assert first == second
    assert first == 4 * ["at_once"], "two groups outside of the graph, and captured"
    assert not executable.closed
    for backend in devices:
        copies = [c for c in backend.device.driver.calls if c.operation == "add_captured"]
        assert len(copies) == 2, "the halo, and the sum with the stop flag"


def collectives(fun: Any, out_specs: Any, *args: Any) -> list[int]:
    """How many collectives each call of them carries out."""
    mapped = shard(fun, mesh=PAIR, in_specs=P("x"), out_specs=out_specs)
    nodes = walk(tracegraph.jit(mapped).lower(*args).plan.graph)
    calls = [node.call for node in nodes if isinstance(node, LibraryNode)]
    return [len(call.kinds) for call in calls if isinstance(call, CollectiveCall)]


def test_collectives_of_what_is_computed_side_by_side_are_one_call() -> None:
    def means(x: Any) -> Any:
        sums = tracegraph.psum(x.T @ x, "x")
        return sums / tracegraph.psum(np.sum(x, axis=0), "x")

    assert collectives(means, P(), np.ones((128, 64))) == [2]


def test_collectives_do_not_wait_for_work_that_can_run_beside_them() -> None:
    def powers(x: Any) -> Any:
        found = []
        for _ in range(2):
            x = x @ x
            found.append(tracegraph.psum(x, "x"))
        return tuple(found)

    assert collectives(powers, (P(), P()), np.ones((256, 128))) == [1, 1]


def test_loops_with_collectives_are_not_stopped_by_one_device_alone() -> None:
    jitted = tracegraph.jit(shard(solve, mesh=PAIR, in_specs=P("x"), out_specs=(P("x"), P())))
    assert "stopped > 1u ?" in jitted.lower(X).source
    assert "stopped ?" not in jitted.lower(X).source

    def own(b: Any) -> Any:
        b = tracegraph.while_loop(lambda b: b[0, 0] > 0, lambda b: b - 1, b)
        return tracegraph.psum(b, "x")

    jitted = tracegraph.jit(shard(own, mesh=PAIR, in_specs=P("x"), out_specs=P()))
    assert "stopped" in jitted.lower(X).source


def test_loops_in_one_kernel_need_no_library(library: FakeNccl) -> None:
    def fun(x: Any) -> Any:
        return tracegraph.fori_loop(0, 9, lambda _, y: x + tracegraph.pmean(y, "x"), x)

    with override(loops="one_kernel"):
        devices, executable = compiled(fun, PAIR, P("x"), P("x"), X)
    executable([X])
    assert (issued(devices[0]), library.calls) == ([], [])
    assert not devices[0].device.driver.count("prepare")


def test_flags_are_exchanged_behind_loops_that_end_alone() -> None:
    def fun(x: Any) -> Any:
        own = tracegraph.while_loop(lambda y: y < 1e3, lambda y: y + 1.0, x[0, 0])
        total = tracegraph.pmin(own, "x")
        return tracegraph.cond(
            total > 5, lambda: tracegraph.psum(x, "x"), lambda: tracegraph.pmean(x, "x")
        )

    plan = tracegraph.jit(shard(fun, mesh=PAIR, in_specs=P("x"), out_specs=P())).lower(X).plan
    lines = str(plan).splitlines()
    exchange = next(n for n, line in enumerate(lines) if "= " in line and " const[0]:" in line)
    decision = next(n for n, line in enumerate(lines) if "condition[1] = select(equal(" in line)
    assert max(n for n, line in enumerate(lines) if "while_loop" in line) < exchange < decision


def test_calls_get_what_the_library_needs(library: FakeNccl) -> None:
    grid = Mesh((2, 2), ("x", "y"), device="cuda")
    shared = nccl.Communicators(grid)
    place.communicators, place.device = shared, 3
    try:
        along_x, along_both = (PreparedCollective(7, _Named(axes)) for axes in (("x",), ("x", "y")))
    finally:
        place.communicators, place.device = None, 0
    along_x.all_reduce(64, 128, 5, 8, 0)
    along_both.permute(64, 128, 40, ((0, 1), (1, 2), (2, 3), (3, 0)))
    along_x.all_to_all(0, 1000, 16, 2)
    pair, every = ((1, 3), 1), ((0, 1, 2, 3), 3)
    assert library.calls == [
        ("comm_init_all", (1, 3)),
        ("comm_init_all", (0, 1, 2, 3)),
        ("all_reduce", 64, 128, 5, 8, 0, pair, 7),
        ("group_start",),
        ("send", 64, 40, 1, 0, every, 7),
        ("recv", 128, 40, 1, 2, every, 7),
        ("group_end",),
        ("group_start",),
        ("send", 0, 16, 1, 0, pair, 7),
        ("recv", 1000, 16, 1, 0, pair, 7),
        ("send", 16, 16, 1, 1, pair, 7),
        ("recv", 1016, 16, 1, 1, pair, 7),
        ("group_end",),
    ]


class _Named:
    name = "a collective"

    def __init__(self, axes: tuple[str, ...]) -> None:
        self.axes = axes


def test_dtypes_that_the_library_has_not_are_refused() -> None:
    with pytest.raises(TypeError, match="no all-reduce sum of int16; cast it to int32"):
        compiled(lambda x: tracegraph.psum(x, "x"), PAIR, P("x"), P(), X.astype(np.int16))


@pytest.mark.parametrize("missing", ["bindings", "library"])
def test_what_is_missing_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library() -> None:
        raise RuntimeError("libnccl.so.2 was not found")

    bindings = None if missing == "bindings" else SimpleNamespace(get_version=no_library)
    monkeypatch.setitem(sys.modules, "nccl", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "nccl.bindings", bindings and SimpleNamespace(nccl=bindings))
    monkeypatch.setattr(nccl, "_library", LIBRARY)
    with pytest.raises(errors.MeshDeviceError, match=r"nccl4py: pip install 'tracegraph\[mesh\]'"):
        compiled(lambda x: tracegraph.psum(x, "x"), PAIR, P("x"), P(), X)


def test_too_few_gpus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_backend, "count_gpus", lambda: 1)
    mapped = shard(lambda x: x + 1, mesh=PAIR, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(errors.MeshDeviceError, match="needs 2 GPUs, and this process sees 1"):
        tracegraph.jit(mapped)(X)


def test_other_programs_are_launched_within_a_time_limit() -> None:
    devices, executable = compiled(lambda x: tracegraph.psum(x, "x"), PAIR, P("x"), P(), X)
    with tracegraph.time_limit(60):
        executable([X])
    assert [launches(backend) for backend in devices] == [1, 1]


def test_outside_of_a_mesh_there_is_no_communicator() -> None:
    with pytest.raises(errors.MeshDeviceError, match="not on one alone"):
        PreparedCollective(7, _Named(("x",)))  # type: ignore[arg-type]


def test_a_counted_loop_makes_several_steps_without_moving_its_carry() -> None:
    def fun(x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            above, below = tracegraph.halo(x, "x", boundary=0.0)
            return np.concatenate([above, x[:-1]]) + np.concatenate([x[1:], below])

        return tracegraph.fori_loop(0, 40, step, x)

    with override(loops="unrolled", collectives="library"):
        _, executable = compiled(fun, PAIR, P("x"), P("x"), X)
    (loop,) = [node for node in executable.plan.graph.nodes if isinstance(node, WhileNode)]
    exchanges = [node for node in loop.body.nodes if isinstance(node, LibraryNode)]
    kernels = [node for node in loop.body.nodes if isinstance(node, KernelNode)]
    assert len(exchanges) > 1
    assert len(kernels) <= len(exchanges) + 1  # that of the counter; none copies
