"""Loops that do not end: stopped by Ctrl-C or a time limit, after which everything works."""

import os
import signal
import threading

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_device
from tracegraph import cond, fori_loop, while_loop
from tracegraph.errors import StepLimitError, StoppedError, TimeLimitError


@tracegraph.jit(device="cuda")
def endless(x):
    return while_loop(lambda x: (x > -1).all(), lambda x: x + 1, x)


@tracegraph.jit(device="cuda")
def endless_rows(x):
    def row(x):
        return while_loop(lambda x: (x > -2).all(), lambda x: x + 1, x)

    return while_loop(lambda x: (x > -1).all(), row, x)


@tracegraph.jit(device="cuda")
def endless_in_branch(x):
    def spin(x):
        return while_loop(lambda x: (x > -1).all(), lambda x: x + 1, x)

    return fori_loop(0, 3, lambda i, x: cond(i == 1, spin, lambda x: x - 1, x), x)


@tracegraph.jit(device="cuda")
def ordinary(x, n):
    return fori_loop(0, n, lambda i, x: x + 1, x)


ENDLESS = [endless, endless_rows, endless_in_branch]


def interrupt_later(seconds):
    """Send this process a SIGINT from another thread."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
    return timer


def assert_usable(x):
    np.testing.assert_array_equal(np.asarray(x), np.ones(1000))
    np.testing.assert_array_equal(np.asarray(ordinary(x, 100)), np.full(1000, 101.0))


@pytest.mark.parametrize("function", ENDLESS)
def test_an_interrupt_ends_a_wait_and_the_next_call_works(function):
    x = on_device(np.ones(1000))
    ordinary(x, 1).synchronize()
    result = function(x)
    timer = interrupt_later(0.3)
    with pytest.raises(KeyboardInterrupt):
        result.synchronize()
    timer.join()
    with pytest.raises(StoppedError, match="KeyboardInterrupt"):
        np.asarray(result)
    assert_usable(x)


@pytest.mark.parametrize("function", ENDLESS)
def test_a_time_limit_ends_a_wait_and_the_next_call_works(function):
    x = on_device(np.ones(1000))
    for read in (np.asarray, lambda result: result.synchronize(), repr):
        with pytest.raises(TimeLimitError, match=r"0\.2 s"), tracegraph.time_limit(0.2):
            read(function(x))
        assert_usable(x)


def test_a_time_limit_that_is_not_reached_does_nothing():
    x = on_device(np.ones(1000))
    with tracegraph.time_limit(60):
        assert_usable(x)


def test_what_follows_a_stopped_launch_is_lost_and_what_does_not_is_kept():
    x = on_device(np.ones(1000))
    before = ordinary(x, 10)
    before.synchronize()
    stopped = endless(x)
    follower = ordinary(stopped, 5)
    independent = ordinary(x, 0)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
        stopped.synchronize()
    for lost in (stopped, follower):
        with pytest.raises(StoppedError, match="max_steps"):
            np.asarray(lost)
    with pytest.raises(StoppedError):
        ordinary(stopped, 1)
    with pytest.raises(StoppedError):
        independent.synchronize()  # it has a loop of its own, which was in flight
    np.testing.assert_array_equal(np.asarray(before), np.full(1000, 11.0))
    assert_usable(x)


def test_large_arguments_and_builds_behind_an_endless_loop_can_be_interrupted():
    endless(on_device(np.ones(1000)))
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
        ordinary(np.ones(1 << 20), 3)
    endless(on_device(np.ones(1000)))
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
        tracegraph.jit(lambda x: np.sin(x) * 3, device="cuda")(on_device(np.ones(7)))
    assert_usable(on_device(np.ones(1000)))


def test_many_launches_behind_an_endless_loop_can_be_interrupted():
    x = on_device(np.ones(1000))
    step = tracegraph.jit(lambda x: x + 1, device="cuda")
    step(x).synchronize()

    def launch_many():
        for _ in range(5000):
            step(x)

    endless(x)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(1):
        launch_many()
    assert_usable(x)


def test_max_steps_raises_once_and_the_next_call_works():
    @tracegraph.jit(device="cuda")
    def bounded(x, high):
        return while_loop(lambda x: x < high, lambda x: x + 1, x, max_steps=100)

    assert int(bounded(0, 100)) == 100
    result = bounded(0, 101)
    with pytest.raises(StepLimitError, match=r"max_steps=100.*test_gpu_interrupt\.py"):
        result.synchronize()
    assert int(result) == 100
    assert int(bounded(0, 7)) == 7
    bounded(0, 1000)
    later = ordinary(on_device(np.ones(1000)), 1)
    with pytest.raises(StepLimitError):
        later.synchronize()
    later.synchronize()


def test_max_steps_can_stop_without_an_error():
    @tracegraph.jit(device="cuda")
    def bounded(x, high):
        return while_loop(
            lambda x: x < high, lambda x: x + 1, x, max_steps=100, on_max_steps="stop"
        )

    assert int(bounded(0, 1000)) == 100
    assert int(bounded(0, 3)) == 3
