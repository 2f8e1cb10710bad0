"""Arrays of memory that the user has: no copy, and an owner that outlives every use."""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from tests.fakes.foreign_arrays import Foreign, Owner
from tracegraph import ArrayType
from tracegraph.dtypes import SHORT_NAMES
from tracegraph.errors import RawMemoryError

VECTOR = ArrayType("float64", (1000,))
DTYPES = tuple(SHORT_NAMES)


def raw(backend, type_=VECTOR, **options):
    memory = backend.device.driver.allocate(type_.nbytes)
    owner = Owner(memory)
    return tracegraph.owned(memory.pointer, type_, owner=owner, device="cuda", **options), owner


def doubled(**options):
    return tracegraph.jit(lambda x: 2 * x, device="cuda:0", **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_launch_reads_it_where_it_is(backend, dtype):
    array, owner = raw(backend, ArrayType(dtype, (1000,)))
    f = tracegraph.jit(lambda x: x == x, device="cuda:0")
    for _ in range(3):
        f(array)
    (graph,) = backend.device.driver.graphs
    assert owner.memory.pointer in graph.nodes[-1].values
    assert f.stats()["bytes_copied"] == 0
    assert (array.dtype, array.shape, array.device) == (np.dtype(dtype), (1000,), "cuda:0")


def test_two_owners_of_one_address_both_stay(backend):
    """Which of them frees the memory is not known: a tensor and its view own it together."""
    memory = backend.device.driver.allocate(VECTOR.nbytes)
    owners = [Owner(memory), Owner(memory)]
    arrays = [
        tracegraph.owned(memory.pointer, VECTOR, owner=owner, device="cuda") for owner in owners
    ]
    alive = [weakref.ref(owner) for owner in owners]
    del owners
    compiled = tracegraph.jit(lambda x, y: x + y, device="cuda:0").lower(*arrays).compile()
    exported = compiled.export_graph(*arrays)
    del arrays, compiled
    gc.collect()
    assert all(owner() is not None for owner in alive)
    backend.device.driver.graphs.clear()
    del exported
    gc.collect()
    assert [owner() for owner in alive] == [None, None]


def test_bytes_are_an_array_of_uint8(backend):
    array, _ = raw(backend)
    memory = array.memory
    many = tracegraph.owned(memory.pointer, 8000, owner=memory, device="cuda")
    assert (many.dtype, many.shape) == (np.uint8, (8000,))


def test_a_launch_in_flight_holds_the_owner_until_it_has_run(backend):
    driver = backend.device.driver
    driver.busy = True
    array, owner = raw(backend)
    owner = weakref.ref(owner)
    result = doubled()(array)
    del array
    gc.collect()
    assert owner() is not None
    driver.busy = False
    backend.device.timeline.release_held()
    gc.collect()
    assert owner() is None
    del result


def test_the_array_alone_holds_it_between_calls(backend):
    array, owner = raw(backend)
    owner = weakref.ref(owner)
    f = doubled()
    f(array)
    backend.device.timeline.release_held()
    gc.collect()
    assert owner() is not None
    del array
    gc.collect()
    assert owner() is None
    assert f.stats()["launches"] == 1


def test_an_exported_graph_and_what_is_made_of_it_hold_the_owner(backend):
    array, owner = raw(backend)
    pointer, owner = owner.memory.pointer, weakref.ref(owner)
    given = doubled().lower(array).compile().export_graph(array)
    driver = backend.device.driver
    assert pointer in given.definition.nodes[-1].added
    made = driver.instantiate(given.definition)
    driver.graphs.clear()
    del given, array
    gc.collect()
    assert owner() is not None
    driver.close(made)
    gc.collect()
    assert owner() is None


def test_each_use_waits_for_the_stream_that_writes_it(backend):
    driver = backend.device.driver
    array, _ = raw(backend, stream=7)
    f = doubled()
    for launches in (1, 2):
        f(array)
        recorded = [c for c in driver.calls if (c.operation, c.stream) == ("record", 7)]
        assert len(recorded) == launches
    waits = [c for c in driver.calls if (c.operation, c.stream) == ("wait", 1)]
    assert len(waits) == 2
    assert array.memory.__cuda_array_interface__["stream"] == 7


def test_on_the_stream_of_the_memory_nothing_is_waited_for(backend):
    array, _ = raw(backend, stream=7)
    before = backend.device.driver.count("wait")
    with tracegraph.stream(7):
        doubled()(array)
    assert backend.device.driver.count("wait") == before


def test_other_libraries_wait_for_that_stream_too(backend):
    driver = backend.device.driver
    array, _ = raw(backend, stream=7)
    array.memory.hand_over(9)
    assert [c.detail[1] for c in driver.calls if c.operation == "hand_over"] == [9]
    array.memory.hand_over(7)
    assert driver.count("hand_over") == 1


def test_elements_are_copied_to_the_host_in_order(backend):
    array, _ = raw(backend, stream=7)
    np.asarray(array)
    calls = [c.operation for c in backend.device.driver.calls]
    assert calls[-3:] == ["record", "wait", "copy_to_host"]
    array.synchronize()
    assert backend.device.driver.calls[-1].operation == "synchronize"


def test_what_is_donated_is_copied_and_stays(backend):
    array, owner = raw(backend)
    pointer = owner.memory.pointer
    f = doubled(donate_argnums=0)
    (leaf,) = f.lower(array).compile().plan.outputs
    assert leaf.space == "input"
    result = f(array)
    assert result.memory.pointer != pointer
    assert f.stats()["bytes_copied"] == VECTOR.nbytes
    sources = [c.detail[1] for c in backend.device.driver.calls if c.operation == "copy"]
    assert sources == [pointer]
    assert all(pointer != c.detail[0] for c in backend.device.driver.calls if c.operation == "copy")


def test_an_argument_of_another_type_is_refused(backend):
    array, _ = raw(backend)
    compiled = doubled().lower(np.ones(3)).compile()
    with pytest.raises(TypeError, match="float64"):
        compiled.executable([array.memory])


def test_memory_that_the_device_cannot_access(backend):
    driver = backend.device.driver
    memory = driver.allocate(800)
    with pytest.raises(RawMemoryError, match="its first byte, at 0x10, is in no memory that CUDA"):
        tracegraph.owned(16, 8, owner=memory, device="cuda")
    with pytest.raises(RawMemoryError, match=r"its last byte, at 0x.*, is in no memory that CUDA"):
        tracegraph.owned(memory.pointer, 801, owner=memory, device="cuda")
    driver.locate = lambda address: "cuda:3"
    with pytest.raises(
        RawMemoryError, match=r"not in memory of cuda:0: its first byte.* on cuda:3"
    ):
        tracegraph.owned(memory.pointer, 8, owner=memory, device="cuda")


def test_pinned_memory_of_the_host_is_read_by_the_device(backend):
    memory = backend.device.driver.allocate_host(800)
    array = tracegraph.owned(
        memory.pointer, ArrayType("uint8", (800,)), owner=memory, device="cuda"
    )
    doubled()(array)
    assert array.device == "cuda:0"


@pytest.mark.parametrize("device", ["host", "cuda"])
def test_facts_of_errors(backend, device):
    owner = object()

    def refused(match, address, type_=VECTOR, error=RawMemoryError, owner=owner):
        with pytest.raises(error, match=match):
            tracegraph.owned(address, type_, owner=owner, device=device)

    refused(r"f64\[1000\], 8,000 bytes, has the null address", 0)
    refused(r"the address -8 of an array of type f64\[1000\] is negative", -8)
    refused("0x1004 of an array .* is 4 bytes behind a multiple of 8", 0x1004)
    refused("8 bytes behind a multiple of 16", 0x1008, ArrayType("complex128", (2,)))
    refused("ends behind the last address", (1 << 64) - 8)
    refused("-5 bytes: the number must not be negative", 4096, -5)
    refused("the 8,000 bytes at 0x1000 have no owner", 4096, owner=None)
    refused("an address is an int, got float", 4096.0, error=TypeError)
    refused("an address is an int, got bool", True, error=TypeError)
    refused("an ArrayType or a number of bytes, got str", 4096, "f8", error=TypeError)
    refused("an ArrayType or a number of bytes, got bool", 4096, True, error=TypeError)


def test_memory_of_the_host_is_on_no_stream():
    with pytest.raises(ValueError, match="on no stream"):
        tracegraph.owned(4096, 8, owner=object(), device="host", stream=7)


@pytest.mark.parametrize("address", [0, 4096])
@pytest.mark.parametrize("device", ["host", "cuda"])
def test_no_bytes_may_be_anywhere(backend, device, address):
    array = tracegraph.owned(address, ArrayType("float32", (0, 3)), owner=object(), device=device)
    assert array.shape == (0, 3)
    assert tracegraph.jit(lambda x: x + 1, device=array.device)(array).shape == (0, 3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_host_reads_raw_memory_and_never_writes_to_it(dtype):
    source = np.arange(6).astype(dtype)
    array = tracegraph.owned(
        source.ctypes.data, ArrayType(dtype, (2, 3)), owner=source, device="host"
    )
    before = source.copy()
    f = tracegraph.jit(
        lambda x: x & x if x.dtype == bool else x + x, donate_argnums=0, device="host"
    )
    result = np.asarray(f(array))
    np.testing.assert_array_equal(source, before)
    expected = before & before if before.dtype == bool else before + before
    np.testing.assert_array_equal(result.ravel(), expected)


def test_the_host_sees_what_the_owner_writes():
    source = np.zeros(3)
    array = tracegraph.owned(
        source.ctypes.data, ArrayType("float64", (3,)), owner=source, device="host"
    )
    f = tracegraph.jit(lambda x: x + 1, device="host")
    assert np.asarray(f(array)).tolist() == [1, 1, 1]
    source[:] = 2
    assert np.asarray(f(array)).tolist() == [3, 3, 3]


def test_memory_of_the_host_keeps_its_owner():
    memory = np.ones(3)
    holder = Owner(memory)
    array = tracegraph.owned(
        memory.ctypes.data, ArrayType("float64", (3,)), owner=holder, device="host"
    )
    holder = weakref.ref(holder)
    view = np.asarray(array)
    del array, memory
    gc.collect()
    assert holder() is not None
    assert view.tolist() == [1, 1, 1]
    del view
    gc.collect()
    assert holder() is None


def test_a_captured_call_reads_it_in_place(backend):
    array, _ = raw(backend, stream=7)
    f = doubled()
    f(array)
    driver = backend.device.driver
    driver.captured_streams.add(9)
    with tracegraph.stream(9):
        result = f(array)
    assert result.shape == array.shape
    (child,) = [node.bodies[0] for node in driver.captures[9].nodes]
    addresses = {value for node in child.nodes for value in node.values}
    assert {array.data.pointer, result.data.pointer} <= addresses


# Owners that somebody closes


class Buffer:
    """A share of an allocation, which can be given up."""

    def __init__(self, memory):
        self.allocation = memory
        self.pointer = memory.pointer

    def close(self):
        self.allocation = None

    @property
    def __cuda_array_interface__(self):
        return Foreign(self.pointer).__cuda_array_interface__


def buffer_of(backend):
    buffer = Buffer(backend.device.driver.allocate(VECTOR.nbytes))
    return buffer, weakref.ref(buffer.allocation)


def test_the_allocation_stays_though_its_owner_is_closed(backend):
    buffer, allocation = buffer_of(backend)
    array = tracegraph.owned(buffer.pointer, VECTOR, owner=buffer, device="cuda")
    buffer.close()
    gc.collect()
    assert allocation() is not None
    del array
    gc.collect()
    assert allocation() is None


def test_a_launch_in_flight_holds_the_allocation(backend):
    driver = backend.device.driver
    driver.busy = True
    buffer, allocation = buffer_of(backend)
    result = doubled()(tracegraph.owned(buffer.pointer, VECTOR, owner=buffer, device="cuda"))
    buffer.close()
    gc.collect()
    assert allocation() is not None
    driver.busy = False
    backend.device.timeline.release_held()
    gc.collect()
    assert allocation() is None
    del result


@pytest.mark.parametrize("directly", [True, False])
def test_an_exported_graph_holds_the_allocation(backend, directly):
    buffer, allocation = buffer_of(backend)
    array = buffer
    if not directly:
        array = tracegraph.owned(buffer.pointer, VECTOR, owner=buffer, device="cuda")
    given = doubled().lower(VECTOR).compile().export_graph(array)
    executable = given.instantiate()
    buffer.close()
    backend.device.driver.graphs.clear()
    del array, given
    gc.collect()
    assert allocation() is not None
    executable.launch()
    executable.close()
    gc.collect()
    assert allocation() is None


@pytest.mark.parametrize("directly", [True, False])
def test_a_captured_call_holds_the_allocation(backend, directly):
    driver = backend.device.driver
    buffer, allocation = buffer_of(backend)
    array = buffer
    if not directly:
        array = tracegraph.owned(buffer.pointer, VECTOR, owner=buffer, device="cuda")
    f = doubled()
    f.warm(VECTOR)
    driver.captured_streams.add(8)
    with tracegraph.stream(8):
        f(array)
    buffer.close()
    del array
    driver.graphs.clear()
    gc.collect()
    assert allocation() is not None
    driver.captures.clear()
    gc.collect()
    assert allocation() is None
