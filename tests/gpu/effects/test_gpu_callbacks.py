"""Callbacks from a device are those of the eager run, and none blocks it for ever."""

import ctypes
import gc
import threading
import time
import traceback
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from tests.comparisons.callbacks import (  # noqa: F401 - run here
    PROGRAMS,
    test_calls_and_answers_are_those_of_the_eager_run,
)
from tests.helpers.processes import end_of
from tests.helpers.running import eager
from tests.helpers.threads import in_threads
from tests.programs.printing import nests, outcome
from tracegraph import ArrayType, debug, fori_loop, pure_callback, tree, while_loop
from tracegraph.errors import (
    CallbackDeadlockError,
    CallbackResultError,
    CallbackTimeoutError,
    StoppedError,
    TimeLimitError,
)

X = np.arange(3.0)
F64, VECTOR = ArrayType(np.dtype(float)), ArrayType(np.dtype(float), (3,))
LIBC = ctypes.CDLL(None)


def like(x):
    return ArrayType(np.dtype(x.dtype), x.shape)


def assert_calls_as_eagerly(make, *arguments, times=2):
    """`make(log)` is a function that calls `log` back; require its calls and results."""

    def of(run, times):
        calls = []
        function = run(make(lambda *args, **kwargs: calls.append((args, kwargs))))
        for _ in range(times):
            result = function(*arguments)
        return tree.map(np.asarray, result), calls

    expected, wanted = of(lambda f: f, 1)
    found, calls = of(lambda f: tracegraph.jit(f, device="cuda"), times)
    tree.map(np.testing.assert_array_equal, found, expected)
    assert len(calls) == times * len(wanted)
    for got, known in zip(tree.leaves(calls), tree.leaves(wanted * times), strict=True):
        assert got.dtype == known.dtype
        np.testing.assert_array_equal(got, known)


def test_arrays_larger_than_the_ring():
    x = np.random.default_rng(0).normal(size=1_000_003)

    def make(log):
        def f(x):
            debug.callback(log, x * 2, x[:5].astype("int8"), x > 0)
            return pure_callback(lambda x: (x[::-1], x[:1]), (like(x), like(x[:1])), x)

        return f

    assert_calls_as_eagerly(make, x)


def test_more_calls_than_the_ring_holds_and_a_slow_function():
    def make(log):
        def slow(i, x):
            if i % 1000 == 0:
                time.sleep(0.02)
            log(i, x)

        return lambda x: fori_loop(0, 5000, lambda i, x: (debug.callback(slow, i, x), x + 1)[1], x)

    assert_calls_as_eagerly(make, np.zeros(100), times=1)


@settings(max_examples=20, deadline=None)
@given(function=nests(), start=st.integers(0, 7))
def test_random_nests(function, start):
    def call_back(template, *args, **kwargs):
        debug.callback(lambda *a, **k: print(template.format(*a, **k)), *args, **kwargs)

    def on_device(function, x):
        return np.asarray(tracegraph.jit(function, device="cuda")(x))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(debug, "print", call_back)
        wanted = outcome(eager, function, np.int64(start))
        if not isinstance(wanted[1], str):  # where a check fails, the device may go on a while
            assert outcome(on_device, function, np.int64(start)) == wanted


def test_calls_are_made_while_the_program_runs_and_none_by_the_main_thread():
    seen, enough = [], threading.Event()

    def tell(n):
        seen.append(threading.current_thread().name)
        if n >= 100:
            enough.set()

    @tracegraph.jit(device="cuda")
    def endless(n):
        return while_loop(lambda n: n >= 0, lambda n: (debug.callback(tell, n), n + 1)[1], n)

    result = endless(0)
    assert enough.wait(60)
    with tracegraph.time_limit(0.01), pytest.raises(TimeLimitError):
        result.synchronize()
    assert set(seen) == {"tracegraph-callbacks"}


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("answers", [False, True])
def test_an_error_ends_the_program_and_leaves_it_usable(loop, answers):
    bad = [True]

    def check(x):
        if bad and x[0] >= 0:
            raise OSError("no room")
        return x + 1

    def step(x):
        if answers:
            return pure_callback(check, VECTOR, x)
        debug.callback(check, x)
        return x + 1

    @tracegraph.jit(device="cuda")
    def f(x):
        return while_loop(lambda x: x[0] < 1000, step, x) if loop else step(x)

    for _ in range(3):
        with pytest.raises(OSError, match="no room") as caught:
            f(X).synchronize()
        assert "check" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    bad.clear()
    np.testing.assert_array_equal(np.asarray(f(X)), X + (1000 if loop else 1))


