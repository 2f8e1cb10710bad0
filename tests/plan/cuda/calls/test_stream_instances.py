"""Each stream that calls an executable has a graph of its own, as long as the stream is there."""

import gc
import weakref

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.cuda.memory.pool import size_class
from lowering.cuda.streams.owned_stream import OwnedStream
from lowering.cuda.streams.stream_table import MOST_FOREIGN
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.threads import in_threads
from tests.programs.hand_made_plans import (
    ALL,
    VECTOR,
    arguments_of,
    diamond,
    effects,
    nested_loops,
    products,
    small_input,
)
from tracegraph.errors import ClosedError, TimeLimitError

ARENA = size_class(diamond().arena_bytes)


@pytest.fixture
def backend():
    return RecordingBackend()


@pytest.fixture
def device(backend):
    return backend.device


@pytest.fixture
def driver(device):
    return device.driver


def run(executable, stream, arguments=None):
    given = arguments_of(executable) if arguments is None else arguments
    with tracegraph.stream(stream):
        return executable(given)


def forget(driver):
    """A real driver keeps no graph that is not in use."""
    driver.graphs.clear()
    gc.collect()


def test_a_stream_gets_a_graph_at_its_first_call_and_code_and_constants_are_shared(backend, driver):
    executable = backend.compile(small_input())
    for _ in range(2):
        for stream in (8, 9):
            run(executable, stream)
    assert driver.count("load") == 1
    assert driver.count("instantiate") == 3
    default, *others = driver.graphs
    for graph in others:
        assert graph.edges == default.edges
        assert graph.nodes[3].values[1] == default.nodes[3].values[1]  # the constant
        assert graph.nodes[0].values[0] != default.nodes[0].values[0]  # the small inputs


def test_a_function_is_built_once_for_all_streams(monkeypatch, backend, driver):
    monkeypatch.setattr(lowering, "backend", lambda _: backend)
    f = tracegraph.jit(lambda x: x * 2, device="cuda:0")
    for stream in (None, 8, 9, 8):
        if stream is None:
            f(np.ones(5))
        else:
            with tracegraph.stream(stream):
                f(np.ones(5))
    stats = f.stats()
    assert (stats["builds"], stats["traces"], stats["launches"]) == (1, 1, 4)
    assert driver.count("instantiate") == 3


def test_streams_do_not_wait_for_each_other(backend, device, driver):
    one, other = backend.compile(diamond()), backend.compile(products())
    for stream in (8, 9):
        run(one, stream), run(other, stream)
    start = len(driver.calls)
    for _ in range(3):
        for stream in (8, 9):
            run(one, stream), run(other, stream)
        one(arguments_of(one))
    assert "wait" not in {call.operation for call in driver.calls[start:]}


def test_while_nodes_of_several_streams_take_turns(backend, driver):
    loop, other = backend.compile(nested_loops()), backend.compile(diamond())
    for stream in (8, 9):
        run(loop, stream), run(other, stream)
    start = len(driver.calls)
    for each in driver.streams:
        each.busy = True
    for stream, another in ((8, 9), (9, 8), (9, 8), (8, 9)):
        run(loop, stream), run(other, another)
    said = [(call.operation, call.stream) for call in driver.calls[start:]]
    ordered = [each for each in said if each[0] in ("launch", "wait")]
    assert ordered == [
        ("launch", 8), ("launch", 9),
        ("wait", 9), ("launch", 9), ("launch", 8),
        ("launch", 9), ("launch", 8),
        ("wait", 8), ("launch", 8), ("launch", 9),
    ]  # fmt: skip


def test_what_is_shared_is_waited_for_once(backend, driver):
    executable = backend.compile(small_input())  # uploads a constant
    (upload,) = (i for i, call in enumerate(driver.calls) if call.operation == "record")
    run(executable, 8), run(executable, 8)
    assert [call.detail for call in driver.calls if call.operation == "wait"] == [(upload,)]


def test_executables_share_the_scratch_of_a_stream_and_streams_share_none(backend, device):
    one, other = backend.compile(diamond()), backend.compile(diamond())
    assert device.memory_stats()["arenas"] == ARENA
    run(one, 8), run(other, 8), run(one, 9)
    assert device.memory_stats()["arenas"] == 3 * ARENA
    arenas = [
        {memory.pointer for memory in made._graphs[stream].memory}
        for stream in device.streams
        for made in (one, other)
        if stream in made._graphs
    ]
    assert arenas[0] == arenas[1]
    assert arenas[2] == arenas[3]
    assert len(set.union(*arenas)) == 3
    held = {**one.pieces(), **other.pieces()}
    graphs = [one.memory()["graph"], other.memory()["graph"]]
    assert sum(held.values()) == 3 * ARENA + sum(graphs)
    assert graphs[0] > graphs[1]


