"""Waiting for loops, stopping them, and hearing of what programs report, without a GPU."""

import gc
import signal
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from lowering.cuda.effects import progress as watching
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.streams import shutdown, timeline
from lowering.lower import lower
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import walk
from lowering.testing.call_log import InjectedError
from lowering.testing.recorded_objects import RecordedHostMemory
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import VECTOR, diamond, effects
from tracegraph import fori_loop, jit
from tracegraph.errors import StepLimitError, StoppedError, TimeLimitError
from tracegraph.limits import time_limit


class Bench:
    """An executable with effects and one without, on one recording device."""

    def __init__(self, callback=None):
        self.driver = RecordingDriver()
        self.backend = RecordingBackend(self.driver)
        self.device = self.backend.device
        self.loop = self.backend.compile(effects(callback))
        self.plain = self.backend.compile(diamond())

    def array(self):
        return self.device.pool.buffer(VECTOR)

    def mailbox(self):
        """The memory in which kernels report failures."""
        (check,) = [node for node in self.driver.graphs[0].nodes if "check" in node.name]
        (found,) = [m for m in self.driver.live_memory if m.pointer == check.values[-1]]
        return found

    def words(self):
        """What kernels write to: the failure, and the steps of the monitor."""
        return self.mailbox().bytes.view(np.int64)

    def operations(self, start=0):
        return [call.operation for call in self.driver.calls[start:]]


