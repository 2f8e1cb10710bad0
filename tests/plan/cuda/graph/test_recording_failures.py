"""Whatever driver call fails, nothing is left behind, and what was built stays usable."""

import gc

import pytest

from lowering.cuda.memory.heap import Heap
from lowering.cuda.memory.pool import DevicePool
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.owners import SlotTable
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import ALL, VECTOR, diamond, small_input
from tracegraph.errors import UpdateError


class EveryCall(RecordingDriver):
    """Logs, and so can fail, what is not logged otherwise."""

    def kernel(self, module, name):
        self._log("kernel", name)
        return super().kernel(module, name)

    def library(self, kind):
        self._log("library")
        return super().library(kind)


def calls_of_a_build(make):
    driver = EveryCall()
    RecordingBackend(driver).compile(make())
    return len(driver.calls)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_a_build_that_fails_anywhere_leaves_nothing(make):
    for number in range(1, calls_of_a_build(make) + 1):
        driver = EveryCall(fail_at=number)
        with pytest.raises(InjectedError):
            RecordingBackend(driver).compile(make())
        assert driver.open_captures == 0
        driver.graphs.clear()
        gc.collect()
        assert len(driver.live_memory) == 0
        assert len(driver.live_executables) == 0


def test_the_driver_is_usable_after_a_failed_build():
    for number in range(1, calls_of_a_build(diamond) + 1):
        driver = EveryCall(fail_at=number)
        backend = RecordingBackend(driver)
        with pytest.raises(InjectedError):
            backend.compile(diamond())
        executable = backend.compile(diamond())
        assert driver.graphs[-1].edges == diamond().graph.edges
        assert not executable.stats()["launches"]


def test_a_call_that_fails_anywhere_is_made_good_by_the_next():
    reference = RecordingDriver()
    backend = RecordingBackend(reference)
    executable = backend.compile(small_input())
    built = len(reference.calls)
    x = backend.device.pool.buffer(VECTOR)
    executable([3, x])
    for number in range(built + 2, len(reference.calls) + 1):
        driver = RecordingDriver(fail_at=number)
        backend = RecordingBackend(driver)
        executable = backend.compile(small_input())
        x = backend.device.pool.buffer(VECTOR)
        with pytest.raises((InjectedError, UpdateError)):
            executable([3, x])
        updated = len(driver.calls)
        results = executable([3, x])
        passed = {
            (call.detail[0], tuple(call.detail[1:]))
            for call in driver.calls
            if call.operation == "update_kernel"
        }
        load, scalar, vector, fixed = driver.graphs[0].nodes
        for node in (load, scalar, vector, fixed):
            assert (node.name, tuple(node.values)) in passed
        assert results[0].pointer in scalar.values
        assert driver.calls[updated:][-1].operation == "launch"


def test_memory_comes_back_to_the_pool_and_is_freed_when_there_is_no_more():
    driver = RecordingDriver()
    pool = DevicePool(Heap(Timeline(driver)))
    pooled = pool.take(1000)
    assert pool.free_bytes == 0
    address = pooled.pointer
    del pooled
    assert pool.free_bytes == 1024
    assert pool.take(900).pointer == address
    fails = iter([True, False])
    allocate = driver.allocate

    def scarce(nbytes):
        if next(fails):
            raise MemoryError
        return allocate(nbytes)

    driver.allocate = scarce
    large = pool.take(1 << 20)
    gc.collect()
    assert pool.free_bytes == 0
    assert {memory.pointer for memory in driver.live_memory} == {large.pointer}


def test_a_frozen_slot_table_takes_no_owner():
    table = SlotTable()
    owner = object()
    table.retain(owner, None, owner)
    assert len(table) == 1
    assert owner in table
    table.freeze()
    with pytest.raises(RuntimeError, match="frozen"):
        table.retain(object())