def test_a_larger_need_on_one_stream_leaves_the_others(backend, device):
    one, other = backend.compile(diamond()), backend.compile(diamond())
    run(one, 8)
    large = backend.compile(products())
    run(other, 8)
    assert one._default_graph.memory != large._default_graph.memory
    stream = next(stream for stream in device.streams if not stream.is_default)
    assert one._graphs[stream].memory == other._graphs[stream].memory


def test_closing_closes_the_graphs_of_all_streams(backend, driver):
    executable = backend.compile(small_input())
    for stream in (8, 9):
        run(executable, stream)
    executable.close()
    executable.close()
    assert driver.count("close") == 3
    assert executable.stats()["launches"] == 2
    for stream in (8, 9, 10):
        with pytest.raises(ClosedError):
            run(executable, stream)
    forget(driver)
    assert len(driver.live_executables) == 0
    assert backend.device.memory_stats()["constants"] == 0


def test_closing_waits_for_streams_in_use_unless_time_is_up(backend, driver):
    executable = backend.compile(nested_loops())
    run(executable, 8)
    driver.streams[-1].busy = True
    run(executable, 8)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        executable.close()
    assert not executable.closed
    executable.close()
    assert driver.count("close") == 2


def test_what_a_call_on_some_stream_is_using_is_not_evicted(backend):
    executable = backend.compile(diamond())
    run(executable, 8)
    graph = list(executable._graphs.values())[-1]
    with graph.lock:
        assert not executable.close_idle()
    assert not executable.closed
    run(executable, 8)
    assert executable.close_idle()


def test_the_report_is_that_of_the_devices_own_stream(backend):
    executable = backend.compile(diamond())
    before = executable.slots
    run(executable, 8)
    assert executable.slots == before


# ---- streams that come and go ----


def test_a_stream_takes_its_graphs_and_memory_with_it(backend, device, driver):
    executable = backend.compile(diamond())
    stream = OwnedStream(device)
    run(executable, stream), run(executable, stream)
    held = device.memory_stats()
    assert (held["arenas"], held["cached"] > 0, len(device.streams)) == (2 * ARENA, True, 2)
    del stream
    forget(driver)
    left = device.memory_stats()
    assert (left["arenas"], left["cached"], len(device.streams)) == (ARENA, 0, 1)
    assert len(driver.live_executables) == 1
    assert executable.stats()["launches"] == 2
    executable(arguments_of(executable))
    assert executable.stats()["launches"] == 3


def test_a_stream_whose_loops_run_is_left_without_waiting(backend, device, driver):
    loop = backend.compile(nested_loops())
    stream = OwnedStream(device)
    run(loop, stream)
    own = driver.streams[-1]
    own.busy = True
    run(loop, stream)
    held = device.memory_stats()["arenas"]
    del stream
    gc.collect()
    other = OwnedStream(device)
    loop(arguments_of(loop))
    assert device.memory_stats()["arenas"] == held
    assert len(driver.live_executables) == 2
    own.busy = False
    run(loop, other)
    forget(driver)
    assert len(device.streams) == 2
    assert len(driver.live_executables) == 2


def test_loops_on_a_stream_that_was_left_can_be_stopped(backend, device, driver):
    loop = backend.compile(nested_loops())
    stream = OwnedStream(device)
    run(loop, stream)
    driver.streams[-1].busy = True
    (result,) = run(loop, stream)
    del stream
    gc.collect()
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        loop.close()
    with pytest.raises(tracegraph.errors.StoppedError):
        result.to_host()
    device.streams.sweep()
    assert len(device.streams) == 1


def test_results_keep_their_stream_open(backend, device, driver):
    executable = backend.compile(diamond())
    stream = OwnedStream(device)
    raw = weakref.ref(stream._stream)
    (result,) = run(executable, stream)
    del stream
    gc.collect()
    device.streams.sweep()
    assert len(device.streams) == 1
    assert result.to_host().shape == VECTOR.shape
    assert raw() is not None
    driver.streams.clear()  # the log's own references
    del result
    gc.collect()
    assert raw() is None


@pytest.mark.parametrize("way", ["general", "fast"])
def test_a_launch_on_a_stream_outlives_its_executable(backend, device, driver, way):
    executable = backend.compile(diamond())
    (x,) = run(executable, 8)
    slots = weakref.ref(list(executable._graphs.values())[-1].definition.slots)
    driver.streams[-1].busy = True
    run(executable, 8, [x] if way == "fast" else None)
    del executable
    forget(driver)
    assert slots() is not None
    driver.streams[-1].busy = False
    driver_timeline(device).release_held()
    gc.collect()
    assert slots() is None


