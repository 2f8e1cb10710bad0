"""Prints, checks, progress and time limits where a Plan runs on the host."""

from __future__ import annotations

from random import Random
from threading import Thread

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from tracegraph import debug, errors
from tracegraph.limits import time_limit

pytestmark = pytest.mark.usefixtures("each_host")


def executables(function, *arguments):
    """One that runs nodes in the plan's order, and some in random ones."""
    plan = tracegraph.jit(function, device="host").lower(*arguments).plan
    orders = [None, *(Random(seed) for seed in range(4))]
    return [HostExecutable(plan, poison=True, order=order) for order in orders]


def assert_prints_as_eagerly(capsys, function, *arguments):
    function(*arguments)
    wanted = capsys.readouterr().out
    assert wanted
    for executable in executables(function, *arguments):
        for _ in range(2):
            executable(arguments)
            assert capsys.readouterr().out == wanted


def test_prints_in_nested_control_flow_come_in_order(capsys):
    def show(x):
        debug.print("start {} {total:.2f}", x, total=x.sum())

        def step(i, v):
            debug.print("step {}", i)
            v = tracegraph.cond(
                i % 2 == 0, lambda: (debug.print("even {}", v), v + 1.0)[1], lambda: v * 2.0
            )

            def inner(carry, row):
                debug.print("row {} of {}", row, i)
                return carry + row, row

            total, _ = tracegraph.scan(inner, 0.0, v, reverse=True)
            tracegraph.switch(i, [lambda: None, lambda: debug.print("one {}", total)])
            return v

        y = tracegraph.fori_loop(0, 3, step, x)
        debug.print("end {}", y)
        return y

    assert_prints_as_eagerly(capsys, show, np.arange(3.0))


@pytest.mark.parametrize(
    "array",
    [
        np.float32(1.5),
        np.zeros((0, 2), np.int16),
        np.array(True),
        np.array([[1 + 2j, -0.0], [np.nan, np.inf]]),
        np.arange(12, dtype=np.uint8).reshape(3, 4),
        np.linspace(0, 1, 2000, dtype=np.float16),
    ],
    ids=str,
)
def test_any_array_is_printed(capsys, array):
    def show(x):
        debug.print("{} {x}", x.T, x=x)

    assert_prints_as_eagerly(capsys, show, array)


def test_what_is_printed_is_the_value_before_an_update(capsys):
    def show(x):
        def step(_, v):
            debug.print("{}", v)
            v = v[::-1] + 1.0
            debug.print("{}", v)
            return v

        y = tracegraph.fori_loop(0, 3, step, x)
        z = np.sin(y)
        debug.print("{}", z)
        z[0] = 7.0
        debug.print("{}", z)
        return z

    assert_prints_as_eagerly(capsys, show, np.arange(4.0))


def bounded(x, limit):
    def step(v):
        debug.print("{}", v)
        return v + 1.0

    y = tracegraph.while_loop(lambda v: v < limit, step, x, max_steps=4)
    debug.print("done {}", y)
    return y


def test_a_check_that_fails_raises_and_the_executable_goes_on(capsys):
    with pytest.raises(errors.StepLimitError) as eagerly:
        bounded(0.0, 5.0)
    wanted = capsys.readouterr().out
    assert wanted == "0.0\n1.0\n2.0\n3.0\n"
    for executable in executables(bounded, 0.0, 5.0):
        with pytest.raises(errors.StepLimitError) as raised:
            executable([0.0, 5.0])
        assert capsys.readouterr().out == wanted
        assert str(raised.value) == str(eagerly.value)
        assert executable([2.0, 5.0])[0] == 5.0
        assert capsys.readouterr().out.endswith("done 5.0\n")


def test_the_first_of_several_failures_is_raised():
    def two(x):
        def run(limit):
            return tracegraph.while_loop(lambda v: v > 0.0, lambda v: v + 1.0, x, max_steps=limit)

        return run(3), run(2)

    for executable in executables(two, 1.0):
        with pytest.raises(errors.StepLimitError, match="3"):
            executable([1.0])


def test_a_limit_that_stops_hands_out_the_carry():
    def stopped(x):
        return tracegraph.while_loop(
            lambda v: np.sum(v) < 1e9, lambda v: v + 1.0, x, max_steps=3, on_max_steps="stop"
        )

    for executable in executables(stopped, np.zeros(4)):
        np.testing.assert_array_equal(executable([np.zeros(4)])[0], 3.0)


def test_progress_is_reported_every_step():
    told = []

    def count(x):
        def outer(i, v):
            return tracegraph.fori_loop(
                0, 2, lambda _, w: w + 1.0, v, progress=lambda *s: told.append(("inner", *s))
            )

        return tracegraph.fori_loop(0, 3, outer, x, progress=lambda *s: told.append(("outer", *s)))

    count(0.0)
    wanted, told = told, []
    assert ("outer", 3, 3) in wanted
    for executable in executables(count, 0.0):
        told.clear()
        executable([0.0])
        assert told == wanted


def test_an_error_of_a_callback_leaves_the_executable_usable():
    failing = [True]

    def callback(step, total):
        if failing[0]:
            raise LookupError("the callback failed")

    def count(x):
        return tracegraph.fori_loop(0, 3, lambda _, v: v + 1.0, x, progress=callback)

    executable, *_ = executables(count, 0.0)
    with pytest.raises(LookupError, match="the callback failed"):
        executable([0.0])
    failing[0] = False
    assert executable([0.0])[0] == 3.0


def test_a_progress_callback_may_call_its_program():
    left, found = [10.0, 20.0], {}

    def run(start):
        found[start] = np.asarray(count(np.full(4, start)))

    def callback(step, total):
        if step == 2 and left:
            run(left.pop())  # which calls once more

    def body(i, carry):
        x, y = carry
        return np.cumsum(x) % 7 + y[::-1], x + i

    def spread(x):
        return tracegraph.fori_loop(0, 3, body, (x, x + 1), progress=callback)[0]

    count = tracegraph.jit(spread, device="host")
    thread = Thread(target=run, args=[0.0], daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "a call waits for itself"
    assert found.keys() == {0.0, 10.0, 20.0}
    for start, result in found.items():
        np.testing.assert_array_equal(result, spread(np.full(4, start)))
    assert count.stats()["launches"] == 3


def test_a_progress_callback_may_close_its_executable():
    refused = []

    def callback(step, total):
        executable.close()
        with pytest.raises(errors.ClosedError):
            executable([0.0])
        refused.append(step)

    def count(x):
        return tracegraph.fori_loop(0, 3, lambda _, v: v + 1.0, x, progress=callback)

    executable, *_ = executables(count, 0.0)
    results = []
    thread = Thread(target=lambda: results.extend(executable([0.0])), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "a call waits for itself"
    assert results == [3.0]
    assert refused == [1, 2, 3]
    assert executable.closed


def test_a_time_limit_stops_loops_and_only_inside_its_block():
    def forever_if(x):
        return tracegraph.while_loop(lambda v: v >= 0.0, lambda v: v + 1.0, x)

    for executable in executables(forever_if, 1.0):
        with pytest.raises(errors.TimeLimitError), time_limit(0.02):
            executable([1.0])
        assert executable([-1.0])[0] == -1.0
        with time_limit(0.0):
            assert executable([-1.0])[0] == -1.0  # no loop goes on: there is nothing to stop
