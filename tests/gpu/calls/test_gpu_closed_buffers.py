"""Buffers of cuda.core that are closed while graphs and launches read them."""

import gc

import numpy as np
import pytest

import tracegraph
from tracegraph import ArrayType, fori_loop
from tracegraph.errors import RawMemoryError

N = 1 << 20
TYPE = ArrayType("float64", (N,))


def filled(value):
    """A Buffer of cuda.core, from the device's pool, and its stream."""
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.memory_resource.allocate(TYPE.nbytes, stream=stream)
    stream.sync()
    view = tracegraph.owned(int(buffer.handle), TYPE, owner=buffer, device="cuda")
    source = tracegraph.asarray(np.full(N, value), device="cuda")
    source.synchronize()
    from cuda.bindings import driver  # noqa: TID251 - a copy to memory of the test's own

    driver.cuMemcpyDtoD(buffer.handle, source.memory.pointer, TYPE.nbytes)
    driver.cuCtxSynchronize()
    return buffer, view, stream


def poison():
    """Takes the memory that was freed last, and writes to it."""
    arrays = [filled(np.nan) for _ in range(4)]
    gc.collect()
    return arrays


def test_a_closed_buffer_is_read_by_an_exported_graph():
    buffer, array, _ = filled(3.0)
    exported = (
        tracegraph.jit(lambda x: 2 * x, device="cuda").lower(array).compile().export_graph(array)
    )
    executable = exported.instantiate()
    buffer.close()
    del array
    held = poison()
    for _ in range(3):
        executable.launch()
        np.testing.assert_array_equal(np.asarray(exported.results), np.full(N, 6.0))
    del held


def test_a_closed_buffer_is_read_by_launches_in_flight():
    slow = tracegraph.jit(
        lambda x: fori_loop(
            0, 2000, lambda i, s: s + x[:1000], np.zeros(1000), schedule="one_kernel"
        ),
        device="cuda",
    )
    buffer, array, _ = filled(3.0)
    slow(array).synchronize()
    result = slow(array)
    buffer.close()
    del array
    held = poison()
    np.testing.assert_array_equal(np.asarray(result), np.full(1000, 6000.0))
    del held


def test_its_memory_is_free_when_the_last_reader_is_gone():
    from cuda.core import Device

    Device(0).set_current()
    pool = Device(0).memory_resource
    tracegraph.reset()
    gc.collect()
    before = pool.attributes.used_mem_current
    buffer, array, stream = filled(1.0)
    buffer.close()
    stream.sync()
    assert pool.attributes.used_mem_current >= before + TYPE.nbytes
    del array
    gc.collect()
    tracegraph.reset()
    stream.sync()
    assert pool.attributes.used_mem_current < before + TYPE.nbytes


def test_a_buffer_that_is_closed_already_is_refused():
    buffer, array, _ = filled(1.0)
    address = array.memory.pointer
    buffer.close()
    with pytest.raises(RawMemoryError, match=r"a Buffer of cuda\.core, is closed"):
        tracegraph.owned(address, TYPE, owner=buffer, device="cuda")
