"""Prints and progress from a device are those of the eager run."""

import gc
import threading
import time
import warnings
import weakref
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from hypothesis import given, settings

import tracegraph
from lowering.plan.target import overrides as choices
from tests.comparisons.prints import (  # noqa: F401 - run here
    PROGRAMS,
    test_prints_are_those_of_the_eager_run,
)
from tests.helpers.processes import end_of
from tests.helpers.running import eager
from tracegraph import debug, fori_loop, while_loop
from tracegraph.errors import TimeLimitError
from tracegraph.testing import programs


def printed(run):
    with redirect_stdout(StringIO()) as text:
        run()
    return text.getvalue()


def test_a_large_array():
    show = tracegraph.jit(lambda x: (debug.print("{}", x * 2), x)[1], device="cuda")
    x = np.arange(50_000.0)
    assert printed(lambda: show(x).synchronize()) == f"{x * 2}\n"


@settings(max_examples=20)
@given(program=programs(max_steps=5, effects=True))
def test_random_programs_print_what_they_print_eagerly(program):
    def run():
        result = tracegraph.jit(program.function, device="cuda")(*program.arguments)
        tracegraph.tree.map(np.asarray, result)

    wanted = printed(lambda: eager(program.function, *program.arguments))
    assert printed(run) == wanted


def test_programs_take_turns():
    first = tracegraph.jit(lambda x: (debug.print("first {}", x), x + 1)[1], device="cuda")
    second = tracegraph.jit(lambda x: (debug.print("second {}", x), x * 2)[1], device="cuda")

    def run():
        x = first(1)
        for _ in range(20):
            x = second(first(x))
        x.synchronize()

    lines = printed(run).splitlines()
    assert [line.split()[0] for line in lines] == ["first"] + ["first", "second"] * 20


def test_more_prints_than_the_ring_holds_while_the_host_listens():
    @tracegraph.jit(device="cuda")
    def show(x, n):
        def step(i, x):
            debug.print("{} {}", i, x[0])
            return x + 1

        return fori_loop(0, n, step, x)

    def run():
        show(np.zeros(4), 30_000).synchronize()  # 48 bytes each: 1.4 MiB

    # on a busy machine, the host may not keep up with a loop: then it says how many were lost
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lines = printed(run).splitlines()
    told = [str(warning.message) for warning in caught]
    lost = sum(int(message.split()[0]) for message in told if "prints were lost" in message)
    shown = [int(line.split()[0]) for line in lines]
    assert lines == [f"{i} {float(i)}" for i in shown]
    assert len(shown) + lost == 30_000
    assert shown == sorted(set(shown))
    assert shown[: 1 << 14] == list(range(1 << 14)), "these are in the ring, however slow the host"


def test_prints_that_do_not_fit_are_counted():
    script = """
import warnings
import numpy as np, tracegraph
from tracegraph import debug
x = np.arange(1000.0)
f = tracegraph.jit(lambda x: (debug.print("{}", x), debug.print("small {}", x[0]), x)[2])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    f(x).synchronize()
print([str(w.message)[:18] for w in caught])
"""
    code, printed, errors = end_of(script, TRACEGRAPH_PRINT_BUFFER_BYTES="4096")
    assert (code, printed) == (0, "small 0.0\n['1 prints were lost']\n"), errors


def test_prints_that_nobody_waits_for_appear_at_the_end():
    script = """
import tracegraph
tracegraph.jit(lambda x: tracegraph.debug.print("bye {}", x))(3)
"""
    assert end_of(script) == (0, "bye 3\n", "")


def test_progress_is_told_rising_counts_while_the_loop_runs():
    seen, enough = [], threading.Event()

    def told(step, total):
        seen.append((step, total))
        if len(seen) == 3:
            enough.set()

    @tracegraph.jit(device="cuda")
    def count(x, n):
        return while_loop(lambda x: (x < n).all(), lambda x: x + 1, x, progress=told)

    result = count(np.zeros(1000), np.inf)
    assert enough.wait(60)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        result.synchronize()
    steps = [step for step, _ in seen]
    assert steps == sorted(set(steps))
    assert {total for _, total in seen} == {None}


def test_the_last_count_is_told_before_the_wait_returns():
    seen = []

    @tracegraph.jit(device="cuda")
    def count(x, n):
        def told(step, total):
            seen.append(step)

        return while_loop(lambda x: (x < n).all(), lambda x: x + 1, x, progress=told)

    for n in (20_000, 3):
        count(np.zeros(1000), float(n)).synchronize()
        assert seen[-1] == n
        seen.clear()


def test_a_callback_that_nothing_else_refers_to_is_told_of_a_launch_in_flight():
    seen, steps = [], 100_000

    class Told:
        def __call__(self, step, total):
            seen.append((step, threading.current_thread()))

    def run(x):
        callback = Told()
        references.append(weakref.ref(callback))
        return fori_loop(0, steps, lambda i, x: x + 1, x, progress=callback, schedule="conditional")

    references = []
    compiled = tracegraph.jit(run, device="cuda").lower(np.zeros(1000)).compile()
    result = compiled(np.zeros(1000))
    del compiled
    gc.collect()
    assert references[-1]() is not None
    while not seen:
        time.sleep(0.001)
    np.testing.assert_array_equal(np.asarray(result), steps)
    assert seen[-1][0] == steps
    threads = {thread for _, thread in seen}
    assert {thread.name for thread in threads} <= {"MainThread", "tracegraph-progress"}
    assert not any(isinstance(thread, threading._DummyThread) for thread in threads)  # the driver's
    for thread in threads - {threading.main_thread()}:
        thread.join(10)  # it may be looking still
    del result
    gc.collect()
    tracegraph.memory_stats()
    assert references[-1]() is None


def test_the_total_is_known_where_the_trip_count_is():
    seen = []

    def told(step, total):
        seen.append((step, total))

    f = tracegraph.jit(lambda x: fori_loop(0, 50, lambda i, x: x + i, x, progress=told))
    f(np.zeros(3)).synchronize()
    assert seen[-1] == (50, 50)
    assert {total for _, total in seen} == {50}


def test_a_bar_is_shown(capfd):
    f = tracegraph.jit(
        lambda x: fori_loop(0, 50, lambda i, x: x + i, x, progress="steps"), device="cuda"
    )
    f(np.zeros(3)).synchronize()
    error = capfd.readouterr().err
    assert "steps" in error
    assert "50" in error


@pytest.mark.parametrize("size", [1000, 100_000])
def test_progress_has_no_node_of_its_own(size):
    def counts(progress):
        def loop(x, n):
            return while_loop(
                lambda c: c[1] < n, lambda c: (c[0] + 1, c[1] + 1), (x, 0), progress=progress
            )

        with choices.override(loops="conditional"):  # lanes of their own would report apart
            return tracegraph.jit(loop, device="cuda").lower(np.zeros(size), 3).plan.node_counts

    assert counts(False) == counts(True)


def test_an_error_of_a_callback_is_raised_by_the_wait():
    def told(step, total):
        raise LookupError("from the callback")

    f = tracegraph.jit(lambda x: fori_loop(0, 5, lambda i, x: x + i, x, progress=told))
    result = f(np.zeros(3))
    with pytest.raises(LookupError, match="from the callback"):
        result.synchronize()
    np.testing.assert_array_equal(np.asarray(result), 10.0)