def test_what_others_still_read_is_not_freed_with_its_stream(backend, device, driver):
    executable = backend.compile(diamond())
    stream = OwnedStream(device)
    run(executable, 8)
    (made,) = run(executable, stream)
    memory = weakref.ref(made._allocation)
    reader = driver.streams[-1]
    reader.busy = True
    run(executable, 8, [made])
    del stream
    device.streams.sweep()
    assert len(device.streams) == 2
    del made
    gc.collect()
    device.heap.release()
    assert memory() is not None
    reader.busy = False
    device.heap.release()
    assert memory() is None


def test_what_a_program_reports_is_heard_after_its_stream_was_left(backend, device, driver):
    reporting = backend.compile(effects())
    stream = OwnedStream(device)
    run(reporting, stream)
    timeline = weakref.ref(driver_timeline(device))
    list(reporting._graphs.values())[-1]._effects._mailbox._words[0] = 1
    del stream
    gc.collect()
    device.streams.sweep()
    assert len(device.streams) == 1
    with pytest.raises(tracegraph.errors.StepLimitError):
        timeline().wait()
    assert not device.timeline._undrained_streams


def driver_timeline(device):
    return next(stream.timeline for stream in device.streams if not stream.is_default)


def test_idle_streams_of_other_libraries_are_left_when_there_are_many(backend, device, driver):
    executable = backend.compile(diamond())
    for handle in range(100, 100 + 3 * MOST_FOREIGN):
        run(executable, handle)
    forget(driver)
    assert len(device.streams) <= MOST_FOREIGN + 1
    assert len(driver.live_executables) <= MOST_FOREIGN + 1
    assert executable.stats()["launches"] == 3 * MOST_FOREIGN


def test_a_handle_that_is_given_again_is_another_stream(backend, device, driver, monkeypatch):
    executable = backend.compile(diamond())
    run(executable, 100)
    stream = OwnedStream(device)  # the first handle of the recording driver
    assert stream.__cuda_stream__()[1] == 100
    start = driver.count("instantiate")
    run(executable, stream)
    assert driver.count("instantiate") == start + 1


def test_a_stream_is_not_let_go_of_in_the_middle_of_a_call(backend, device):
    executable = backend.compile(diamond())
    run(executable, 8)
    stream, graph = list(executable._graphs.items())[-1]
    with graph.lock:
        device.streams.leave(stream)
        device.streams.leave(stream)
        device.streams.sweep()
        assert stream in executable._graphs
    device.streams.sweep()
    device.streams.leave(stream)
    device.streams.sweep()
    assert list(device.streams) == [device.default_stream]
    assert list(executable._graphs) == [device.default_stream]


def test_a_stream_that_is_let_go_of_just_before_a_call_is_opened_again(backend, device):
    executable = backend.compile(diamond())
    run(executable, 8)
    stream, call = list(executable._calls.items())[-1]

    def left_just_before(*given):
        device.streams.leave(stream)
        device.streams.sweep()
        return call(*given)

    executable._calls[stream] = left_just_before
    run(executable, 8)
    assert stream not in executable._calls
    assert executable.stats()["launches"] == 2


def test_a_stream_is_left_after_its_executables_were_closed(backend, device):
    executable = backend.compile(diamond())
    stream = OwnedStream(device)
    run(executable, stream)
    executable.close()
    del stream
    device.streams.sweep()
    assert list(device.streams) == [device.default_stream]


def test_threads_that_call_first_on_a_stream_make_one_graph(backend, driver):
    executable = backend.compile(small_input())
    arguments = arguments_of(executable)
    in_threads(8, lambda _: run(executable, 8, arguments))
    assert driver.count("instantiate") == 2
    assert executable.stats()["launches"] == 8


# ---- failures ----


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_a_first_call_on_a_stream_that_fails_anywhere_leaves_nothing(make):
    def built(driver):
        backend = RecordingBackend(driver)
        return backend, backend.compile(make())

    backend, executable = built(reference := RecordingDriver())
    start = len(reference.calls)
    run(executable, 8)
    for number in range(start + 1, len(reference.calls) + 1):
        backend, executable = built(driver := RecordingDriver(fail_at=number))
        with pytest.raises((InjectedError, tracegraph.errors.UpdateError)):
            run(executable, 8)
        assert driver.open_captures == 0
        if "launch" not in [call.operation for call in driver.calls]:
            before = driver.count("instantiate")
            run(executable, 8)
            assert driver.count("instantiate") - before <= 1
        executable.close()
        del executable
        driver.graphs.clear()
        backend.device.reset()
        assert len(driver.live_executables) == 0
        stats = backend.device.memory_stats()
        assert stats["arenas"] == stats["constants"] == stats["cached"] == 0


def test_a_reset_closes_the_graphs_of_all_streams(backend, device, driver):
    executable = backend.compile(diamond())
    stream = OwnedStream(device)
    run(executable, stream), run(executable, 8)
    device.reset()
    forget(driver)
    assert executable.closed
    assert len(driver.live_executables) == 0
    assert device.memory_stats()["arenas"] == 0
