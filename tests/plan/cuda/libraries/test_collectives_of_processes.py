"""One of two processes, each with a GPU, against a driver that only logs; the other is made up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from threading import Barrier, Lock
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import mesh as mesh_backend
from lowering.backends.mesh import MeshBackend
from lowering.cuda.libraries import nccl
from lowering.cuda.streams import launched_together
from lowering.plan.nodes import launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.overrides import override
from lowering.testing.recording_backend import RecordingBackend
from tracegraph import Mesh, PartitionSpec, errors, shard
from tracegraph.concurrency.each_in_a_thread import each_in_a_thread
from tracegraph.distributed import membership

P = PartitionSpec
X = np.ones((8, 4))


class OtherProcess:
    """A channel to a process that does what this one does, on a machine of its own or not."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts, self.launches = hosts, 0
        self.told: list[Any] = []
        self.failure: BaseException | None = None
        self.stopped: dict[int, str] = {}

    def exchange(
        self, data: bytes, meeting: str, text: str, launch: int | None = None
    ) -> Sequence[bytes]:
        return [data, data]

    def new_launch(self, program: str = "") -> int:
        self.launches += 1
        return self.launches - 1

    def check(self, launch: int | None, doing: str) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, launch: int, device: int) -> None:
        self.told.append(("failed", launch, device))

    def compare(self) -> None:
        self.told.append("compare")

    def behind(self, number: int) -> Sequence[int]:
        return [1]

    def stop(self, launches: Sequence[int], name: str) -> None:
        self.told.append((name, tuple(launches)))


