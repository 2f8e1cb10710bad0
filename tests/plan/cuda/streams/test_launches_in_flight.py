"""A launch in flight never outlives what it uses, whatever is collected, closed or interrupted."""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from lowering.cuda.streams.launch_end import LaunchEnd
from lowering.testing.call_log import InjectedError
from tests.fakes.foreign_arrays import Foreign, Owner
from tests.fakes.interrupts import interrupted
from tests.programs.hand_made_plans import VECTOR, diamond
from tracegraph.current_stream import current_stream


@pytest.fixture
def device(backend):
    return backend.device


def drivers(device):
    return device.driver.streams


def set_busy(device, busy):
    for driver in drivers(device):
        driver.busy = busy


def settle(device):
    set_busy(device, False)
    for stream in device.streams:
        stream.timeline.release_held()
    gc.collect()


def raw(device):
    memory = device.driver.allocate(VECTOR.nbytes)
    owner = Owner(memory)
    array = tracegraph.owned(memory.pointer, VECTOR, owner=owner, device="cuda:0")
    return array, weakref.ref(owner)


def graph_of(executable, device, stream):
    """The graph of an executable for a stream, where it has run once."""
    if stream is None:
        return executable._default_graph
    with tracegraph.stream(stream):
        executable([device.pool.buffer(VECTOR)])
        return executable._graphs[device.streams.of(current_stream())]


@pytest.mark.parametrize("stream", [None, 8])
def test_the_owner_of_an_argument_at_every_interrupt(backend, device, stream):
    executable = backend.compile(diamond())

    graph = graph_of(executable, device, stream)

    def run(array):
        graph._run([array.memory], None)  # the lock around it has tests of its own

    run(raw(device)[0])
    settle(device)
    array, owner = raw(device)
    set_busy(device, True)
    launches, launched = device.driver.count("launch"), []
    points = interrupted(lambda: run(array), "stream_graph", "timeline", "launch_end")
    for _ in points:
        array = None
        gc.collect()
        launched.append(device.driver.count("launch") - launches)
        assert launched[-1] <= 1
        if launched[-1]:
            assert owner() is not None, "the launch reads its memory"
        settle(device)
        assert owner() is None, "nothing holds it for ever"
        array, owner = raw(device)
        set_busy(device, True)
        launches = device.driver.count("launch")
    assert {*launched} == {0, 1}, "interrupts came on both sides of the launch"


def test_memory_of_another_stream_at_every_interrupt(backend, device):
    """It goes back to its own stream, which must not use it before the launch has read it."""
    executable = backend.compile(diamond())
    graph = graph_of(executable, device, 8)
    other, launches = device.driver.streams[-1], device.driver.count("launch")
    x, launched = device.pool.buffer(VECTOR), []

    def run():
        other.busy = True
        graph._run([x], None)

    for _ in interrupted(run, "stream_graph", "launch_end"):
        launched.append(device.driver.count("launch") - launches)
        if launched[-1]:
            assert not x._free.over, "its own stream may not have it yet"
        other.busy = False
        graph._stream.timeline.release_held()
        assert not launched[-1] or x._free.over
        x, launches = device.pool.buffer(VECTOR), device.driver.count("launch")
    assert {*launched} == {0, 1}


@pytest.mark.parametrize("end", ["collected", "closed", "reset"])
def test_arguments_of_a_launch_whose_executable_goes(backend, device, end):
    array, owner = raw(device)
    executable = backend.compile(diamond())
    executable([array.memory])
    device.driver.busy = True
    (result,) = executable([array.memory])
    array = None
    if end == "collected":
        executable = None
        gc.collect()
        assert owner() is not None
    elif end == "closed":
        executable.close()  # waits for the launch
        device.driver.busy = False
    else:
        device.reset()
        device.driver.busy = False
    settle(device)
    assert owner() is None
    assert result.type == VECTOR


def test_arrays_of_other_libraries_are_held_as_raw_memory_is(backend, device):
    f = tracegraph.jit(lambda x, y: x * 2 + y, device="cuda:0")
    device.driver.busy = True
    arrays = [Foreign(0x7000000), Foreign(0x8000000)]
    references = [weakref.ref(array) for array in arrays]
    f(*arrays)
    arrays = None
    gc.collect()
    assert all(reference() is not None for reference in references)
    settle(device)
    assert not any(reference() for reference in references)


@pytest.mark.parametrize("step", [1, 2])  # the launch, and the event behind it
def test_a_call_that_fails_holds_nothing_for_ever(backend, device, step):
    array, owner = raw(device)
    executable = backend.compile(diamond())
    executable([array.memory])
    settle(device)
    driver = device.driver
    driver.fail_at = len(driver.calls) + step
    with pytest.raises(InjectedError, match="fails as asked"):
        executable([array.memory])
    array = None
    settle(device)
    assert owner() is None


def test_the_end_of_a_launch_is_not_passed_before_the_launch():
    recorded = []

    def record():
        recorded.append(None)
        return lambda: True

    end = LaunchEnd(record)
    assert not end()
    assert not recorded
    end.made = True
    assert end()
    assert end.end() is end.end()
    assert len(recorded) == 1


def test_numbers_and_host_arrays_are_read_before_a_call_returns(backend, device):
    f = tracegraph.jit(lambda x, n: x * n, device="cuda:0")
    x = np.ones(1000)
    reference = weakref.ref(x)
    device.driver.busy = True
    f(x, 3)
    x = None
    gc.collect()
    assert reference() is None
