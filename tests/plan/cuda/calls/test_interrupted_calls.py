"""What an interrupt ends at any point leaves nothing behind: no lock held, no memory in use."""

import random
import signal
import sys
from contextlib import suppress
from threading import Lock

import numpy as np
import pytest

from lowering.backends.host import HostBackend
from lowering.testing.recording_backend import RecordingBackend
from tests.fakes.interrupts import InterruptError, interrupted
from tests.programs.hand_made_plans import VECTOR
from tracegraph import Array, jit
from tracegraph.concurrency.locks import held, held_if_free
from tracegraph.ir.types import ArrayType

INTERRUPTS = 300


@pytest.fixture
def timer():
    """Starts a timer, which raises InterruptError at its end, and again a second later: what is
    raised in a finalizer is lost.
    """

    def interrupt(number, frame):
        raise InterruptError

    if not hasattr(signal, "setitimer"):
        pytest.skip("the system has no timers that send signals")
    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupted_call_leaves_the_executable_free(timer):
    plan = jit(lambda x: x + 1, device="host").lower(ArrayType("float64", (8,))).plan
    executable, x = HostBackend().compile(plan), np.ones(8)
    choose = random.Random(0)
    for _ in range(INTERRUPTS):
        with suppress(InterruptError):
            timer(choose.uniform(1e-5, 2e-4))
            while True:
                executable([x])
    assert executable.close_idle()


def test_a_call_that_is_interrupted_before_it_starts_leaves_its_donated_arguments():
    double = jit(lambda x: x * 2, donate_argnums=0, device="host")
    double(Array(np.ones(8)))
    started, x = double.stats()["launches"], None

    def call():
        nonlocal x
        x = Array(np.ones(8))
        double(x)

    for _ in interrupted(call, "donated", "stages", "executable"):
        launches = double.stats()["launches"]
        if launches == started:
            np.testing.assert_array_equal(x, np.ones(8))
        if x.memory is not None:
            assert not x.memory.flags.writeable
        started = launches


def test_an_interrupted_buffer_is_dropped_in_silence_and_its_memory_is_not_in_use(monkeypatch):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    device = RecordingBackend().device
    before = device.memory_stats()
    for _ in interrupted(lambda: device.pool.buffer(VECTOR), "pool"):
        assert not ignored
        assert device.memory_stats()["arrays"] == before["arrays"]


@pytest.mark.parametrize("taken", [(), (1,), (0, 2)])
def test_locks_that_an_interrupted_close_asked_for_are_as_before(taken):
    locks = [Lock() for _ in range(3)]
    for number in taken:
        locks[number].acquire()
    before = [lock.locked() for lock in locks]

    def close():
        with held_if_free(locks) as free:
            assert free == (not taken)
            assert all(lock.locked() for lock in locks)

    for _ in interrupted(close, "locks", "contextlib", "test_interrupted_calls"):
        assert [lock.locked() for lock in locks] == before
    assert [lock.locked() for lock in locks] == before


def test_locks_that_an_interrupted_close_waited_for_are_free():
    locks = [Lock() for _ in range(3)]

    def close():
        with held(locks):
            assert all(lock.locked() for lock in locks)

    for _ in interrupted(close, "locks", "contextlib", "test_interrupted_calls"):
        assert not any(lock.locked() for lock in locks)
    assert not any(lock.locked() for lock in locks)
