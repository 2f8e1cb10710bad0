"""Calls on several streams and from several threads: results are those of one stream.

Producers run for long, so that work which does not wait for them reads old data.
"""

import contextlib
import gc

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_device
from tests.helpers.threads import in_threads

THREADS, CALLS = 16, 1000
STEPS = 20_000


def slow(x, schedule="one_kernel"):
    """x + STEPS, after a while: each step waits for the one before."""
    return tracegraph.fori_loop(0, STEPS, lambda i, y: y + 1, x, schedule=schedule)


def slow_by_nodes(x):
    return slow(x, "conditional")


@pytest.fixture
def produce():
    return tracegraph.jit(slow, device="cuda")


@pytest.fixture
def double():
    return tracegraph.jit(lambda x: x * 2, device="cuda")


def zeros():
    return on_device(np.zeros(4096, np.float32))


@pytest.mark.parametrize("first", [True, False])
def test_arguments_of_other_streams_are_waited_for(produce, double, first):
    stream = tracegraph.Stream()
    x = zeros()
    double(x).synchronize()
    for _ in range(3):
        if first:
            with tracegraph.stream(stream):
                made = produce(x)
            result = double(made)
        else:
            made = produce(x)
            with tracegraph.stream(stream):
                result = double(made)
        np.testing.assert_array_equal(np.asarray(result), 2.0 * STEPS)
        np.testing.assert_array_equal(np.asarray(made), 1.0 * STEPS)


def test_one_function_on_many_streams(produce):
    """Each stream has a graph of its own."""
    streams = [tracegraph.Stream() for _ in range(4)]
    x = zeros()
    results = []
    for number in range(16):
        with tracegraph.stream(streams[number % 4]):
            results.append(produce(x + number))
    for number, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), number + STEPS)
    assert produce.stats()["builds"] == 1


def heavy(x):
    """Scratch of the size of x, and a loop whose end depends on it."""

    def step(c):
        y, n = c
        return tracegraph.numpy.cumsum(y)[::-1] * 1e-3 + 1, n + 1

    return tracegraph.while_loop(lambda c: (c[1] < 200) & (c[0].min() > -1), step, (x, 0))


def test_scratch_is_not_shared_by_streams():
    f = tracegraph.jit(heavy, device="cuda")
    inputs = [on_device(np.linspace(0, number + 1, 3000)) for number in range(4)]
    wanted = [np.asarray(f(x)[0]).tobytes() for x in inputs]
    streams = [tracegraph.Stream() for _ in range(4)]
    found = []
    for _ in range(20):
        for stream, x in zip(streams, inputs, strict=True):
            with tracegraph.stream(stream):
                found.append(f(x)[0])
    assert [np.asarray(y).tobytes() for y in found] == wanted * 20
    assert f.stats()["builds"] == 1


def overtakes(other, x, long=slow):
    """Whether a call on a stream ends before two long loops that were launched on another one."""
    cuda = pytest.importorskip("cuda.core")
    produce = tracegraph.jit(long, device="cuda")
    streams = [tracegraph.Stream() for _ in range(2)]
    for function, stream in zip((produce, other), streams, strict=True):
        with tracegraph.stream(stream):
            function(x).synchronize()
    raw = [cuda.Stream.from_handle(stream.__cuda_stream__()[1]) for stream in streams]
    with tracegraph.stream(streams[0]):
        loops = produce(produce(x))
    with tracegraph.stream(streams[1]):
        result = other(x)
    ends = [stream.record() for stream in raw]
    while not ends[1].is_done:
        pass
    overtook = not ends[0].is_done
    np.testing.assert_array_equal(np.asarray(loops), np.asarray(x) + 2.0 * STEPS)
    return overtook, np.asarray(result)


def test_streams_run_at_the_same_time(double):
    overtook, result = overtakes(double, zeros() + 1)
    assert overtook
    np.testing.assert_array_equal(result, 2.0)


def test_while_nodes_of_several_streams_take_turns():
    """Two of them at a time may end in CUDA_ERROR_LAUNCH_FAILED."""
    other = tracegraph.jit(slow_by_nodes, device="cuda")
    overtook, result = overtakes(other, zeros(), slow_by_nodes)
    assert not overtook
    np.testing.assert_array_equal(result, 1.0 * STEPS)


def test_loops_in_one_kernel_run_side_by_side(produce):
    overtook, result = overtakes(produce, zeros())
    assert overtook
    np.testing.assert_array_equal(result, 1.0 * STEPS)


