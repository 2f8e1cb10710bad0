"""Shutdown without a GPU: what is in flight is drained or stopped, and waited for only so long."""

import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest

from lowering.cuda.effects.ring import HEAD
from lowering.cuda.streams import shutdown
from lowering.testing.recorded_objects import RecordedEvent
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import VECTOR, effects, nested_loops
from tracegraph.errors import DeviceLostError, StepLimitError, StoppedError


@pytest.fixture
def backend():
    return RecordingBackend(RecordingDriver())


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(shutdown, "EXIT_SECONDS", 0.05)


def launch(backend, plan):
    executable = backend.compile(plan)
    device = backend.device
    return executable, executable([device.pool.buffer(t) for t in plan.in_types])[0]


def print_number(backend, number):
    """Put into the ring what the first print of the device makes of a number."""
    words = backend.device.timeline.prints.memory.bytes.view(np.uint64)
    start = 4 + int(words[HEAD]) // 8
    words[start : start + 3] = 1, 32, number
    words[HEAD] += 32


def failure_word(backend, graph=0):
    """Where kernels of a graph report a failure; the steps that they count follow."""
    nodes = backend.device.driver.graphs[graph].nodes
    (check,) = [node for node in nodes if "check" in node.name]
    (found,) = [m for m in backend.device.driver.live_memory if m.pointer == check.values[-1]]
    return found.bytes.view(np.int64)


def test_an_endless_loop_that_prints_is_cut_and_a_line_says_so(backend, short, capsys):
    kept, result = launch(backend, effects())
    backend.device.driver.busy = True
    kept([backend.device.pool.buffer(VECTOR)])
    print_number(backend, 7)
    shutdown.shut_down(backend.device.timeline)
    assert not backend.device.driver.busy
    out, err = capsys.readouterr()
    assert out == "n = 7\n"
    assert err.startswith("tracegraph: effects still ran 0.05 s after the end of the script")
    assert err.count("\n") == 1
    result.to_host()  # it had ended before
    shutdown.shut_down(backend.device.timeline)
    assert capsys.readouterr() == ("", "")


def test_what_a_loop_prints_while_it_is_stopped_is_shown(backend, short, monkeypatch, capsys):
    kept, _ = launch(backend, effects())
    driver = backend.device.driver
    driver.busy = True
    kept([backend.device.pool.buffer(VECTOR)])
    raise_flag = driver.raise_flag

    def print_and_end(pointer, **how):
        print_number(backend, 9)
        raise_flag(pointer, **how)

    monkeypatch.setattr(driver, "raise_flag", print_and_end)
    shutdown.shut_down(backend.device.timeline)
    assert capsys.readouterr().out == "n = 9\n"


def test_a_loop_that_ends_in_time_says_all(backend, capsys):
    executable = backend.compile(effects())
    backend.device.driver.busy = True
    (result,) = executable([backend.device.pool.buffer(VECTOR)])

    def end():
        time.sleep(0.02)
        print_number(backend, 3)
        backend.device.driver.busy = False

    thread = threading.Thread(target=end)
    thread.start()
    shutdown.shut_down(backend.device.timeline)
    thread.join()
    assert capsys.readouterr() == ("n = 3\n", "")
    assert backend.device.driver.count("raise_flag") == 0
    result.to_host()


def test_loops_that_report_nothing_are_not_waited_for(backend, capsys):
    executable, _ = launch(backend, nested_loops())
    backend.device.driver.busy = True
    (result, *_) = executable([backend.device.pool.buffer(t) for t in executable.plan.in_types])
    before = backend.device.driver.count("raise_flag")
    shutdown.shut_down(backend.device.timeline)
    assert backend.device.driver.count("raise_flag") == before + 1
    assert capsys.readouterr() == ("", "")
    with pytest.raises(StoppedError, match="SystemExit"):
        result.to_host()


def test_an_interrupt_ends_the_wait_and_shows_what_was_printed(backend, monkeypatch, capsys):
    kept, _ = launch(backend, effects())
    driver = backend.device.driver
    driver.busy = True
    kept([backend.device.pool.buffer(VECTOR)])
    print_number(backend, 5)

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(backend.device.timeline), "settle", interrupt)
    with pytest.raises(KeyboardInterrupt):
        shutdown.shut_down(backend.device.timeline)
    assert not driver.busy
    assert capsys.readouterr() == ("n = 5\n", "")


def test_one_failure_is_raised_as_it_is_and_several_as_a_group(backend):
    def told(step, total):
        raise LookupError("from the callback")

    kept, _ = launch(backend, effects())
    failure_word(backend)[0] = 1
    with pytest.raises(StepLimitError):
        shutdown.shut_down(backend.device.timeline)
    other, _ = launch(backend, effects(told))
    kept([backend.device.pool.buffer(VECTOR)])
    words = failure_word(backend, 1)
    words[0] = words[1] = 1
    failure_word(backend)[0] = 1
    with pytest.raises(BaseExceptionGroup, match="at exit") as group:
        shutdown.shut_down(backend.device.timeline)
    assert {type(e) for e in group.value.exceptions} == {LookupError, StepLimitError}
    del other


def test_a_device_that_fails_does_not_keep_the_process(backend, short, monkeypatch):
    kept, _ = launch(backend, effects())
    backend.device.driver.busy = True
    kept([backend.device.pool.buffer(VECTOR)])

    def fail(*_):
        raise RuntimeError("the device is lost")

    for operation in ("raise_flag", "record", "synchronize"):
        monkeypatch.setattr(backend.device.driver, operation, fail)
    with pytest.raises(BaseException, match=r"lost|at exit"):
        shutdown.shut_down(backend.device.timeline)


@pytest.mark.parametrize("programs", [0, 1, 2])
def test_a_lost_device_is_told_once_if_programs_have_something_to_say(
    backend, monkeypatch, programs
):
    def fail(event):
        raise DeviceLostError("CUDA_ERROR_LAUNCH_FAILED")

    launch(backend, nested_loops())
    kept = [launch(backend, effects()) for _ in range(programs)]
    assert bool(kept) == backend.device.timeline.undrained
    monkeypatch.setattr(RecordedEvent, "__call__", fail)
    told = pytest.raises(DeviceLostError) if programs else nullcontext()
    with told:
        shutdown.shut_down(backend.device.timeline)
    assert backend.device.driver.count("raise_flag") == 0


def test_progress_of_a_lost_device_is_no_longer_looked_at(backend, monkeypatch):
    def fail(event):
        raise DeviceLostError("CUDA_ERROR_LAUNCH_FAILED")

    kept = launch(backend, effects())
    watcher = backend.device.timeline.watcher
    assert watcher._watches
    monkeypatch.setattr(RecordedEvent, "__call__", fail)
    watcher._look_at_all()
    assert kept
    assert not watcher._watches