def replace_sleep(monkeypatch, sleep):
    """Let waits sleep otherwise, but not the thread that shows progress."""
    clock = SimpleNamespace(sleep=sleep, perf_counter=time.perf_counter, monotonic=time.monotonic)
    monkeypatch.setattr(timeline, "time", clock)


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def interrupted(monkeypatch):
    """The first sleep of a wait is interrupted, as by Ctrl-C, even where a shell ignores that."""
    waits = iter([True])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(seconds):
        if next(waits, False):
            signal.raise_signal(signal.SIGINT)
        time.sleep(seconds)

    replace_sleep(monkeypatch, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def test_without_loops_in_flight_a_wait_is_one_blocking_call(bench):
    (result,) = bench.plain([bench.array()])
    before = len(bench.driver.calls)
    result.synchronize()
    assert bench.operations(before) == ["synchronize"]
    result.to_host()
    assert bench.operations(before) == ["synchronize", "copy_to_host"]


def test_loops_are_waited_for_by_asking(bench):
    (result,) = bench.loop([bench.array()])
    before = len(bench.driver.calls)
    result.synchronize()
    assert bench.operations(before) == ["record"]
    before = len(bench.driver.calls)
    result.synchronize()
    assert bench.operations(before) == ["synchronize"]


def test_an_interrupt_stops_the_loops_and_the_next_call_works(bench, interrupted):
    x = bench.array()
    bench.driver.busy = True
    (result,) = bench.loop([x])
    (follower,) = bench.plain([result])
    (other,) = bench.plain([x])
    before = len(bench.driver.calls)
    with pytest.raises(KeyboardInterrupt):
        result.synchronize()
    after = bench.operations(before)
    assert [name for name in after if name != "record"] == ["raise_flag", "clear"]
    assert bench.driver.flags == set()
    for array in (result, follower):
        for use in (CudaBuffer.to_host, CudaBuffer.synchronize, CudaBuffer.check):
            with pytest.raises(StoppedError, match="KeyboardInterrupt"):
                use(array)
        with pytest.raises(StoppedError):
            bench.plain([array])
        with pytest.raises(StoppedError):
            _ = array.__cuda_array_interface__
    other.to_host()
    x.to_host()
    bench.loop([x])[0].to_host()


def test_what_was_finished_before_the_stop_is_kept(bench, interrupted):
    (finished,) = bench.loop([bench.array()])
    bench.driver.busy = True
    (running,) = bench.loop([finished])
    with pytest.raises(KeyboardInterrupt):
        finished.synchronize()
    finished.to_host()
    with pytest.raises(StoppedError):
        running.to_host()


def test_a_time_limit_stops_the_loops(bench):
    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    with time_limit(0.002), pytest.raises(TimeLimitError):
        result.to_host()
    assert bench.driver.count("raise_flag") == 1
    with pytest.raises(StoppedError, match="TimeLimitError"):
        result.to_host()


def test_a_second_interrupt_leaves_the_flag_down(bench, monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    replace_sleep(monkeypatch, interrupt)
    monkeypatch.setattr(bench.driver, "raise_flag", lambda *_, **__: None)  # the drain takes long
    with pytest.raises(KeyboardInterrupt):
        result.synchronize()
    assert bench.operations()[-2:] == ["clear", "record"]
    monkeypatch.undo()
    bench.driver.busy = False
    with pytest.raises(StoppedError):
        result.to_host()
    bench.loop([bench.array()])[0].to_host()


@pytest.mark.parametrize("operation", ["raise_flag", "clear", "record"])
def test_a_failure_while_stopping_leaves_the_device_usable(bench, interrupted, operation):
    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    calls = {"raise_flag": 2, "clear": 3, "record": 4}
    bench.driver.fail_at = len(bench.driver.calls) + calls[operation]
    with pytest.raises(InjectedError, match=operation):
        result.synchronize()
    bench.driver.busy = False
    (again,) = bench.loop([bench.array()])
    assert bench.driver.flags == set()
    again.to_host()
    with pytest.raises(StoppedError):
        result.to_host()


def test_a_launch_that_fails_is_not_in_flight(bench, monkeypatch):
    def fail(executable):
        raise InjectedError

    monkeypatch.setattr(bench.driver, "_launch", fail)
    bench.driver.busy = True
    with pytest.raises(InjectedError):
        bench.loop([bench.array()])
    assert not bench.device.timeline.busy


def test_a_failure_is_raised_by_the_next_wait_and_once(bench):
    (result,) = bench.loop([bench.array()])
    bench.words()[0] = 2
    with pytest.raises(StepLimitError, match="too many"):
        result.to_host()
    result.to_host()
    bench.plain([result])[0].synchronize()


def test_a_failure_is_raised_by_a_wait_for_a_later_launch(bench):
    bench.loop([bench.array()])
    bench.words()[0] = 1
    (later,) = bench.plain([bench.array()])
    with pytest.raises(StepLimitError):
        later.synchronize()
    later.synchronize()


def test_a_failure_is_not_raised_while_another_program_is_built(bench):
    (result,) = bench.loop([bench.array()])
    bench.words()[0] = 1
    bench.backend.compile(diamond())
    with pytest.raises(StepLimitError):
        result.synchronize()


def test_a_failure_of_a_stopped_launch_is_dropped(bench, interrupted):
    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    bench.words()[0] = 1
    with pytest.raises(KeyboardInterrupt):
        result.synchronize()
    bench.loop([bench.array()])[0].synchronize()


def test_what_was_not_waited_for_is_heard_at_the_end(bench):
    shutdown.shut_down(bench.device.timeline)
    bench.loop([bench.array()])
    bench.words()[0] = 1
    with pytest.raises(StepLimitError):
        shutdown.shut_down(bench.device.timeline)
    shutdown.shut_down(bench.device.timeline)


def test_many_launches_behind_a_loop_wait_where_signals_are_handled(bench, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_QUEUED", 3)
    bench.driver.busy = True
    bench.loop([bench.array()])
    x = bench.array()
    for _ in range(3):
        bench.plain([x])
    with time_limit(0), pytest.raises(TimeLimitError):
        bench.plain([x])
    bench.plain([x])[0].to_host()


def test_large_arrays_are_not_copied_behind_loops_uninterruptibly(bench):
    bench.driver.busy = True
    bench.loop([bench.array()])
    with time_limit(0), pytest.raises(TimeLimitError):
        bench.device.timeline.write(256, np.zeros(1 << 20))
    assert bench.driver.calls[-1].operation != "copy_to_device"


def test_a_callback_sees_counts_rise_and_its_error_is_raised_by_the_wait(monkeypatch):
    monkeypatch.setattr(watching, "INTERVAL", 0.001)
    seen, enough = [], threading.Event()

    def callback(step, total):
        seen.append((step, total))
        if step == 3:
            enough.set()
            raise LookupError("from the callback")

    bench = Bench(callback)
    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    words = bench.words()
    words[1] = 1
    while not seen:
        time.sleep(0.001)
    words[1] = 3
    assert enough.wait(10)
    bench.driver.busy = False
    assert seen == [(1, 5), (3, 5)]
    with pytest.raises(LookupError):
        result.synchronize()
    result.synchronize()


def test_a_callback_that_nothing_else_refers_to_is_told_of_a_launch_in_flight(monkeypatch):
    monkeypatch.setattr(watching, "INTERVAL", 0.001)
    seen = []

    class Told:
        def __call__(self, step, total):
            seen.append((step, threading.current_thread().name))

    callback = Told()
    bench, told = Bench(callback), weakref.ref(callback)
    words, before = bench.words(), set(threading.enumerate())
    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    (thread,) = set(threading.enumerate()) - before
    del callback, bench.loop
    bench.driver.graphs.clear()
    gc.collect()
    assert told() is not None
    words[1] = 2
    while not seen:
        time.sleep(0.001)
    bench.driver.busy = False
    words[1] = 5
    result.synchronize()
    assert seen[0] == (2, "tracegraph-progress")
    assert seen[-1][0] == 5
    del result
    thread.join(10)  # it may be looking still
    bench.plain([bench.array()])
    gc.collect()
    assert told() is None


def test_the_thread_keeps_no_callback_while_it_sleeps(monkeypatch):
    naps, wake = iter(range(2)), threading.Event()
    asleep = threading.Event()
    others = set(threading.enumerate())  # threads of earlier tests may be looking still

    def sleep(seconds):
        if threading.current_thread() in others:
            time.sleep(seconds)
        elif next(naps, None) == 1:
            asleep.set()
            assert wake.wait(10)

    monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=sleep))

    class Told:
        def __call__(self, step, total):
            pass

    bench = Bench(Told())
    told = weakref.ref(bench.loop.plan.monitors[0].callback)
    bench.driver.busy = True
    (result,) = bench.loop([bench.array()])
    assert asleep.wait(10)  # behind its first look
    bench.driver.busy = False
    result.synchronize()
    del result, bench.loop
    bench.driver.graphs.clear()
    bench.plain([bench.array()])
    gc.collect()
    assert told() is None
    wake.set()


def test_a_callback_may_launch_while_another_thread_does(monkeypatch):
    monkeypatch.setattr(watching, "INTERVAL", 0.001)
    told, meanwhile, over = (threading.Event() for _ in range(3))

    def callback(step, total):
        told.set()
        assert meanwhile.wait(10)
        bench.plain([x])
        over.set()

    bench = Bench(callback)
    x = bench.array()
    bench.driver.busy = True
    bench.loop([x])
    bench.words()[1] = 1
    assert told.wait(10)
    thread = threading.Thread(target=bench.loop, args=[[x]], daemon=True)
    thread.start()
    thread.join(0.1)  # it holds what launches need, and asks for the watch, where that is held
    meanwhile.set()
    assert over.wait(10)
    thread.join(10)
    assert not thread.is_alive()
    bench.driver.busy = False


def test_the_last_count_is_shown_before_a_wait_returns(monkeypatch):
    monkeypatch.setattr(watching, "INTERVAL", 1)
    seen = []
    bench = Bench(lambda step, total: seen.append(step))
    (result,) = bench.loop([bench.array()])
    bench.words()[1] = 5
    result.synchronize()
    assert seen == [5]


def test_the_steps_of_a_loop_without_a_node_are_told_before_a_wait_returns():
    seen = []

    def run(x):
        def told(step, total):
            seen.append((step, total))

        return fori_loop(0, 3, lambda i, x: x + i, x, progress=told)

    plan = lower(jit(run, device="host").trace(VECTOR).optimized, "cuda")
    assert not any(isinstance(node, WhileNode) for node in walk(plan.graph))
    backend = RecordingBackend()
    device = backend.device
    (result,) = backend.compile(plan)([device.pool.buffer(VECTOR)])
    (mailbox,) = (m for m in device.driver.live_memory if isinstance(m, RecordedHostMemory))
    mailbox.bytes.view(np.int64)[1] = 3
    result.synchronize()
    assert seen == [(3, 3)]


def test_the_thread_ends_when_nothing_is_watched(monkeypatch):
    monkeypatch.setattr(watching, "INTERVAL", 0.001)
    bench, before = Bench(), set(threading.enumerate())
    bench.loop([bench.array()])
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    thread.join(10)
    assert not thread.is_alive()
    bench.loop([bench.array()])[0].synchronize()


def test_pinned_memory_goes_with_the_graph_and_the_device():
    bench = Bench()
    mailbox = weakref.ref(bench.mailbox())
    bench.loop.close()
    bench.driver.graphs.clear()
    del bench.loop
    gc.collect()
    assert mailbox() is None
    driver = bench.driver
    del bench
    gc.collect()
    assert len(driver.live_memory) == 0


def test_a_stop_before_the_first_loop_of_a_device_has_nothing_to_do(bench):
    with time_limit(0):
        bench.plain([bench.array()])[0].to_host()
    assert bench.driver.count("raise_flag") == 0