class FakeNccl:
    """Logs calls; the name of a communicator is text."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def get_unique_id(self) -> bytes:
        return b"here"

    def comm_get_async_error(self, communicator: Any) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


Compiled = Callable[..., tuple[OtherProcess, FakeNccl, RecordingBackend, Any]]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """A program with a loop, in the first process."""

    def made(*hosts: str, kinds: Sequence[str] = ("kernel",)) -> Any:
        other, library, backend = OtherProcess(hosts), FakeNccl(), RecordingBackend()
        me = membership._Membership(count=2, channel=other)  # type: ignore[arg-type]
        monkeypatch.setattr(membership, "_membership", me)
        monkeypatch.setattr(nccl, "_library", lambda: library)
        monkeypatch.setattr(mesh_backend, "count_gpus", lambda: 1)  # so that NCCL has all to do
        backend.device.driver.library_kinds = kinds
        mesh = Mesh(2, "of_two", device="cuda")  # a name that no other test gives
        specs = P("of_two"), (P("of_two"), P())
        mapped = shard(halve, mesh=mesh, in_specs=specs[0], out_specs=specs[1])
        with override(collectives="library"):
            plan = tracegraph.jit(mapped).lower(X).plan
        of_mesh = MeshBackend(mesh, [backend])
        executable = of_mesh.compile(plan)
        of_mesh._connected().communicators.of(0, ("of_two",))  # as a library would
        return other, library, backend, executable

    return made


def halve(x: Any) -> Any:
    def step(state: Any) -> Any:
        x, _ = state
        return 0.5 * x, tracegraph.psum(np.sum(x), "of_two")

    first: Any = x, 1.0
    return tracegraph.while_loop(lambda s: s[1] > 0, step, first, schedule="conditional")


def test_loops_in_one_kernel_open_the_memory_of_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fun(x: Any) -> Any:
        return tracegraph.fori_loop(0, 90, lambda _, y: x + tracegraph.pmean(y, "of_two"), x)

    for hosts, seen, kernels in (
        (("here", "here"), 2, 1),
        (("here", "here"), 1, 0),
        (("here", "there"), 2, 0),
    ):
        monkeypatch.setattr(mesh_backend, "count_gpus", lambda seen=seen: seen)
        other, backend = OtherProcess(hosts), RecordingBackend()
        me = membership._Membership(count=2, channel=other)  # type: ignore[arg-type]
        monkeypatch.setattr(membership, "_membership", me)
        monkeypatch.setattr(nccl, "_library", FakeNccl)
        mesh = Mesh(2, "of_two", device="cuda")
        mapped = shard(fun, mesh=mesh, in_specs=P("of_two"), out_specs=P("of_two"))
        plan = tracegraph.jit(mapped).lower(X).plan
        assert [type(n) for n in launched(plan.graph)].count(PersistentKernelNode) == kernels
        executable = MeshBackend(mesh, [backend]).compile(plan)
        calls = backend.device.driver.calls
        assert [call.operation for call in calls].count("open_shared") == kernels
        executable([X])


def test_a_process_has_one_device_and_joins_by_the_name_that_the_first_one_makes(
    compiled: Compiled,
) -> None:
    _, library, _, executable = compiled("here", "here")
    joined = ("comm_init_rank_scalable", 2, 0, 1, bytearray(b"here"), 0)
    assert [call for call in library.calls if call[0].startswith("comm_init")] == [joined]
    first, second = executable([X])
    assert [len(result.blocks) for result in (first, second)] == [1, 1]
    assert first.type.shape == (8, 4)
    assert not first.is_whole
    assert second.is_whole


def test_across_machines_the_host_drives_loops_and_takes_part_in_collectives(
    compiled: Compiled,
) -> None:
    _, _, backend, executable = compiled("here", "there", kinds=("kernel", "host"))
    with pytest.raises(errors.NoGraphError, match="the host drives its loops"):
        executable.view()
    driver = backend.device.driver
    assert not [c for c in driver.calls if c.operation == "add_captured"]
    captured = [[n.kind for n in graph.nodes].count("library") for graph in driver.graphs]
    assert max(captured) == 1
    executable([X])
    _, _, backend, executable = compiled("here", "here")
    executable.view()
    assert [c for c in backend.device.driver.calls if c.operation == "add_captured"]


def test_a_lost_process_ends_what_waits_for_it(compiled: Compiled) -> None:
    other, library, _, executable = compiled("here", "here")
    executable([X])
    other.failure = errors.PeerLostError("process 1 is lost", 1)
    with pytest.raises(errors.PeerLostError, match="process 1 is lost"):
        executable([X])
    assert ("failed", 0, 0) in other.told
    assert "comm_abort" in {call[0] for call in library.calls}
    with pytest.raises(errors.ClosedError):
        executable([X])


def test_who_waits_for_long_compares_what_was_launched(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched_together, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(launched_together, "COMPARE_SECONDS", 0.0)
    other, library, backend, executable = compiled("here", "here")
    backend.device.driver.busy = True
    x, _ = executable([X])

    def differ() -> None:
        other.failure = errors.MeshMismatchError("processes run different programs", [1])

    monkeypatch.setattr(other, "compare", differ)
    with pytest.raises(errors.MeshMismatchError):
        x.synchronize()
    assert "comm_abort" in {call[0] for call in library.calls}


def test_a_process_that_does_not_launch_in_time_is_lost(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched_together, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(launched_together, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(launched_together, "COMPARE_SECONDS", 0.0)
    monkeypatch.setenv("TRACEGRAPH_PEER_TIMEOUT", "0.01")
    other, _, backend, executable = compiled("here", "here")
    backend.device.driver.busy = True
    x, _ = executable([X])
    with pytest.raises(errors.PeerLostError, match="process 1 has not launched what this one has"):
        x.synchronize()
    assert "compare" in other.told


class Joining:
    """Communicators of several devices of each of two processes; all of a group join at once."""

    def __init__(self) -> None:
        self.barriers: defaultdict[bytes, Barrier] = defaultdict(lambda: Barrier(self.sizes.pop()))
        self.sizes: list[int] = []
        self.names = count()
        self.lock = Lock()

    def get_unique_id(self) -> bytes:
        return b"name %d" % next(self.names)

    def comm_init_rank_scalable(
        self, size: int, rank: int, _: int, name: bytearray, __: int
    ) -> Any:
        with self.lock:
            self.sizes.append(size)
            barrier = self.barriers[bytes(name)]
            assert barrier.parties == size
        barrier.wait(20)
        return bytes(name), rank


def test_processes_of_several_devices_join_each_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library, meeting, told = Joining(), Barrier(2), dict[int, bytes]()
    monkeypatch.setattr(nccl, "_library", lambda: library)

    class Process(OtherProcess):
        def __init__(self, index: int) -> None:
            super().__init__(("here", "here"))
            self.index = index

        def exchange(
            self, data: bytes, meeting_: str, text: str, launch: int | None = None
        ) -> Sequence[bytes]:
            told[self.index] = data
            meeting.wait(20)
            found = [told[0], told[1]]
            meeting.wait(20)
            return found

    communicators = []
    for index in range(2):
        me = membership._Membership(index=index, count=2, channel=Process(index))  # type: ignore[arg-type]
        monkeypatch.setattr(membership, "_membership", me)
        mesh = Mesh((2, 2), ("x", "y"), device="cuda")
        assert list(mesh.local_devices) == [2 * index, 2 * index + 1]
        communicators.append(nccl.Communicators(mesh))

    def join(device: int) -> list[Any]:
        own = communicators[device // 2]
        return [own.of(device, axes) for axes in (("x",), ("y",), ("x", "y"), ("x",))]

    found = each_in_a_thread([partial(join, device) for device in range(4)])
    names = [[made[0] for made, _ in each] for each in found]
    ranks = [[rank for _, rank in each] for each in found]
    assert ranks == [[0, 0, 0, 0], [0, 1, 1, 0], [1, 0, 2, 1], [1, 1, 3, 1]]
    along_x, along_y, all_of_them, again = zip(*names, strict=True)
    assert along_x[0] == along_x[2] != along_x[1] == along_x[3]
    assert along_y[0] == along_y[1] != along_y[2] == along_y[3]
    assert len(set(all_of_them)) == 1
    assert again == along_x


@pytest.mark.parametrize(
    ("seen", "each", "count_here", "ordinals"),
    [
        (None, 2, 2, [2, 3]),
        ("4,5", 2, 2, [0, 1]),
        ("0,1,2,3", 2, 2, [2, 3]),
        ("6", 1, 2, [0]),
        ("2,3", 1, 2, [1]),
        ("2,3", 1, 4, [0]),
    ],
)
def test_which_gpus_are_those_of_the_second_process(
    seen: str | None,
    each: int,
    count_here: int,
    ordinals: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = OtherProcess(["here"] * count_here)
    me = membership._Membership(index=1, count=count_here, local_index=1, channel=other)  # type: ignore[arg-type]
    monkeypatch.setattr(membership, "_membership", me)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if seen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert [membership.local_device(number, each) for number in range(each)] == ordinals


def test_what_another_process_stops_is_stopped_here(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched_together, "WATCH_SECONDS", 0.0)
    other, _, backend, executable = compiled("here", "here")
    driver = backend.device.driver
    driver.busy = True
    x, total = executable([X])
    other.stopped[1] = "TimeLimitError"
    for result in (x, total):
        with pytest.raises(errors.StoppedError, match="when TimeLimitError stopped"):
            result.synchronize()
    assert [call.operation for call in driver.calls].count("raise_flag") == 1
    assert not other.told


def test_a_launch_that_fails_in_one_process_is_ended_in_all(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ValueError("no room")

    other, _, backend, executable = compiled("here", "here")
    monkeypatch.setattr(backend.device.default_stream.timeline, "make_room", fail)
    with pytest.raises(ValueError, match="no room"):
        executable([X])
    assert other.told == [("ValueError", (1,)), ("failed", 0, 0)]
    other, _, backend, executable = compiled("here", "here")
    monkeypatch.setattr(backend.device.default_stream.timeline, "make_room", fail)
    other.stopped[1] = "TimeLimitError"
    with pytest.raises(errors.StoppedError, match="TimeLimitError"):
        executable([X])


def test_what_stops_a_launch_is_told_first(compiled: Compiled) -> None:
    other, _, backend, executable = compiled("here", "here")
    backend.device.driver.busy = True
    x, _ = executable([X])
    with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0):
        x.synchronize()
    assert other.told[0] == ("TimeLimitError", (1,))
