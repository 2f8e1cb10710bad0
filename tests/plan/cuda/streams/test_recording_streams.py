"""Calls on several streams: what waits for what, checked against the log of a driver."""

import gc
import random
from contextlib import nullcontext
from dataclasses import replace

import pytest

import tracegraph
from lowering.cuda.memory.cross_stream import CrossStreamUse
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.streams.exclusive_use import ExclusiveUse
from lowering.cuda.streams.stream_table import StreamTable
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, PrintedArray, PrintNest
from lowering.plan.nodes import KernelNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.stream_order import LateDriver, unordered
from tests.helpers.threads import in_threads
from tests.programs.hand_made_plans import (
    LINE,
    VECTOR,
    copy_kernel,
    copy_plan,
    diamond,
    effects,
    in_place_plan,
    plan,
)
from tracegraph.current_stream import current_stream
from tracegraph.errors import CapturingStreamError, StoppedError, TimeLimitError
from tracegraph.ir.effects import PrintFormat
from tracegraph.ir.scalar import const
from tracegraph.staging.calls.donated import Donated


def printing_plan():
    """One kernel, and one that prints."""
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    show = PrintNest((), 0, (PrintedArray((), const(1)),))
    nodes = [copy_kernel(y, x), KernelNode(Kernel("show", (show,)), LINE)]
    made = plan(nodes, set(), [x], [y], name="printing")
    return replace(made, prints=(PrintFormat("{}", 1, (), LINE[0]),))


class Streams:
    """Executables with scratch memory, some without, that print, and in place, on one device."""

    def __init__(self, driver, in_place=0):
        self.driver = driver
        self.backend = RecordingBackend(driver)
        self.device = self.backend.device
        plans = [diamond(), diamond(), copy_plan(), printing_plan()]
        plans += [in_place_plan() for _ in range(in_place)]
        self.executables = [self.backend.compile(made) for made in plans]
        if isinstance(driver, LateDriver):
            driver.executables += self.executables

    def array(self):
        return self.device.pool.buffer(VECTOR)

    def run(self, executable, arguments, stream):
        if stream is None:
            return executable(arguments)[0]
        with tracegraph.stream(stream):
            return executable(arguments)[0]

    def donate(self, executable, arguments, stream):
        """The same for an argument that nothing else needs, unless somebody has it."""
        arrays = [tracegraph.Array(argument) for argument in arguments]
        donated = Donated()
        donated.take([0], arrays, arguments, "in_place")
        with tracegraph.stream(stream) if stream else nullcontext():
            return executable(arguments, donated)[0]


def run_at_random(seed, in_place=0):
    """The driver after calls with a random function, argument and stream each."""
    choose = random.Random(seed)
    bench = Streams(LateDriver(), in_place)
    alive = [bench.array() for _ in range(3)]
    for _ in range(400):
        executable, stream = choose.choice(bench.executables), choose.choice([None, 8, 9])
        if executable.plan.aliases and len(alive) > 1:
            given = [alive.pop(choose.randrange(len(alive)))]
            alive.append(bench.donate(executable, given, stream))
        else:
            alive.append(bench.run(executable, [choose.choice(alive)], stream))
        while len(alive) > 5:
            alive.pop(choose.randrange(len(alive)))
    return bench.driver


@pytest.mark.parametrize("seed", range(4))
def test_no_memory_is_used_on_two_streams_at_once(seed):
    driver = run_at_random(seed)
    assert len(driver.accesses) == 400
    assert {call.stream for call in driver.calls} == {1, 8, 9}
    assert unordered(driver) is None


@pytest.mark.parametrize("seed", range(4))
def test_no_memory_is_overwritten_while_another_stream_uses_it(seed):
    driver = run_at_random(seed, in_place=4)
    launches = [p for p, call in enumerate(driver.calls) if call.operation == "launch"]
    in_place = [p for p in launches if not driver.accesses[p][0].isdisjoint(driver.accesses[p][1])]
    assert len(launches) == 400
    assert len(in_place) > driver.count("copy") + 20
    assert driver.count("copy") > 20
    assert unordered(driver) is None


def test_scratch_of_all_streams_in_one_place_is_found(monkeypatch):
    opened = StreamTable._open

    def sharing(self, driver, foreign):
        return replace(opened(self, driver, foreign), arenas=self._default.arenas)

    monkeypatch.setattr(StreamTable, "_open", sharing)
    assert unordered(run_at_random(0)) is not None