def test_an_error_in_an_endless_loop_stops_it():
    def fail(x):
        raise OSError("in a loop")

    @tracegraph.jit(device="cuda")
    def f(x):
        return while_loop(lambda x: x[0] > -1, lambda x: pure_callback(fail, VECTOR, x), x)

    result = f(X)
    with pytest.raises(OSError, match="in a loop"):
        result.synchronize()
    with pytest.raises(StoppedError):
        np.asarray(result)


def test_an_answer_of_another_type():
    f = tracegraph.jit(lambda x: pure_callback(lambda x: x[:2], VECTOR, x), device="cuda")
    with pytest.raises(CallbackResultError, match=r"f64\[3\], but it is f64\[2\]"):
        f(X).synchronize()


def test_an_answer_that_does_not_come_in_time():
    stuck = threading.Event()
    f = tracegraph.jit(
        lambda x: pure_callback(lambda x: (stuck.wait(60), x)[1], VECTOR, x, time_limit=0.2),
        device="cuda",
    )
    with pytest.raises(CallbackTimeoutError, match=r"within 0.2 s"):
        f(X).synchronize()
    stuck.set()
    np.testing.assert_array_equal(np.asarray(f(X)), X)


def test_callbacks_run_jitted_functions_and_cuda():
    double = tracegraph.jit(lambda x: x * 2, device="cuda")
    loop = tracegraph.jit(
        lambda x: fori_loop(0, 100, lambda i, x: x + 1, x, schedule="conditional"), device="cuda"
    )
    nested = tracegraph.jit(lambda x: (debug.callback(got.append, x), x)[1], device="cuda")
    got = []

    def work(x):
        got.append(np.asarray(double(x)) + np.asarray(loop(x)))
        nested(x).synchronize()

    @tracegraph.jit(device="cuda")
    def f(x):
        return fori_loop(0, 5, lambda i, x: (debug.callback(work, x), x + 1)[1], x)

    for _ in range(2):
        got.clear()
        f(X).synchronize()
        assert len(got) == 10
        np.testing.assert_array_equal(got[0], X * 3 + 100)
        np.testing.assert_array_equal(got[1], X)


def test_what_would_wait_for_itself_raises():
    loop = tracegraph.jit(lambda x: fori_loop(0, 100, lambda i, x: x + 1, x), device="cuda")
    on_host = tracegraph.jit(lambda x: x * 2, device="host")

    def f(function):
        return tracegraph.jit(lambda x: pure_callback(function, VECTOR, x), device="cuda")

    with pytest.raises(CallbackDeadlockError, match=r"device=.host"):
        f(lambda x: np.asarray(loop(x)))(X).synchronize()
    np.testing.assert_array_equal(np.asarray(f(lambda x: np.asarray(on_host(x)))(X)), X * 2)


@pytest.mark.parametrize("free", ["free", "freeHost"])
def test_who_waits_for_the_device_in_the_driver_does_not_keep_answers_away(free):
    """The driver holds up other threads meanwhile."""
    runtime = pytest.importorskip("cupy").cuda.runtime
    allocate = {"free": runtime.malloc, "freeHost": lambda size: runtime.hostAlloc(size, 0)}[free]
    f = tracegraph.jit(
        lambda x: fori_loop(0, 300, lambda i, x: pure_callback(lambda x: x + 1, VECTOR, x), x),
        device="cuda",
    )
    f(X).synchronize()
    memory = [allocate(1 << 20) for _ in range(10)]
    result = f(X)
    for pointer in memory:
        getattr(runtime, free)(pointer)
    np.testing.assert_array_equal(np.asarray(result), X + 300)


def test_sixteen_threads():
    seen = []
    f = tracegraph.jit(
        lambda x: (debug.callback(seen.append, x), pure_callback(lambda x: x + 1, F64, x))[1],
        device="cuda",
    )
    f(0.0).synchronize()
    seen.clear()

    def work(number):
        for turn in range(20):
            x = number * 20.0 + turn
            assert float(f(x)) == x + 1
            assert x in seen

    in_threads(16, work)
    assert sorted(seen) == list(range(320))


