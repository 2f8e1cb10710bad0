"""Callbacks of a device without a GPU: tests write into the ring what kernels would."""

import ctypes
import gc
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

from lowering.cuda.effects.ring import HEAD
from lowering.cuda.streams import shutdown
from lowering.plan.records.call_records import ANSWERED, ASKED, FAILED, FIRST, LAST
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.running import lowered
from tests.helpers.threads import in_threads
from tests.programs.hand_made_plans import VECTOR, callbacks, diamond, effects, nested_loops
from tracegraph import debug, fori_loop, limits
from tracegraph.errors import (
    CallbackDeadlockError,
    CallbackResultError,
    CallbackTimeoutError,
    DeviceLostError,
    ExportError,
    StoppedError,
    TimeLimitError,
)
from tracegraph.staging import gc_pause
from tracegraph.streams import stream

SECONDS = 60
"""Tests wait for threads no longer, and fail then."""


class Bench:
    """An executable whose kernels call back, on one recording device."""

    def __init__(self, tell=lambda x: (), ask=lambda x: (x,), limit=None, driver=None):
        self.driver = driver or RecordingDriver()
        self.backend = RecordingBackend(self.driver)
        self.timeline = self.backend.device.timeline
        self.executable = self.backend.compile(callbacks(tell, ask, limit))
        self.ring = self.timeline.callbacks.ring
        self.answers = 0

    def launch(self):
        (result,) = self.executable([self.backend.device.pool.buffer(VECTOR)])
        return result

    def tell(self, value):
        """Send a call without an answer."""
        send(self.ring, 1, value)

    def ask(self, value):
        """Send a call with an answer; its words, and its number."""
        self.answers += 1
        head = self.answer_memory().bytes[:32].view(np.uint64)
        head[ASKED] = self.answers
        send(self.ring, 2, value, self.answers)
        return head, self.answers

    def answer_memory(self):
        node = next(n for n in self.driver.graphs[0].nodes if "ask" in n.name)
        return next(m for m in self.driver.live_memory if m.pointer == node.values[-1])

    def answer(self, value):
        """Send a call, wait for the answer as a kernel does; its values, None if it has none."""
        head, number = self.ask(value)
        wait_until(lambda: head[ANSWERED] == number)
        if head[FAILED]:
            return None
        return self.answer_memory().bytes[32:].view(np.float64).copy()