def test_other_streams_must_be_done_with_it(monkeypatch):
    monkeypatch.setattr(CrossStreamUse, "over", True)
    assert unordered(run_at_random(0, in_place=4)) is not None


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (LateDriver, "wait"),
        (ExclusiveUse, "enter"),
        (CudaBuffer, "used_at"),
        (CudaBuffer, "awaited_by"),
    ],
)
def test_each_precaution_is_needed(owner, name, monkeypatch):
    monkeypatch.setattr(owner, name, lambda self, other: None)
    assert unordered(run_at_random(0)) is not None


def test_threads_on_streams():
    bench = Streams(LateDriver())

    def work(number):
        x = bench.array() if number % 3 == 0 else None
        for call in range(1000):
            if x is None:
                x = bench.array()
            x = bench.run(bench.executables[call % 4], [x], [None, 8, 9][number % 3])

    in_threads(16, work)
    assert sum(e.stats()["launches"] for e in bench.executables) == 16_000
    assert unordered(bench.driver) is None


def test_the_default_stream_alone_needs_no_events():
    bench = Streams(RecordingDriver())
    x = bench.array()
    start = len(bench.driver.calls)
    bench.run(bench.executables[0], [x], None)
    bench.run(bench.executables[1], [x], None)
    assert not {"record", "wait"} & {call.operation for call in bench.driver.calls[start:]}


def test_an_argument_is_waited_for_once():
    bench = Streams(LateDriver())
    x = bench.array()
    first = bench.run(bench.executables[0], [x], 8)
    bench.run(bench.executables[2], [first], 9)
    assert bench.driver.calls[-2].operation == "launch"
    assert "wait" in [call.operation for call in bench.driver.calls]
    start = len(bench.driver.calls)
    bench.run(bench.executables[2], [first], 9)
    assert "wait" not in [call.operation for call in bench.driver.calls[start:]]


def test_consumers_wait_by_an_event():
    bench = Streams(LateDriver())
    x = bench.run(bench.executables[0], [bench.array()], 8)
    assert x.__cuda_array_interface__["stream"] == 8
    start = len(bench.driver.calls)
    x.hand_over(8)
    assert len(bench.driver.calls) == start
    x.hand_over(77)
    assert str(bench.driver.calls[-1]).endswith(" 77")
    assert bench.driver.calls[-1].operation == "hand_over"
    assert bench.driver.count("synchronize") == 0


def test_a_stop_reaches_other_streams():
    """What waits for loops on another stream has no result either; later launches run."""
    bench = Streams(RecordingDriver())
    loop = bench.backend.compile(effects())
    for stream in (8, 9):  # a graph is not made while loops are in flight
        bench.run(loop, [bench.array()], stream)
        bench.run(bench.executables[0], [bench.array()], stream)
    with tracegraph.stream(8):
        bench.device.streams.of(current_stream()).driver.busy = True
        endless = loop([bench.array()])[0]
    dependent = bench.run(bench.executables[0], [endless], 9)
    independent = bench.run(bench.executables[1], [bench.array()], None)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        dependent.synchronize()
    for stopped in (endless, dependent):
        with pytest.raises(StoppedError):
            stopped.synchronize()
    independent.synchronize()
    assert not bench.driver.flags
    bench.run(loop, [bench.array()], 9).synchronize()


def test_memory_of_a_forgotten_stream():
    bench = Streams(LateDriver())
    x = bench.array()
    kept = bench.run(bench.executables[0], [x], 1000)
    for handle in range(100, 300):
        bench.run(bench.executables[0], [x], handle)
    assert len(bench.device.streams) < 100
    assert kept.to_host().shape == VECTOR.shape
    del kept, x
    gc.collect()
    bench.device.heap.trim()
    assert unordered(bench.driver) is None


# Captures by other code


class Foreign:
    """An array of another library, whose stream the stream of a call has to wait for."""

    __cuda_array_interface__ = {  # noqa: RUF012
        "typestr": "<f8",
        "shape": VECTOR.shape,
        "data": (1 << 40, False),
        "version": 3,
    }


class CapturedForeignDriver(RecordingDriver):
    """Its streams are drawn into the capture of the library that an array comes from."""

    def foreign(self, array, *, ordered=True):
        found = super().foreign(array, ordered=ordered)
        if found is not None:
            self.captured_streams.add(self.stream)
        return found


def test_an_argument_that_comes_with_a_capture_is_refused_before_it_is_used():
    driver = CapturedForeignDriver()
    backend = RecordingBackend(driver)
    executable = backend.compile(diamond())
    foreign = [Foreign() for _ in executable.plan.inputs]
    before = len(driver.calls)
    with pytest.raises(CapturingStreamError, match="comes from a stream that is being captured"):
        executable(foreign)
    assert [call.operation for call in driver.calls[before:]] == ["foreign"]
    assert executable.stats()["launches"] == 0