def test_loops_in_flight_on_several_streams_many_times():
    def count(x):
        return tracegraph.while_loop(lambda y: y[0] < 300, lambda y: y + 1, x)

    f, g = (tracegraph.jit(count, device="cuda") for _ in range(2))
    streams = [None, *(tracegraph.Stream() for _ in range(7))]
    x = zeros()
    for _ in range(50):
        results = []
        for number in range(64):
            function = (f, g)[number // 8 % 2]
            stream = streams[number % 8]
            if stream is None:
                results.append(function(x))
            else:
                with tracegraph.stream(stream):
                    results.append(function(x))
        for result in results:
            np.testing.assert_array_equal(np.asarray(result), 300.0)


def test_streams_that_are_dropped_take_their_memory_along(produce, double):
    x = zeros()
    produce(x), double(x)
    gc.collect()
    before = tracegraph.memory_stats("cuda")
    results = []
    for _ in range(20):
        stream = tracegraph.Stream()
        with tracegraph.stream(stream):
            results.append(double(produce(x)))
        del stream  # its work is in flight
    for result in results:
        np.testing.assert_array_equal(np.asarray(result), 2.0 * STEPS)
    del result, results
    gc.collect()
    after = tracegraph.memory_stats("cuda")
    assert after["arenas"] <= before["arenas"]
    assert after["graph_bytes"] == before["graph_bytes"]
    assert produce.stats()["launches"] == 21


def test_memory_moves_between_streams(produce, double):
    """What a stream still reads is not given to another one."""
    stream = tracegraph.Stream()
    x = zeros()
    with tracegraph.stream(stream):
        delay = produce(x)
    for number in range(50):
        made = double(x + number)
        with tracegraph.stream(stream):
            delay = produce(delay) * 0 + made  # reads `made` late
        del made
        spoiled = [double(x - 1.0) for _ in range(4)]  # would reuse its memory
        np.testing.assert_array_equal(np.asarray(delay), 2.0 * number)
        del spoiled


def test_synchronize_a_stream(produce):
    stream = tracegraph.Stream()
    with tracegraph.stream(stream):
        result = produce(zeros())
    stream.synchronize()
    np.testing.assert_array_equal(np.asarray(result), 1.0 * STEPS)


def test_a_loop_on_a_stream_is_stopped(double):
    endless = tracegraph.jit(
        lambda x: tracegraph.while_loop(lambda y: y[0] >= 0, lambda y: y + 1, x), device="cuda"
    )
    stream, x = tracegraph.Stream(), on_device(np.zeros(4))
    double(x).synchronize()  # a build would wait for the loop
    with tracegraph.stream(stream):
        running = endless(x)
    dependent = double(running)
    with pytest.raises(tracegraph.errors.TimeLimitError), tracegraph.time_limit(0.2):
        dependent.synchronize()
    for stopped in (running, dependent):
        with pytest.raises(tracegraph.errors.StoppedError):
            np.asarray(stopped)
    with tracegraph.stream(stream):
        np.testing.assert_array_equal(np.asarray(double(x + 1)), 2.0)


def test_the_legacy_stream_and_refused_ones(double):
    x = on_device(np.ones(4))
    with tracegraph.stream(0):
        result = double(x)
    assert result.__cuda_array_interface__["stream"] == 1
    np.testing.assert_array_equal(np.asarray(result), 2.0)
    with pytest.raises(ValueError, match="per-thread"), tracegraph.stream(2):
        pass


def test_threads_on_streams():
    shared = tracegraph.jit(lambda x, y: tracegraph.numpy.sum(x) + y, device="cuda")
    streams = [None, *(tracegraph.Stream() for _ in range(3))]

    def work(number):
        own = tracegraph.jit(lambda x: x + number, device="cuda")
        x = on_device(np.full(100, number, np.float32))
        y = on_device(np.zeros(100, np.float32))
        for call in range(1, CALLS + 1):
            y = own(y) if call % 2 else shared(x, y)
            if call % 100 == 0:
                expected = np.float32(call / 2 * (number + 100 * number))
                np.testing.assert_array_equal(np.asarray(y), expected)

    def run(number):
        stream = streams[number % 4]
        if stream is None:
            work(number)
        else:
            with tracegraph.stream(stream):
                work(number)

    in_threads(THREADS, run)
    assert shared.stats()["builds"] == 1


def test_streams_of_pytorch(produce, double):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    side, other = torch.cuda.Stream(), torch.cuda.Stream()
    x = zeros()
    double(x).synchronize()
    for _ in range(5):
        with tracegraph.stream(side):
            made = produce(x)
        with torch.cuda.stream(other):
            taken = torch.from_dlpack(made) * 2  # the other stream waits for ours
            torch.cuda._sleep(20_000_000)
            given = taken + 1
            result = produce(given)  # and ours for the other one
        np.testing.assert_array_equal(np.asarray(result), 3.0 * STEPS + 1)
        with tracegraph.stream(other):
            np.testing.assert_array_equal(np.asarray(double(result)), 6.0 * STEPS + 2)


class Described:
    """An array that says on which stream it is written, and offers no DLPack."""

    def __init__(self, array, stream):
        self.array = array
        described = array.__cuda_array_interface__
        self.__cuda_array_interface__ = {**described, "version": 3, "stream": stream}


def test_the_stream_of_the_cuda_array_interface_is_waited_for(produce, double):
    torch = pytest.importorskip("torch")
    cupy = pytest.importorskip("cupy")
    side, other = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
    x, given = zeros(), torch.zeros(4096, device="cuda")
    for chosen in (None, side, None):
        given.zero_()
        double(Described(given, 1)).synchronize()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            given.fill_(1)
        result = double(Described(given, side.cuda_stream))
        assert not side.query()  # it is the device that waits
        np.testing.assert_array_equal(np.asarray(result), 2.0)
        with tracegraph.stream(chosen) if chosen else contextlib.nullcontext():
            made = produce(x)
        stream = made.__cuda_array_interface__["stream"]
        assert chosen is None or stream == side.cuda_stream
        with other:
            taken = cupy.asarray(Described(made, stream)) * 2
        np.testing.assert_array_equal(cupy.asnumpy(taken, stream=other), 2.0 * STEPS)


def test_streams_of_cupy(produce, double):
    cupy = pytest.importorskip("cupy")
    side, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    x = zeros()
    double(x).synchronize()
    for _ in range(5):
        with tracegraph.stream(side):
            made = produce(x)
        with other:
            taken = cupy.from_dlpack(made) * 2
            result = produce(taken + 1)
        np.testing.assert_array_equal(np.asarray(result), 3.0 * STEPS + 1)
        with tracegraph.stream(other):
            np.testing.assert_array_equal(np.asarray(double(result)), 6.0 * STEPS + 2)
    assert side.ptr == made.__cuda_array_interface__["stream"]
