"""Launches of exported graphs on a device, in the order of calls and reads, on streams of all."""

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import compiled_for, on_device
from tests.helpers.threads import in_threads
from tracegraph import fori_loop, while_loop
from tracegraph.errors import StoppedError, TimeLimitError

N = 200_000
STEPS = 3_000


def slow(x):
    """Some 30 ms, in a WHILE node."""
    return fori_loop(0, STEPS, lambda i, x: x + 1, x, schedule="conditional")


def exported_of(function, x):
    exported = compiled_for(function, x).export_graph(x)
    return exported, exported.instantiate()


def test_results_are_waited_for_on_the_stream_of_the_launch():
    stream = tracegraph.Stream("cuda")
    exported, executable = exported_of(slow, on_device(np.zeros(N)))
    for _ in range(5):
        executable.launch(stream)
        np.testing.assert_array_equal(np.asarray(exported.results), np.full(N, float(STEPS)))


def test_calls_on_other_streams_wait_for_results():
    one, other = tracegraph.Stream("cuda"), tracegraph.Stream("cuda")
    exported, executable = exported_of(slow, on_device(np.zeros(N)))
    double = tracegraph.jit(lambda x: 2 * x, device="cuda")
    double(exported.results)
    with tracegraph.stream(other):
        double(exported.results)
    for _ in range(5):
        executable.launch(one)
        with tracegraph.stream(other):
            result = double(exported.results)
        np.testing.assert_array_equal(np.asarray(result), np.full(N, 2.0 * STEPS))
        executable.launch(one)
        np.testing.assert_array_equal(np.asarray(double(exported.results)), np.full(N, 2.0 * STEPS))


def test_the_next_launch_waits_for_readers():
    """What a launch writes is its state: each adds to what the one before has left."""
    one, other = tracegraph.Stream("cuda"), tracegraph.Stream("cuda")
    compiled = (
        tracegraph.jit(lambda x: x + 1, device="cuda", donate_argnums=0)
        .lower(on_device(np.zeros(N)))
        .compile()
    )
    exported = compiled.export_graph(on_device(np.zeros(N)))
    executable = exported.instantiate()
    late = tracegraph.jit(lambda x, y: slow(y) * 0 + x, device="cuda")
    zeros = on_device(np.zeros(N))
    with tracegraph.stream(other):
        late(exported.results, zeros)
    found = []
    for _ in range(6):
        executable.launch(one)
        with tracegraph.stream(other):
            found.append(late(exported.results, zeros))
    for step, result in enumerate(found, 1):
        np.testing.assert_array_equal(np.asarray(result), np.full(N, float(step)))


def test_a_chain_of_exported_graphs_on_streams():
    streams = [tracegraph.Stream("cuda") for _ in range(3)]
    x = on_device(np.zeros(N))
    first, one = exported_of(slow, x)
    second, two = exported_of(lambda x: 3 * x, first.results)
    third, three = exported_of(lambda x: x - 1, second.results)
    for _ in range(10):
        for executable, stream in zip((one, two, three), streams, strict=True):
            executable.launch(stream)
        np.testing.assert_array_equal(np.asarray(third.results), np.full(N, 3.0 * STEPS - 1))


def test_graphs_with_while_nodes_on_many_streams():
    """Side by side they would end in a launch failure now and then."""
    streams = [tracegraph.Stream("cuda") for _ in range(4)]
    x = on_device(np.zeros(1000))

    def halve(x):
        return while_loop(lambda x: x[0] < 50, lambda x: x + 1, x, schedule="conditional")

    exported = [exported_of(halve, x) for _ in streams]
    call = tracegraph.jit(halve, device="cuda")
    for _ in range(500):
        for (_, executable), stream in zip(exported, streams, strict=True):
            executable.launch(stream)
        with tracegraph.stream(streams[0]):
            result = call(x)
    for given, _ in exported:
        np.testing.assert_array_equal(np.asarray(given.results), np.full(1000, 50.0))
    np.testing.assert_array_equal(np.asarray(result), np.full(1000, 50.0))


def test_loops_in_flight_are_stopped():
    x = on_device(np.zeros(1000))
    exported, executable = exported_of(
        lambda x: while_loop(lambda x: x[0] >= 0, lambda x: x + 1, x, schedule="conditional"), x
    )
    for stream in (None, tracegraph.Stream("cuda")):
        executable.launch(stream)
        with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
            np.asarray(exported.results)
        with pytest.raises(StoppedError):
            np.asarray(exported.results)
    finite, again = exported_of(slow, x)
    again.launch()
    np.testing.assert_array_equal(np.asarray(finite.results), np.full(1000, float(STEPS)))


def test_threads_launch_on_streams_of_their_own():
    x = on_device(np.ones(N))

    def work(number):
        stream = tracegraph.Stream("cuda")
        exported, executable = exported_of(lambda x: x * number, x)
        for _ in range(200):
            executable.launch(stream)
            assert float(np.asarray(exported.results[0])) == number

    in_threads(4, work)


def test_streams_of_cupy_and_its_arrays():
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.zeros(N)
    stream.synchronize()
    exported, executable = exported_of(lambda x: 2 * x, x)
    for value in range(1, 30):
        with stream:
            x[:] = value
            executable.launch(stream)
            y = cupy.from_dlpack(exported.results)
            total = y.sum()
        assert float(total) == 2.0 * value * N


def test_streams_of_torch_by_handle():
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    x = torch.zeros(N, dtype=torch.float64, device="cuda")
    torch.cuda.synchronize()
    exported, executable = exported_of(lambda x: 2 * x, x)
    for value in range(1, 30):
        with torch.cuda.stream(stream):
            x.fill_(float(value))
            executable.launch(stream.cuda_stream)
            total = torch.from_dlpack(exported.results).sum()
        assert float(total) == 2.0 * value * N


def test_in_a_capture_it_becomes_a_child_graph():
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    x = on_device(np.arange(float(N)))
    exported, executable = exported_of(lambda x: x + 1, x)
    stream = device.create_stream()
    builder = stream.create_graph_builder().begin_building()
    executable.launch(builder)
    graph = builder.end_building().complete()
    del executable
    for _ in range(3):
        graph.launch(stream)
        stream.sync()
        np.testing.assert_array_equal(np.asarray(exported.results), np.arange(float(N)) + 1)


def test_closing_right_after_a_launch():
    x = on_device(np.zeros(N))
    exported, executable = exported_of(slow, x)
    stream = tracegraph.Stream("cuda")
    executable.launch(stream)
    executable.close()
    np.testing.assert_array_equal(np.asarray(exported.results), np.full(N, float(STEPS)))
    plain, executable = exported_of(lambda x: x + 1, x)
    executable.launch(stream)
    executable.close()
    np.testing.assert_array_equal(np.asarray(plain.results), np.ones(N))