def test_streams_call_at_the_same_time():
    f = tracegraph.jit(
        lambda x: fori_loop(0, 50, lambda i, x: pure_callback(lambda x: x + 1, VECTOR, x), x),
        device="cuda",
    )
    results = []
    for _ in range(3):
        with tracegraph.stream(tracegraph.Stream("cuda")):
            results.append(f(X))
    for result in results:
        np.testing.assert_array_equal(np.asarray(result), X + 50)


def test_functions_live_as_long_as_the_graph_and_no_longer():
    class Function:
        def __call__(self, x):
            pass

    function = Function()
    gone = weakref.ref(function)
    f = tracegraph.jit(lambda x, g=function: (debug.callback(g, x), x)[1], device="cuda")
    f(X).synchronize()
    del function
    gc.collect()
    assert gone() is not None
    f(X).synchronize()
    del f
    end = time.monotonic() + 60
    while gone() is not None:
        assert time.monotonic() < end
        gc.collect()


def test_garbage_collections_while_calls_are_made():
    f = tracegraph.jit(
        lambda x: fori_loop(0, 300, lambda i, x: (debug.callback(collect, x), x + 1)[1], x),
        device="cuda",
    )

    def collect(x):
        gc.collect(0)

    for _ in range(3):
        result = f(X)
        gc.collect()
        result.synchronize()


# -- C functions --------------------------------------------------------------------------------


def test_c_functions_run_in_order_with_data_of_the_graph(capfd):
    data = bytearray(b"first\0")

    @tracegraph.jit(device="cuda")
    def f(x):
        tracegraph.host_call(LIBC.perror, data)
        y = fori_loop(0, 3, lambda i, x: x + i, x)
        tracegraph.host_call(LIBC.perror, b"second\0")
        return y

    result = f(1.0)
    data[:] = b"other\0"
    for _ in range(20):
        result = f(result)
    gc.collect()
    result.synchronize()
    lines = [line.partition(":")[0] for line in capfd.readouterr().err.splitlines()]
    assert lines == ["first", "second"] * 21


def test_a_graph_with_a_c_function_can_be_exported_and_dropped_in_flight(capfd):
    @tracegraph.jit(device="cuda")
    def f(x):
        tracegraph.host_call(LIBC.perror, b"here\0")
        return x + 1

    result = f(X)
    del f
    gc.collect()
    np.testing.assert_array_equal(np.asarray(result), X + 1)
    assert capfd.readouterr().err.count("here") == 1


# -- the end of the process ---------------------------------------------------------------------

PRELUDE = """
import sys, threading, time
import numpy as np
import tracegraph
from lowering.cuda.streams import shutdown
from tracegraph import ArrayType, debug, fori_loop, pure_callback, while_loop

shutdown.EXIT_SECONDS = 1.0
T = ArrayType(np.dtype(float), (3,))
X = np.arange(3.0)

def tells(f):
    return tracegraph.jit(lambda x: (debug.callback(f, x), x)[1], device="cuda")

def asks(f):
    return tracegraph.jit(lambda x: pure_callback(f, T, x), device="cuda")

def hang(x):
    threading.Event().wait()

def after(seconds, x):
    time.sleep(seconds)
    print("made")
    return x

@tracegraph.jit(device="cuda")
def endless(x):
    return while_loop(lambda x: x[0] > -1, lambda x: pure_callback(lambda x: x + 1, T, x), x)
"""


THREAD = """
thread = threading.Thread(target=lambda: tells(lambda x: print("thread"))(X))
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("script", "code", "out", "err"),
    [
        ("tells(lambda x: print(x[1]))(X)", 0, "1.0\n", ""),
        ("asks(lambda x: after(0.2, x))(X)", 0, "made\n", ""),
        ("r = asks(lambda x: after(0.5, x))(X); sys.exit(3)", 3, "made\n", ""),
        ("endless(X)", 0, "", "endless still ran 1 s after the end"),
        ("asks(hang)(X)", 0, "", "still ran 1 s after the end"),
        ("tells(hang)(X)", 0, "", "had not returned 1 s after the end"),
        ("asks(lambda x: 1 / 0)(X)", 0, "", "ZeroDivisionError"),
        ("tells(lambda x: 1 / 0)(X)", 0, "", "ZeroDivisionError"),
        ("import os; asks(hang)(X); os._exit(4)", 4, "", ""),
        (THREAD, 0, "thread\n", ""),
    ],
)
def test_processes_end(script, code, out, err):
    ended, printed, errors = end_of(PRELUDE + script)
    assert ended == code, errors
    assert printed == out
    assert err in errors
    if not err:
        assert errors == ""
