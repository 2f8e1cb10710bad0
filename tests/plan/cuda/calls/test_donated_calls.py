"""Calls on a device that overwrite donated arguments: whose memory, on which stream, what fails."""

import gc
import weakref

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.cuda.memory.pool import size_class
from lowering.cuda.streams.timeline import MOST_QUEUED
from lowering.plan.target import overrides as choices
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign
from tracegraph import Array, ArrayType
from tracegraph.errors import DonatedArrayError, StoppedError, TimeLimitError, UpdateError
from tracegraph.staging import executable_cache

MIB = 1 << 20
STATE = ArrayType("float64", (MIB // 8,))


@pytest.fixture
def backend(monkeypatch):
    """A recorded GPU, on which functions for "cuda:0" run."""
    return use(monkeypatch, RecordingBackend())


def use(monkeypatch, backend):
    monkeypatch.setattr(lowering, "backend", lambda _: backend)
    monkeypatch.setattr(executable_cache, "_cached", weakref.WeakSet())
    return backend


def donating(function, positions=0):
    return tracegraph.jit(function, donate_argnums=positions, device="cuda:0")


def step(x):
    return x * 2 + 1


def settle(x):
    """A loop whose number of steps is not known."""
    return tracegraph.while_loop(lambda c: c.max() > 1, lambda c: c * 0.5, x)


def state(backend):
    return Array(backend.device.pool.buffer(STATE))


def since(driver, start):
    return [call.operation for call in driver.calls[start:]]


# ---- in place ----


@pytest.mark.parametrize("function", [step, settle])
def test_a_chain_of_steps_holds_one_state(backend, function):
    f = donating(function)
    x = state(backend)
    address = x.data.pointer
    f(state(backend))
    gc.collect()
    backend.device.heap.trim()
    for _ in range(100):
        x = f(x)
        assert x.data.pointer == address
    stats = backend.device.memory_stats()
    assert stats["arrays"] == size_class(MIB)
    assert stats["cached"] == 0
    assert f.stats()["bytes_copied"] == 0


def test_no_copy_leads_into_a_loop_nor_out_of_it(backend):
    f, g = donating(settle), tracegraph.jit(settle, device="cuda:0")
    x = state(backend)
    g(x)
    f(x)
    plain, donated = backend.device.driver.graphs
    assert len(donated.nodes) == len(plain.nodes) - 2
    assert f.lower(STATE).memory["scratch"] < MIB <= g.lower(STATE).memory["scratch"]


def test_what_stays_in_its_place_is_not_updated(backend):
    f = donating(settle)
    x = f(state(backend))
    updates = f.stats()["updates"]
    for _ in range(5):
        x = f(x)
    assert f.stats()["updates"] == updates


def test_the_graph_is_launched_and_nothing_else(backend):
    f = donating(step)
    x = f(state(backend))
    start = len(backend.device.driver.calls)
    f(x)
    assert since(backend.device.driver, start) == ["launch"]


def test_results_keep_their_order(backend):
    f = donating(lambda x, y: (y.sum(), x + 1, y.cumsum(), y * 3), (0, 1))
    x, y = state(backend), state(backend)
    addresses = [x.data.pointer, y.data.pointer]
    total, first, sums, _ = f(x, y)
    assert total.shape == ()
    assert first.data.pointer == addresses[0]
    assert sums.data.pointer not in addresses


# ---- copies ----


def copies(backend, start=0):
    return [c.detail for c in backend.device.driver.calls[start:] if c.operation == "copy"]


def test_what_somebody_else_has_is_copied_first(backend):
    f = donating(step)
    x = state(backend)
    held = x.data
    result = f(x)
    assert copies(backend) == [(result.data.pointer, held.pointer, MIB)]
    assert f.stats()["bytes_copied"] == MIB
    assert x.memory is None
    f(result)
    assert len(copies(backend)) == 1


EXPORTS = {
    "DLPack": lambda x: x.__dlpack__(stream=-1) and None,
    "__cuda_array_interface__": lambda x: x.__cuda_array_interface__ and None,
}


@pytest.mark.parametrize("export", EXPORTS)
def test_what_another_library_was_told_of_is_kept_as_long_as_the_array_lives(backend, export):
    f = donating(step)
    x = state(backend)
    address = x.data.pointer
    EXPORTS[export](x)  # and the library lets go of it, but its work on it may be pending
    result = f(x)
    assert copies(backend) == [(result.data.pointer, address, MIB)]
    assert state(backend).data.pointer != address
    with pytest.raises(DonatedArrayError):
        np.asarray(x)
    del x
    assert state(backend).data.pointer == address


def test_dlpack_holds_memory_as_long_as_the_consumer_does(backend):
    f = donating(step)
    x = state(backend)
    address = x.data.pointer
    capsule = x.__dlpack__(stream=-1)
    f(x)
    del x
    assert state(backend).data.pointer != address
    del capsule
    assert state(backend).data.pointer == address


def test_host_arrays_are_copied_straight_to_the_result(backend):
    f = donating(step)
    for argument in (np.ones(MIB // 8), 3.0):
        start = len(backend.device.driver.calls)
        result = f(argument)
        writes = [c for c in backend.device.driver.calls[start:] if c.operation == "copy_to_device"]
        assert [call.detail[0] for call in writes] == [result.data.pointer]
        assert copies(backend) == []


def test_arrays_of_other_libraries_are_not_written_to(backend):
    f = donating(step)
    result = f(Foreign(1 << 50, shape=STATE.shape))
    assert copies(backend) == [(result.data.pointer, 1 << 50, MIB)]


# ---- streams ----


def test_a_state_of_another_stream_moves_there_once(backend):
    f = donating(step)
    x = state(backend)
    with tracegraph.stream(8):
        x = f(x)
        assert len(copies(backend)) == 1
        address = x.data.pointer
        for _ in range(5):
            x = f(x)
            assert x.data.pointer == address
    assert len(copies(backend)) == 1


def test_what_another_stream_still_reads_is_copied(backend):
    driver = backend.device.driver
    f, g = donating(step), tracegraph.jit(lambda x: x.sum(), device="cuda:0")
    x, y = state(backend), state(backend)
    with tracegraph.stream(8):
        g(x)
        driver.streams[-1].busy = True
        g(y)
    f(y)
    assert len(copies(backend)) == 1
    driver.streams[-1].busy = False
    f(x)
    assert len(copies(backend)) == 1


def test_another_stream_waits_for_the_elements_that_are_there_now(backend):
    driver = backend.device.driver
    f, g = donating(step), tracegraph.jit(lambda x: x.sum(), device="cuda:0")
    x = state(backend)
    driver.busy = True
    with tracegraph.stream(8):
        g(x)
    x = f(x)
    start = len(driver.calls)
    with tracegraph.stream(8):
        g(x)
    (wait,) = (call for call in driver.calls[start:] if call.operation == "wait")
    assert wait.detail[0] >= start


# ---- failures ----


def test_a_call_that_fails_before_its_launch_leaves_its_arguments(monkeypatch):
    def run(driver):
        backend = use(monkeypatch, RecordingBackend(driver))
        f = donating(lambda x, y: (x * 2 + 1, y.sum()), (0, 1))
        compiled = f.lower(STATE, STATE).compile()
        x, y = state(backend), state(backend)
        held = x.data  # so that there is a copy to fail
        return compiled, x, y, held, len(driver.calls)

    compiled, x, y, held, built = run(reference := RecordingDriver())
    compiled(x, y)
    for number in range(built + 1, len(reference.calls) + 1):
        compiled, x, y, held, _ = run(driver := RecordingDriver(fail_at=number))
        memory = held.pointer, y.data.pointer
        with pytest.raises((InjectedError, UpdateError)):
            compiled(x, y)
        assert (x.data.pointer, y.data.pointer) == memory
        compiled(x, y)
        assert driver.calls[-1].operation == "launch"
        assert x.memory is y.memory is None


def test_a_launch_that_fails_leaves_its_arguments(backend):
    driver = backend.device.driver
    for function in (step, settle):
        f = donating(function)
        x = f(state(backend))
        address = x.data.pointer
        driver.fail_at = len(driver.calls) + 1
        with pytest.raises(InjectedError, match=": launch"):
            f(x)
        assert x.data.pointer == address
        assert f(x).data.pointer == address


def test_a_call_that_waits_for_room_when_its_time_is_up_leaves_its_arguments(backend):
    driver = backend.device.driver
    endless, f = tracegraph.jit(settle, device="cuda:0"), donating(step)
    x, y = f(state(backend)), state(backend)
    address = x.data.pointer
    driver.busy = True
    endless(y)
    for _ in range(MOST_QUEUED):
        y = f(y)
    launches = driver.count("launch")
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        f(x)
    assert driver.count("launch") == launches
    assert x.data.pointer == address
    assert f(x).data.pointer == address


def test_what_fails_after_the_launch_has_spent_its_arguments(backend):
    driver = backend.device.driver
    f = donating(settle)
    x = f(state(backend))
    start = len(driver.calls)
    x = f(x)
    behind = since(driver, start).index("launch") + 2
    driver.fail_at = len(driver.calls) + behind
    with pytest.raises(InjectedError):
        f(x)
    assert driver.calls[-2].operation == "launch"
    with pytest.raises(DonatedArrayError):
        np.asarray(x)


def test_a_stopped_program_has_spent_its_arguments(backend):
    f = donating(settle)
    x = state(backend)
    backend.device.driver.busy = True
    y = f(x)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        y.synchronize()
    with pytest.raises(DonatedArrayError):
        x.synchronize()
    with pytest.raises(StoppedError):
        f(y)
    with pytest.raises(StoppedError):
        y.synchronize()
    f(state(backend)).synchronize()


def test_programs_that_the_host_drives_overwrite_arguments_too(monkeypatch):
    backend = use(monkeypatch, RecordingBackend(lacks=["conditional_nodes"]))
    f = donating(settle)
    x = state(backend)
    address = x.data.pointer
    with choices.override(loops="conditional"):
        x = f(x)
    assert x.data.pointer == address
    driver = backend.device.driver
    driver.fail_at = len(driver.calls) + 1
    with pytest.raises(InjectedError, match=": launch"):
        f(x)
    with pytest.raises(DonatedArrayError):
        np.asarray(x)
