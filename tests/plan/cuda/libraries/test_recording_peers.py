"""Loops over devices in one kernel: where it finds the others, when it is chosen, what is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.backends.mesh import MeshBackend
from lowering.codegen import unit_source
from lowering.cuda.graph.peer_links import link_peers
from lowering.cuda.libraries import nccl
from lowering.plan.calls.rendezvous import PeerMeeting
from lowering.plan.lockstep import collective_of
from lowering.plan.nodes import launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.threads import in_threads
from tests.programs.sharded import solve
from tracegraph import ArrayType, Mesh, errors, shard
from tracegraph import PartitionSpec as P

PAIR, GRID = Mesh(2, "x", device="cuda"), Mesh((2, 2), ("x", "y"), device="cuda")


def lowered(fun: Any, mesh: Mesh, specs: tuple[Any, Any], *args: Any) -> Any:
    mapped = shard(fun, mesh=mesh, in_specs=specs[0], out_specs=specs[1])
    return tracegraph.jit(mapped).lower(*args)


def kernels(plan: Plan) -> list[PersistentKernelNode]:
    return [n for n in launched(plan.graph) if isinstance(n, PersistentKernelNode)]


def on_both_axes(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return 0.1 * (tracegraph.psum(x, "y") + tracegraph.pmax(x, ("x", "y")))

    return tracegraph.fori_loop(0, 50, step, x)


def test_devices_write_where_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "_library", lambda: pytest.fail("no library takes part"))
    words: dict[tuple[int, int], list[int]] = {}

    def copy(driver: RecordingDriver, pointer: int, source: Any) -> bool:
        if source.dtype == np.uint64:
            words[drivers.index(driver), pointer] = source.tolist()
        return False

    backends = [RecordingBackend() for _ in range(GRID.size)]
    drivers = [backend.device.driver for backend in backends]
    monkeypatch.setattr(RecordingDriver, "copy_to_device", copy)
    plan = lowered(on_both_axes, GRID, (P(("x", "y")),) * 2, np.ones(4)).plan
    (kernel,) = kernels(plan)
    executable = MeshBackend(GRID, backends).compile(plan)
    assert [driver.calls[-1].operation for driver in drivers] == ["upload"] * 4
    tables = {table.axes: table for table in unit_source(plan).kernels[kernel].peers}
    starts = [min(p for d, p in words if d == number) for number in range(4)]
    first = min(table.offset for table in tables.values())
    starts = [start - first for start in starts]
    for device in range(4):
        granted = [c for c in drivers[device].calls if c.operation == "grant_access"]
        assert len(granted) == 1
        own = [2 * (device // 2), 2 * (device // 2) + 1]
        along_y = words[device, starts[device] + tables["y",].offset]
        assert along_y == [device % 2, *[starts[other] for other in own]]
        assert words[device, starts[device] + tables["x", "y"].offset] == [device, *starts]
    executable.close()


def test_no_device_is_closed_before_all_have_ended() -> None:
    """The kernel of one may still store into the memory of another one, which has ended."""
    order: list[tuple[str, int]] = []

    class Log(list[Any]):
        def __init__(self, device: int) -> None:
            self.device = device

        def append(self, call: Any) -> None:
            order.append((call.operation, self.device))

    backends = [RecordingBackend() for _ in range(2)]
    plan = lowered(solve, PAIR, (P("x"), (P("x"), P())), np.ones(40)).plan
    executable = MeshBackend(PAIR, backends).compile(plan)
    for device, backend in enumerate(backends):
        backend.device.driver.calls = Log(device)
    executable.close()
    first = min(order.index(("close", device)) for device in range(2))
    assert {("synchronize", device) for device in range(2)} <= set(order[:first])


def test_alone_there_are_no_others() -> None:
    plan = lowered(solve, PAIR, (P("x"), (P("x"), P())), np.ones(40)).plan
    unit, driver = unit_source(plan), RecordingDriver()
    memory = driver.allocate(64)
    with pytest.raises(errors.MeshDeviceError, match="on the devices of a mesh, not on one alone"):
        link_peers(unit, dict.fromkeys(unit.kernels, 0), memory, driver)


def test_who_waits_for_a_device_that_fails_gets_its_failure() -> None:
    meeting, caught = PeerMeeting({"x": 2}), []

    def work(device: int) -> None:
        try:
            assert meeting.gather(device, device) == [0, 1]
            if device == 1:
                meeting.fail(MemoryError("no memory"))
            else:
                meeting.gather(device, None)
        except MemoryError as failure:
            caught.append((device, str(failure)))

    in_threads(2, work)
    assert caught == [(0, "no memory")]


def test_the_schedule_is_that_of_the_least_time() -> None:
    """Barriers cost less than a library; large blocks take longer in one kernel than in several."""
    specs = P("x"), (P("x"), P())
    for size, schedule in (
        (1 << 10, "one_kernel"),
        (1 << 19, "one_kernel"),
        (1 << 25, "conditional"),
    ):
        plan = lowered(solve, PAIR, specs, ArrayType("float32", (size,))).plan
        chosen = [node.construct for node in plan.graph.nodes if node.construct]
        chosen += [
            node.construct for k in kernels(plan) for node in k.graph.nodes if node.construct
        ]
        assert [construct.schedule for construct in chosen] == [schedule], size


def test_devices_that_reach_no_memory_of_one_another_have_a_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert TARGET.persistent is not None
    target = replace(TARGET, persistent=replace(TARGET.persistent, exchange=None))
    monkeypatch.setattr(MeshBackend, "target", target)

    def twice(schedule: Any) -> Any:
        def halved(i: Any, x: Any) -> Any:
            return 0.25 * tracegraph.psum(x, "x")

        return lambda x: tracegraph.fori_loop(0, 50, halved, x, schedule=schedule)

    assert "unrolled" in lowered(twice(None), PAIR, (P("x"), P("x")), np.ones(2)).explain()
    with pytest.raises(errors.UnschedulableError, match="reach no memory of one another"):
        lowered(twice("one_kernel"), PAIR, (P("x"), P("x")), np.ones(2))


def test_what_is_large_is_left_to_the_library() -> None:
    def gather(schedule: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return 0.5 * tracegraph.pmax(x, "x")

        return lambda x: tracegraph.fori_loop(0, 9, step, x, schedule=schedule)

    explained = lowered(gather(None), PAIR, (P("x"), P("x")), np.ones(1 << 19)).explain()
    assert "unrolled" in explained
    assert "part of the kernel" not in explained
    with pytest.raises(errors.UnschedulableError, match="a collective inside of more than 1 MB"):
        lowered(gather("one_kernel"), PAIR, (P("x"), P("x")), np.ones(1 << 19))


def test_explain_says_how_devices_exchange() -> None:
    text = lowered(solve, PAIR, (P("x"), (P("x"), P())), np.ones(60)).explain()
    rows = [line for line in text.splitlines() if "part of the kernel" in line]
    assert len(rows) == 3, "rows of both neighbours at once, and two sums"
    assert all("devices store into the memory of one another" in row for row in rows)


def test_kernels_that_wait_for_others_run_in_one_order() -> None:
    """Side by side, each device might begin with another one."""

    def both(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return 0.1 * tracegraph.psum(x, "x")

        loops = [tracegraph.fori_loop(0, n, step, x + n) for n in (50, 60)]
        return *loops, tracegraph.pmax(x, "x")

    plan = lowered(both, PAIR, (P("x"), (P("x"), P("x"), P())), np.ones(2)).plan
    graph = plan.launch_graph
    meeting = [i for i, n in enumerate(graph.nodes) if n in kernels(plan) or collective_of(n)]
    assert len(meeting) == 3
    assert {*pairwise(meeting)} <= graph.edges


def test_a_mesh_of_one_device_has_nobody_to_grant_access() -> None:
    alone, backend = Mesh(1, "x", device="cuda"), RecordingBackend()
    plan = lowered(solve, alone, (P("x"), (P("x"), P())), np.ones(40)).plan
    assert len(kernels(plan)) == 1
    MeshBackend(alone, [backend]).compile(plan).close()
    assert "grant_access" not in [call.operation for call in backend.device.driver.calls]
