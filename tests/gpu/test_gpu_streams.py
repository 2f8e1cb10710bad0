"""Calls on several streams and from several threads: results are those of one stream.

Producers run for long, so that whoever does not wait for them reads what was there before.
"""

import threading

import numpy as np
import pytest

import tracegraph

THREADS, CALLS = 16, 1000
STEPS = 20_000


def slow(x):
    """x + STEPS, after a while: each step waits for the one before."""
    return tracegraph.fori_loop(0, STEPS, lambda i, y: y + 1, x)


@pytest.fixture
def produce():
    return tracegraph.jit(slow, device="cuda")


@pytest.fixture
def double():
    return tracegraph.jit(lambda x: x * 2, device="cuda")


def on_device(x):
    return tracegraph.asarray(x, device="cuda")


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
    """Its launches share memory inside, and must not meet."""
    streams = [tracegraph.Stream() for _ in range(4)]
    x = zeros()
    results = []
    for number in range(16):
        with tracegraph.stream(streams[number % 4]):
            results.append(produce(x + number))
    for number, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), number + STEPS)
    assert produce.stats()["builds"] == 1


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
    failures = []

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
        try:
            stream = streams[number % 4]
            if stream is None:
                work(number)
            else:
                with tracegraph.stream(stream):
                    work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
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