def send(ring, site, value, number=0):
    """What a kernel does: one frame in the ring, which does not wrap around here."""
    words = ring.memory.bytes.view(np.uint64)
    start, content = int(words[HEAD]), VECTOR.nbytes
    at = 4 + start // 8
    words[at : at + 4] = site, content, FIRST | LAST, number
    words[at + 4 : at + 4 + content // 8].view(np.float64)[:] = value
    words[HEAD] = start + 32 + -(-content // 32) * 32


def wait_until(holds):
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(1e-4)


@pytest.fixture(autouse=True)
def no_pause_is_left():
    """Threads end the pauses of their launches soon after these."""
    wait_until(gc.isenabled)
    yield
    wait_until(gc.isenabled)


def test_calls_are_made_in_order_on_a_thread_of_ours_and_waited_for():
    made = []
    bench = Bench(lambda x: made.append((x[0], threading.current_thread().name)) or ())
    result = bench.launch()
    for value in range(20):
        bench.tell(value)
    result.synchronize()
    assert made == [(value, "tracegraph-callbacks") for value in range(20)]
    result = bench.launch()
    bench.tell(20)
    result.to_host()
    assert made[-1][0] == 20


def test_answers_arrive_while_the_launch_is_in_flight():
    bench = Bench(ask=lambda x: (x * 2,))
    bench.driver.busy = True
    result = bench.launch()
    for value in range(5):
        np.testing.assert_array_equal(bench.answer(value), np.full(VECTOR.shape, 2.0 * value))
    bench.driver.busy = False
    result.synchronize()


def test_between_calls_the_thread_asks_the_driver_for_nothing():
    """A call of the driver may be held up by another that waits for the kernel that waits."""
    asked = []

    class Driver(RecordingDriver):
        def record(self):
            event = super().record()
            return lambda: asked.append(threading.current_thread().name) or event()

        def _log(self, *call):
            asked.append(threading.current_thread().name)
            return super()._log(*call)

    bench = Bench(driver=Driver())
    bench.driver.busy = True
    result = bench.launch()
    assert bench.timeline.busy
    for value in range(5):
        assert bench.answer(value) is not None
    assert asked
    assert "tracegraph-callbacks" not in asked
    assert bench.ring.ended == 0
    bench.driver.busy = False
    assert bench.ring.ended == 1
    result.synchronize()


def test_an_error_is_raised_once_by_the_next_wait_with_its_own_traceback():
    bad = [True]

    def write(x):
        if bad:
            raise OSError(f"no room for {x[0]:g}")
        return ()

    bench = Bench(write)
    result = bench.launch()
    bench.tell(1)
    bench.tell(2)  # not made: the first has failed
    with pytest.raises(OSError, match="no room for 1") as caught:
        result.synchronize()
    assert "write" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    result.synchronize()
    bad.clear()
    result = bench.launch()
    bench.tell(3)
    result.synchronize()


def test_an_error_stops_what_runs_and_answers_without_values():
    def fail(x):
        raise ZeroDivisionError("in the function")

    bench = Bench(ask=fail)
    bench.driver.busy = True
    result = bench.launch()
    assert bench.answer(1) is None
    assert bench.answer(2) is None
    with pytest.raises(ZeroDivisionError, match="in the function"):
        result.synchronize()
    assert not bench.driver.busy, "the stop flag was raised"
    with pytest.raises(StoppedError):
        result.to_host()
    bench.launch().synchronize()


def test_calls_of_a_program_that_was_stopped_are_left_out_and_later_ones_made():
    made = []

    def tell(x):
        made.append(x[0])
        if x[0] == 1:
            raise OSError("once")
        return ()

    bench = Bench(tell)
    bench.driver.busy = True
    result = bench.launch()
    bench.tell(1)
    bench.tell(2)
    with pytest.raises(OSError, match="once"):
        result.synchronize()
    result = bench.launch()
    bench.tell(3)
    result.synchronize()
    assert made == [1, 3]


def test_an_answer_of_another_type_is_an_error():
    bench = Bench(ask=lambda x: (x[:2],))
    result = bench.launch()
    assert bench.answer(1) is None
    with pytest.raises(CallbackResultError, match=r"result of ask must be of type f64\[1000\]"):
        result.synchronize()


def test_a_wait_gives_up_on_an_answer_after_the_time_limit_of_the_callback():
    stuck, asked = threading.Event(), []

    def ask(x):
        asked.append(x[0])
        if x[0] == 1:
            stuck.wait(SECONDS)
        return (x,)

    bench = Bench(ask=ask, limit=0.05)
    bench.driver.busy = True
    result = bench.launch()
    head, number = bench.ask(1)
    with pytest.raises(CallbackTimeoutError, match=r"ask did not answer within 0.05 s"):
        result.synchronize()
    result = bench.launch()  # another thread makes the calls now
    np.testing.assert_array_equal(bench.answer(2), np.full(VECTOR.shape, 2.0))
    stuck.set()
    result.synchronize()
    assert asked == [1, 2]
    assert head[ANSWERED] != number


def test_a_time_limit_of_the_wait_stops_the_launch():
    bench = Bench()
    bench.driver.busy = True
    result = bench.launch()
    with limits.time_limit(0.01), pytest.raises(TimeLimitError):
        result.synchronize()
    assert not bench.driver.busy


def test_a_wait_for_slow_calls_keeps_the_time_limit():
    slow = threading.Event()
    bench = Bench(lambda x: slow.wait(SECONDS) and ())
    result = bench.launch()
    bench.tell(1)
    with limits.time_limit(0.01), pytest.raises(TimeLimitError):
        result.synchronize()
    slow.set()
    result.synchronize()


def test_a_callback_launches_on_a_stream_of_its_own_and_waits_for_it():
    used = []
    bench = Bench()
    other = bench.backend.compile(diamond())

    def tell(x):
        result = other([np.zeros(t.shape, t.dtype) for t in other.plan.in_types])[0]
        result.synchronize()
        used.append(result.timeline is bench.timeline)
        return ()

    bench = Bench(tell)
    other = bench.backend.compile(diamond())
    result = bench.launch()
    bench.tell(1)
    result.synchronize()
    assert used == [False]


def test_while_a_callback_waits_calls_are_taken_and_answered():
    bench, entered = None, threading.Event()

    def tell(x):
        if x[0] == 1:
            entered.set()
            bench.timeline.settle()  # waits for the program that calls, which goes on
        return ()

    bench = Bench(tell, lambda x: (x * 3,))
    bench.driver.busy = True
    result = bench.launch()
    bench.tell(1)
    assert entered.wait(SECONDS)
    np.testing.assert_array_equal(bench.answer(4), np.full(VECTOR.shape, 12.0))
    bench.tell(5)
    wait_until(lambda: bench.ring.tail == bench.ring.head)
    bench.driver.busy = False
    result.synchronize()


def test_while_a_callback_waits_for_one_of_its_own_calls_are_answered():
    entered, answered = threading.Event(), threading.Event()

    def tell(x):
        if x[0] == 2:  # of the program that the callback launches
            assert answered.wait(SECONDS)
        if x[0] == 1:
            (result,) = bench.executable([np.zeros(VECTOR.shape)])
            send(result.timeline.callbacks.ring, 1, 2.0)
            entered.set()
            result.synchronize()
        return ()

    bench = Bench(tell, lambda x: (x * 3,))
    result = bench.launch()
    bench.tell(1)
    assert entered.wait(SECONDS)
    np.testing.assert_array_equal(bench.answer(4), np.full(VECTOR.shape, 12.0))
    answered.set()
    result.synchronize()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", [diamond, effects, nested_loops])
def test_what_a_kernel_waits_for_must_not_wait_for_the_device(make, compiled):
    def ask(x):
        other = known or bench.backend.compile(make())
        other([np.zeros(t.shape, t.dtype) for t in other.plan.in_types])
        return (x,)

    bench = Bench(ask=ask)
    known = bench.backend.compile(make()) if compiled else None
    bench.driver.busy = True
    result = bench.launch()
    assert bench.answer(1) is None
    with pytest.raises(CallbackDeadlockError, match=r"answer of ask.*device=.host"):
        result.synchronize()


@pytest.mark.parametrize("make", [effects, nested_loops])
def test_programs_with_loops_or_prints_wait_for_no_program_that_waits_for_them(make):
    def tell(x):
        other([np.zeros(t.shape, t.dtype) for t in other.plan.in_types])  # builds the graph
        return ()

    def ask(x):
        tell(x)
        return (x,)

    bench = Bench(tell, ask)
    other = bench.backend.compile(make())
    result = bench.launch()
    bench.tell(1)
    result.synchronize()
    other([np.zeros(t.shape, t.dtype) for t in other.plan.in_types])  # the stream before
    bench.driver.busy = True
    result = bench.launch()
    assert bench.answer(2) is None
    with pytest.raises(CallbackDeadlockError, match="run one after the other"):
        result.synchronize()


def test_a_callback_may_wait_for_its_own_stream():
    bench = None
    bench = Bench(lambda x: bench.timeline.wait() or ())
    result = bench.launch()
    bench.tell(1)
    result.synchronize()


def test_calls_of_many_threads_are_all_made(monkeypatch):
    monkeypatch.setenv("TRACEGRAPH_CALLBACK_BUFFER_BYTES", str(4 << 20))
    made = []
    bench = Bench(lambda x: made.append(x[0]) or ())
    lock = threading.Lock()

    def work(number):
        for turn in range(10):
            with lock:
                result = bench.launch()
                bench.tell(number * 10 + turn)
            result.synchronize()
            assert number * 10 + turn in made

    in_threads(16, work)
    assert sorted(made) == list(range(160))


def test_a_wait_is_for_calls_whose_launch_another_thread_drains():
    slow, made = threading.Event(), []
    bench = Bench(lambda x: slow.wait(SECONDS) and (made.append(x[0]) or ()))
    result = bench.launch()
    bench.tell(1)
    other = threading.Thread(target=result.synchronize)
    other.start()
    wait_until(lambda: not bench.timeline.undrained)
    timer = threading.Timer(0.05, slow.set)
    timer.start()
    result.synchronize()
    assert made == [1]
    other.join(SECONDS)
    timer.join()


def test_each_stream_has_its_own_ring_and_thread():
    made = []
    bench = Bench(lambda x: made.append(threading.current_thread()) or ())
    result = bench.launch()
    bench.tell(1)
    other = bench.driver.create_stream()
    with stream(other):
        (second,) = bench.executable([np.zeros(VECTOR.shape)])
    assert second.timeline is not bench.timeline
    assert second.timeline.callbacks.ring is not bench.ring
    result.synchronize()
    second.synchronize()
    assert len(made) == 1


def test_the_thread_ends_when_there_is_nothing_to_do(monkeypatch):
    from lowering.cuda.effects import callback_thread as module

    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    bench = Bench()
    bench.launch().synchronize()
    wait_until(lambda: bench.timeline.callbacks._thread is None)
    result = bench.launch()
    bench.tell(1)
    result.synchronize()


def test_an_error_ends_a_loop_that_the_host_drives():
    def fail(x):
        raise OSError("in a loop")

    def f(x):
        return fori_loop(0, 10_000, lambda i, x: (debug.callback(fail, x), x + 1)[1], x)

    driver = RecordingDriver()
    backend = RecordingBackend(driver, lacks=["conditional_nodes"])
    executable = backend.compile(lowered(f, np.zeros(VECTOR.shape), device="cuda").plan)
    driver.busy = True
    ring = backend.device.timeline.callbacks.ring
    kernel = threading.Timer(0.05, send, (ring, 1, 1.0))
    kernel.start()
    with pytest.raises(OSError, match="in a loop"):
        executable([np.zeros(VECTOR.shape)])
    kernel.join()
    assert not driver.busy


def test_functions_go_with_the_executable():
    class Function:
        def __call__(self, x):
            return ()

    function = Function()
    gone = weakref.ref(function)
    bench = Bench(function)
    result = bench.launch()
    bench.tell(1)
    result.synchronize()
    del function, result
    bench.executable.close()
    bench.executable = None
    bench.timeline.callbacks.finish(())
    gc.collect()
    wait_until(lambda: gc.collect() is not None and gone() is None)
    bench.tell(1)
    bench.timeline.callbacks.finish(())


def test_the_slots_name_what_callbacks_use():
    bench = Bench()
    text = str(bench.executable.slots)
    for name in ("callback ring", "callback tell", "callback ask", "answer", "user data"):
        assert name in text


def test_a_host_node_is_ordered_and_owns_its_data():
    bench = Bench()
    tell, ask, call = bench.driver.graphs[0].nodes
    assert (call.kind, call.dependencies) == ("host", (ask,))
    assert ask.dependencies == (tell,)
    function, argument = call.values
    assert function == 1 << 40
    gc.collect()
    assert ctypes.string_at(argument, 4) == b"data"


def test_programs_that_call_back_are_not_exported():
    bench = Bench()
    with pytest.raises(ExportError, match="calls back"):
        bench.executable.export_graph([np.zeros(VECTOR.shape)])


def test_at_exit_calls_are_made_and_nobody_waits_for_one_that_hangs(monkeypatch, capsys):
    monkeypatch.setattr(shutdown, "EXIT_SECONDS", SECONDS)
    made, stuck = [], threading.Event()

    def tell(x):
        if x[0] == 2:
            stuck.wait(SECONDS)
        made.append(x[0])
        return ()

    bench = Bench(tell)
    bench.launch()
    bench.tell(1)
    shutdown.shut_down(bench.timeline)
    assert made == [1]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(shutdown, "EXIT_SECONDS", 0.1)
    bench = Bench(tell)
    bench.launch()
    bench.tell(2)
    shutdown.shut_down(bench.timeline)
    assert made == [1]
    assert "tracegraph: tell had not returned 0.1 s after the end" in capsys.readouterr().err
    stuck.set()


def test_at_exit_a_launch_that_waits_for_an_answer_is_stopped(monkeypatch, capsys):
    monkeypatch.setattr(shutdown, "EXIT_SECONDS", 0.1)
    stuck = threading.Event()
    bench = Bench(ask=lambda x: (stuck.wait(SECONDS) and x,))
    bench.driver.busy = True
    bench.launch()
    bench.ask(1)
    shutdown.shut_down(bench.timeline)
    assert not bench.driver.busy
    assert "callbacks still ran 0.1 s after the end" in capsys.readouterr().err
    stuck.set()


def test_an_error_at_exit_is_raised():
    def fail(x):
        raise OSError("disk full")

    bench = Bench(fail)
    bench.launch()
    bench.tell(1)
    with pytest.raises(OSError, match="disk full"):
        shutdown.shut_down(bench.timeline)


class Blocking:
    """Garbage that takes as long to free as a kernel waits for its answer."""

    def __init__(self, answered, freed, seconds=0.5):
        self.itself, self.answered, self.freed, self.seconds = self, answered, freed, seconds

    def __del__(self):
        self.freed.append(self.answered.wait(self.seconds))


@pytest.fixture
def eager_collector():
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)


def test_no_garbage_is_collected_before_the_answers_of_a_launch(eager_collector):
    answered, freed = threading.Event(), []
    bench = Bench(ask=lambda x: (Blocking(answered, freed), (x,))[1])
    bench.driver.busy = True
    result = bench.launch()
    for value in range(3):
        assert bench.answer(value) is not None
        assert not freed
    answered.set()
    bench.driver.busy = False
    result.synchronize()
    wait_until(gc.isenabled)
    gc.collect()
    assert freed == [True] * 3


def test_garbage_is_collected_after_an_answer_that_does_not_come():
    stuck = threading.Event()
    bench = Bench(ask=lambda x: (stuck.wait(SECONDS) and x,), limit=0.02)
    bench.driver.busy = True
    result = bench.launch()
    bench.ask(1)
    with pytest.raises(CallbackTimeoutError):
        result.synchronize()
    wait_until(gc.isenabled)
    stuck.set()


def test_garbage_that_is_due_at_the_end_of_a_launch_holds_up_no_later_one(eager_collector):
    answered, freed = threading.Event(), []
    bench = Bench(ask=lambda x: (x[0] == 1 and Blocking(answered, freed, SECONDS), (x,))[1])
    bench.driver.busy = True
    bench.launch()
    assert bench.answer(1) is not None
    bench.driver.busy = False
    wait_until(gc.isenabled)
    bench.driver.busy = True
    result = bench.launch()
    assert bench.answer(2) is not None
    answered.set()
    bench.driver.busy = False
    result.synchronize()
    wait_until(lambda: freed == [True])


def test_launches_that_end_at_once_leave_neither_a_pause_nor_the_next_without_a_thread():
    bench = Bench()
    for value in range(2):
        result = bench.launch()
        wait_until(gc.isenabled)
        assert bench.answer(value) is not None
        result.synchronize()


def test_a_thread_that_is_held_up_is_replaced(monkeypatch):
    from lowering.cuda.effects import callback_thread as module

    held, sleep = threading.Event(), time.sleep

    def asleep(seconds):
        if threading.current_thread().name == "tracegraph-callbacks" and not entered:
            entered.append(seconds)
            held.wait(SECONDS)
        sleep(seconds)

    entered = []
    monkeypatch.setattr(module, "HELD_UP_SECONDS", 0.02)
    monkeypatch.setattr(module.time, "sleep", asleep)
    bench = Bench()
    bench.driver.busy = True
    result = bench.launch()
    wait_until(lambda: entered)
    waiting = threading.Thread(target=result.synchronize)
    waiting.start()
    assert bench.answer(1) is not None
    held.set()
    assert bench.answer(2) is not None
    bench.driver.busy = False
    waiting.join(SECONDS)
    assert not waiting.is_alive()


def test_a_launch_for_which_no_thread_starts_leaves_nothing_behind(monkeypatch):
    def no_thread(thread):
        raise RuntimeError("can't start new thread")

    bench = Bench()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            bench.launch()
    assert gc.isenabled()
    bench.driver.busy = True
    result = bench.launch()
    assert bench.answer(1) is not None
    bench.driver.busy = False
    result.synchronize()
    wait_until(gc.isenabled)


@pytest.mark.parametrize("interrupted", ["wait", "write_word"])
def test_an_interrupt_of_a_launch_ends_what_it_began(monkeypatch, interrupted):
    """Before the launch, in the wait for the thread; and behind it."""
    bench = Bench()
    calls, write = bench.timeline.callbacks, bench.driver.write_word

    def interrupt(*given):
        if given:
            write(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    where = (bench.driver, "write_word") if interrupted == "write_word" else (calls._ready, "wait")
    monkeypatch.setattr(*where, interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench.launch()
    wait_until(gc.isenabled)
    bench.driver.busy = True
    result = bench.launch()
    assert bench.answer(1) is not None
    bench.driver.busy = False
    result.synchronize()


@pytest.mark.parametrize("seen", ["by a wait", "by a launch"])
def test_garbage_is_collected_after_a_device_is_lost(seen):
    lost = []

    class Driver(RecordingDriver):
        def record(self):
            event = super().record()

            def passed():
                if lost:
                    raise DeviceLostError("CUDA_ERROR_LAUNCH_FAILED")
                return event()

            return passed

    bench = Bench(driver=Driver())
    bench.driver.busy = True
    result = bench.launch()
    assert not gc.isenabled()
    lost.append(True)
    with pytest.raises(DeviceLostError):
        result.synchronize() if seen == "by a wait" else bench.launch()
    wait_until(gc.isenabled)


def test_pauses_of_several_threads_end_with_the_last():
    """What is collected may be freed by the driver, which waits for the kernel that waits."""
    first, second = gc_pause.paused(), gc_pause.paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    inside = gc.isenabled()
    second.__exit__(None, None, None)
    assert not inside
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_pause.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
