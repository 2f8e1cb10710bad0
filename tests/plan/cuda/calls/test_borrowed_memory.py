"""Memory borrowed from another library for a call: its stream, its owner; results written to it."""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from tests.fakes.foreign_arrays import Owner
from tracegraph.arrays.borrowed_memory import LEGACY_STREAM
from tracegraph.arrays.known_arrays import borrowed
from tracegraph.errors import CapturingStreamError, ClosedError


def array(backend, stream=0, *, shape=(1000,), offset=0, strides=None, ordinal=0):
    memory = backend.device.driver.allocate(8000 + offset)
    owner = Owner(memory)
    pointer = memory.pointer + offset
    return borrowed(pointer, np.float64, shape, ordinal, stream, owner, strides), owner


def calls(driver, *operations):
    return [call.operation for call in driver.calls if call.operation in operations]


def test_on_the_legacy_stream_nothing_is_recorded_and_nothing_held(backend):
    driver = backend.device.driver
    driver.stream = 7  # that of the recording driver is the legacy one
    double = tracegraph.jit(lambda x, s: s * x, device="cuda:0")
    x, owner = array(backend)
    assert x.memory.stream == LEGACY_STREAM
    before = len(driver.calls)
    for scale in (2.0, 3.0):
        double(x, scale)
    assert not {"record", "wait", "await_stream", "foreign"} & set(calls(driver, *_OPERATIONS))
    assert len(driver.calls) > before
    assert driver.graphs[0].nodes[-1].values.count(owner.memory.pointer) == 1
    alive = weakref.ref(owner)
    del x, owner
    gc.collect()
    assert alive() is None


_OPERATIONS = ("record", "wait", "await_stream", "foreign")


def test_another_stream_is_awaited_once_a_call_and_the_owners_held(backend):
    driver = backend.device.driver
    driver.busy = True
    (x, owner), (y, _) = array(backend, 9), array(backend, 9)
    add = tracegraph.jit(lambda x, y: x + y, device="cuda:0")
    add(x, y)
    assert [call.detail for call in driver.calls if call.operation == "await_stream"] == [(9,)]
    alive = weakref.ref(owner)
    del x, y, owner
    gc.collect()
    assert alive() is not None
    driver.busy = False
    backend.device.timeline.release_held()
    gc.collect()
    assert alive() is None


def test_without_a_stream_nothing_is_awaited_but_the_owner_is_held(backend):
    driver = backend.device.driver
    driver.busy = True
    x, owner = array(backend, None)
    tracegraph.jit(lambda x: x + 1, device="cuda:0")(x)
    assert not driver.count("await_stream")
    alive = weakref.ref(owner)
    del x, owner
    gc.collect()
    assert alive() is not None
    driver.busy = False


def test_what_is_strided_or_not_aligned_is_packed(backend):
    double = tracegraph.jit(lambda x: x * 2, device="cuda:0")
    for given in ({"shape": (10, 100), "strides": (1, 10)}, {"offset": 4}):
        before = double.stats()["bytes_copied"]
        double(array(backend, **given)[0])
        assert double.stats()["bytes_copied"] == before + 8000


def test_another_device_and_a_captured_stream_are_refused(backend):
    double = tracegraph.jit(lambda x: x * 2, device="cuda:0")
    with pytest.raises(ValueError, match="on cuda:1, the executable runs on cuda:0"):
        double(array(backend, ordinal=1)[0])
    backend.device.driver.captured_streams.add(9)
    with pytest.raises(CapturingStreamError, match="being captured"):
        double(array(backend, 9)[0])
    with tracegraph.stream(9):
        double(array(backend, 9)[0])
        with pytest.raises(CapturingStreamError, match="not contiguous"):
            double(array(backend, 9, shape=(10, 100), strides=(1, 10))[0])


@pytest.mark.parametrize("stream", [None, 8])
def test_results_are_written_to_given_addresses(backend, stream):
    driver = backend.device.driver
    both = tracegraph.jit(lambda x: (x * 2, np.cumsum(x)), device="cuda:0")
    x, _ = array(backend, stream or 0)

    def run(_, compiled, leaves):
        return compiled.executable.launch_into(leaves, [1 << 50, 1 << 51])

    with tracegraph.stream(stream or LEGACY_STREAM):
        for _ in range(2):
            both.through((x,), run)
    values = {value for graph in driver.graphs for node in graph.nodes for value in node.values}
    assert {1 << 50, 1 << 51} <= values
    assert both.stats()["launches"] == 2


def test_a_call_by_address_is_made_where_nothing_else_is_to_be_done(backend):
    driver = backend.device.driver
    scaled = tracegraph.jit(lambda x, s: x * s, device="cuda:0")
    x, _ = array(backend)
    executable = scaled.through((x, 2.0), lambda _, compiled, leaves: compiled.executable)
    launch, pointer = executable.addressed(), x.memory.pointer
    assert launch([pointer, 0, 1 << 50], [(1, 3.0)])
    assert not launch([pointer + 4, 0, 1 << 50], [(1, 3.0)])
    assert not launch([pointer, pointer, 1 << 50], [(0, 3.0)])
    assert driver.count("launch") == 1
    words = [value for node in driver.graphs[0].nodes for value in node.values]
    assert np.float64(3.0).view(np.int64) in words
    assert {pointer, 1 << 50} <= set(driver.graphs[0].nodes[-1].values)
    backend.device.timeline.hold(lambda: False, x)
    assert not launch([pointer, 0, 1 << 50], [(1, 3.0)])
    backend.device.timeline.held.clear()
    executable.close()
    with pytest.raises(ClosedError):
        launch([pointer, 0, 1 << 50], [(1, 3.0)])
    counted = tracegraph.jit(lambda x: tracegraph.while_loop(np.all, np.sin, x), device="cuda:0")
    assert (
        counted.through((x,), lambda _, compiled, leaves: compiled.executable.addressed()) is None
    )
