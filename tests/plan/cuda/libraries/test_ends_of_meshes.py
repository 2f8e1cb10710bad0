"""How launches on a mesh of GPUs end, against drivers that only log."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.mesh import MeshBackend
from lowering.cuda.libraries import nccl
from lowering.cuda.streams import launched_together, timeline
from lowering.testing.recording_backend import RecordingBackend
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
PAIR = Mesh(2, "x", device="cuda")
X = np.ones((8, 4))


class FakeNccl:
    """Communicators are numbers; `state` is that of all."""

    def __init__(self) -> None:
        self.state = 0
        self.aborted: list[int] = []
        self.made = 0

    def comm_init_all(self, count: int, devices: list[int]) -> list[int]:
        self.made += count
        return [*range(self.made - count, self.made)]

    def comm_get_async_error(self, communicator: int) -> int:
        return self.state

    def comm_abort(self, communicator: int) -> None:
        self.aborted.append(communicator)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


def halve(x: Any) -> Any:
    """A loop that may never end."""

    def step(state: Any) -> Any:
        x, _ = state
        return 0.5 * x, tracegraph.psum(np.sum(x), "x")

    return tracegraph.while_loop(lambda state: state[1] > 0, step, (x, 1.0))


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The drivers of two devices that are busy, the backend of both, and a program with a loop."""
    library = FakeNccl()
    monkeypatch.setattr(nccl, "_library", lambda: library)
    monkeypatch.setattr(launched_together, "WATCH_SECONDS", 0.0)
    devices = [RecordingBackend() for _ in range(2)]
    backend = MeshBackend(PAIR, devices)
    mapped = shard(halve, mesh=PAIR, in_specs=P("x"), out_specs=(P("x"), P()))
    plan = tracegraph.jit(mapped).lower(X).plan
    drivers = [device.device.driver for device in devices]

    def compiled() -> Any:
        executable = backend.compile(plan)
        backend._connected().communicators.of(0, ("x",))  # as a library would
        return executable

    def launch() -> Any:
        for driver in drivers:
            driver.busy = True
        return pair.program([X])

    pair = SimpleNamespace(
        drivers=drivers,
        library=library,
        compile=compiled,
        program=compiled(),
        launch=launch,
    )
    return pair


def raised(pair: Any) -> list[list[tuple[Any, ...]]]:
    """How often the flag of each device was raised, and whether at once."""
    return [
        [call.detail[1:] for call in driver.calls if call.operation == "raise_flag"]
        for driver in pair.drivers
    ]


@pytest.mark.parametrize("waiting", [0, 1])
def test_a_time_limit_stops_all_devices_whichever_is_waited_for(pair: Any, waiting: int) -> None:
    x, total = pair.launch()
    with tracegraph.time_limit(0), pytest.raises(errors.TimeLimitError):
        total.blocks[waiting].synchronize()
    assert raised(pair) == [[()], [()]]
    for block in (*x.blocks, *total.blocks):
        with pytest.raises(errors.StoppedError, match="TimeLimitError"):
            block.to_host()
    assert not pair.library.aborted
    pair.program([X])[0].to_host()


def test_a_time_limit_holds_for_calls_and_reads(pair: Any) -> None:
    with tracegraph.time_limit(0):
        x, _ = pair.launch()
        with pytest.raises(errors.TimeLimitError):
            x.to_host()
    with pytest.raises(errors.StoppedError):
        x.synchronize()


def assert_abandoned(pair: Any) -> None:
    """Graphs are gone, communicators aborted, and the next program has new ones."""
    assert pair.program.closed
    assert sorted(pair.library.aborted) == [0, 1]
    for driver in pair.drivers:
        assert not driver.flags
        driver.busy = False
    pair.library.state = 0
    x, _ = pair.compile()([X])
    x.to_host()
    assert pair.library.made == 4
    assert sorted(pair.library.aborted) == [0, 1]


def test_a_lost_peer_ends_all(pair: Any) -> None:
    x, _ = pair.launch()
    pair.library.state = 6
    with pytest.raises(errors.PeerLostError, match="NCCL reports error 6"):
        x.to_host()
    assert raised(pair) == [[("at once",)], [("at once",)]]
    with pytest.raises(errors.StoppedError, match="PeerLostError"):
        x.blocks[1].to_host()
    assert_abandoned(pair)


def test_a_peer_may_be_lost_while_a_call_waits(pair: Any) -> None:
    x, _ = pair.launch()
    pair.library.state = 6
    with pair.program._devices[0]._default_graph.holding, pytest.raises(errors.PeerLostError):
        x.to_host()
    assert_abandoned(pair)


def deaf(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the devices go on until they are to end at once."""
    for driver in pair.drivers:

        def raise_flag(
            pointer: int, *, at_once: bool = False, known: Any = driver.raise_flag
        ) -> None:
            if at_once:
                known(pointer, at_once=True)

        monkeypatch.setattr(driver, "raise_flag", raise_flag)


def test_devices_that_do_not_agree_are_abandoned(
    pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "STOP_SECONDS", 0.0)
    x, _ = pair.launch()
    deaf(pair, monkeypatch)
    with tracegraph.time_limit(0), pytest.raises(errors.TimeLimitError):
        x.to_host()
    assert_abandoned(pair)


def test_a_second_interrupt_abandons_the_devices(
    pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    x, _ = pair.launch()
    deaf(pair, monkeypatch)
    slept = time.sleep
    monkeypatch.setattr(timeline, "time", SimpleNamespace(**{**vars(time), "sleep": interrupt}))
    with pytest.raises(KeyboardInterrupt):
        x.to_host()
    assert time.sleep is slept
    assert_abandoned(pair)


def test_a_device_that_ends_long_after_another_is_lost(
    pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_PEER_TIMEOUT", "1e-9")
    x, _ = pair.launch()
    pair.drivers[1].busy = False
    with pytest.raises(errors.PeerLostError, match="0 had not ended 1e-09 s after another"):
        x.to_host()
    assert_abandoned(pair)


def test_an_interrupt_while_devices_are_launched_waits_for_the_last(
    pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pair.program._devices[0]
    launch = first.launch

    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return launch(*arguments)

    monkeypatch.setattr(first, "launch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pair.launch()
    assert [driver.count("launch") for driver in pair.drivers] == [1, 1]
    assert not pair.library.aborted
    monkeypatch.undo()
    for driver in pair.drivers:
        driver.busy = False
    pair.program([X])[0].to_host()


def test_a_launch_that_fails_on_one_device_ends_the_others(
    pair: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(pair.program._devices[1], "launch", launch)
    with pytest.raises(MemoryError) as caught:
        pair.launch()
    assert any("1 of the 2 devices" in note for note in caught.value.__notes__)
    assert raised(pair) == [[("at once",)], []]
    assert_abandoned(pair)
