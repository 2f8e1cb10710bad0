"""The order in which threads launch the devices of meshes, against drivers that only log."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.mesh import MeshBackend
from lowering.cuda.libraries import nccl
from lowering.mesh import building
from lowering.mesh.building import each_built
from lowering.plan.calls.rendezvous import place
from lowering.plan.target.features import override
from lowering.testing.recording_backend import RecordingBackend
from tracegraph import Mesh, PartitionSpec, errors, shard
from tracegraph.concurrency import hold_ups

P = PartitionSpec
X = np.ones(4)
SECONDS = 20
"""Longer than anything here takes that works."""


class FakeNccl:
    """Communicators are numbers."""

    def comm_init_all(self, count: int, devices: list[int]) -> list[int]:
        return devices

    def comm_get_async_error(self, communicator: int) -> int:
        return 0

    def comm_abort(self, communicator: int) -> None:
        """There is nothing to end."""


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "_library", FakeNccl)


def compiled(shape: Any = 2, names: Any = "x") -> Any:
    """A program on two devices, with a loop."""
    mesh = Mesh(shape, names, device="cuda")

    def fun(x: Any) -> Any:
        return tracegraph.while_loop(
            lambda x: tracegraph.psum(x.sum(), "x") > 0,
            lambda x: 0.5 * x,
            x,
            schedule="conditional",
        )

    mapped = tracegraph.jit(shard(fun, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    return MeshBackend(mesh, [RecordingBackend() for _ in range(2)]).compile(mapped.lower(X).plan)


def before(
    executable: Any, device: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let something happen just before a device is launched."""
    part = executable._devices[device]
    launch = part.launch

    def launched(*arguments: Any) -> Any:
        act()
        return launch(*arguments)

    monkeypatch.setattr(part, "launch", launched)


def driven() -> Any:
    """A program whose loop the host drives."""
    with override(conditional_nodes=False):
        return compiled()


def await_others() -> None:
    """As a loop that the host drives, which waits for a collective."""
    for _ in range(100 * SECONDS):
        Event().wait(0.01)
        place.together.watch_within()


@pytest.mark.parametrize("waiting", [0, 1])
def test_devices_whose_loops_the_host_drives_do_not_wait_for_one_another(
    waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable, launched = driven(), Event()
    before(executable, 1 - waiting, launched.set, monkeypatch)
    before(executable, waiting, lambda: launched.wait(SECONDS), monkeypatch)
    (x,) = executable([X])
    assert launched.is_set()
    assert len(x.blocks) == 2


def test_what_ends_one_of_them_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemoryError

    for act, failure in (
        (fail, MemoryError),
        (partial(signal.raise_signal, signal.SIGINT), KeyboardInterrupt),
    ):
        executable = driven()
        before(executable, 0, await_others, monkeypatch)
        before(executable, 1, act, monkeypatch)
        with pytest.raises(failure):
            executable([X])
        assert executable.closed, "the devices are abandoned"


def test_a_time_limit_ends_what_the_host_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = driven()
    for part in executable._devices:
        part._default_graph._stream.driver.busy = True
    with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0.05):
        executable([X])
    assert executable.closed


def test_threads_launch_on_common_devices_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = compiled(), compiled((2, 1), ("x", "y"))
    second, launches = Thread(target=other, args=([X],)), list[str]()

    def begin_the_second() -> None:
        second.start()
        second.join(0.1)

    before(one, 1, begin_the_second, monkeypatch)
    for name, executable in (("one", one), ("other", other)):
        for device in range(2):
            before(executable, device, partial(launches.append, name), monkeypatch)
    one([X])
    second.join()
    assert launches == ["one", "one", "other", "other"]


@pytest.mark.parametrize("fails", [False, True])
def test_what_may_wait_for_a_device_is_put_off_until_all_are_launched(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable, done = compiled(), list[str]()

    def load() -> None:
        with hold_ups.alone_in_driver():
            done.append("loaded")

    loading = Thread(target=load)

    def drop() -> None:
        dropping = Thread(target=hold_ups.free, args=(partial(done.append, "freed"),))
        dropping.start()
        dropping.join()
        loading.start()
        with hold_ups.alone_in_driver():
            done.append("launched")
        if fails:
            raise MemoryError

    before(executable, 1, drop, monkeypatch)
    with pytest.raises(MemoryError) if fails else nullcontext():
        executable([X])
    loading.join()
    assert done[0] == "launched"
    assert sorted(done) == ["freed", "launched", "loaded"]
    assert executable.closed == fails


def test_what_a_call_that_was_put_off_raises_is_of_no_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executable, ignored = compiled(), list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", lambda given: ignored.append(given.exc_type))

    def fails() -> None:
        raise errors.CleanUpWarning("memory", "cuMemFree", "CUDA_ERROR_UNKNOWN", "unknown")

    def drop() -> None:
        dropping = Thread(target=hold_ups.free, args=(fails,))
        dropping.start()
        dropping.join()

    before(executable, 1, drop, monkeypatch)
    executable([X])
    assert ignored == [errors.CleanUpWarning]
    with pytest.raises(errors.CleanUpWarning):
        hold_ups.free(fails)
    assert ignored == [errors.CleanUpWarning]


def test_a_build_that_fails_on_one_device_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "GRACE_SECONDS", 0.0)
    aborted, ended = Event(), list[BaseException]()

    def make(number: int) -> int:
        if number:
            raise MemoryError
        return int(aborted.wait(SECONDS))

    def abandon(failure: BaseException) -> None:
        ended.append(failure)
        aborted.set()

    with pytest.raises(MemoryError) as caught:
        each_built(make, 2, lambda: None, lambda: True, abandon)
    assert ended == [caught.value]


def test_a_build_ends_with_a_lost_process_or_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "GRACE_SECONDS", 0.0)
    aborted = Event()

    def lost() -> None:
        raise errors.PeerLostError("process 1 is lost", 1)

    def abandon(_: BaseException) -> None:
        aborted.set()

    for look, failure in ((lost, errors.PeerLostError), (lambda: None, KeyboardInterrupt)):
        aborted.clear()

        def make(_: int, failure: Any = failure) -> bool:
            if failure is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            return aborted.wait(SECONDS)

        with pytest.raises(failure):
            each_built(make, 1, look, lambda: True, abandon)


def test_devices_that_wait_for_long_inside_of_the_library_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    communicators = nccl.Communicators(Mesh(2, "x", device="cuda"))
    with communicators.meets(1, "while NCCL connects devices 0, 1"):
        communicators.check_meetings()
        monkeypatch.setenv("TRACEGRAPH_PEER_TIMEOUT", "1e-9")
        with pytest.raises(errors.PeerLostError, match=r"device 1 has waited .* while NCCL conn"):
            communicators.check_meetings()
    communicators.check_meetings()
