"""Device memory: one arena for all executables, eviction, running out, and starting over."""

import gc
import weakref

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.cuda.libraries.cublas import WORKSPACE_BYTES
from lowering.cuda.memory.heap import Heap
from lowering.cuda.memory.pool import KEPT_SHARE, DevicePool, size_class
from lowering.cuda.streams.timeline import Timeline
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import (
    VECTOR,
    arguments_of,
    diamond,
    nested_loops,
    products,
    small_input,
)
from tracegraph import memory
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.errors import ClosedError, OutOfMemoryError, TimeLimitError
from tracegraph.staging import executable_cache, memory_budget

MIB = 1 << 20
STOP_FLAG_BYTES = 4


@pytest.fixture
def device(monkeypatch):
    """A recorded GPU of 64 MiB, on which functions for "cuda:0" run."""
    backend = RecordingBackend(ForgetfulDriver(memory=64 * MIB))
    monkeypatch.setattr(lowering, "backend", lambda _: backend)
    monkeypatch.setattr(executable_cache, "_cached", ConcurrentWeakSet())
    return backend.device


@pytest.fixture
def set_budget():
    yield memory.set_budget
    memory.set_budget(None)


def holding(nbytes, name="f"):
    """A jitted function of a vector whose executable holds a constant of a size in bytes."""
    data = np.ones(nbytes // 8)

    def f(x):
        return (data * x[0]).sum() + x

    f.__name__ = f.__qualname__ = name
    return tracegraph.jit(f, device="cuda:0")


def array(device, nbytes=800):
    return tracegraph.Array(device.pool.buffer(tracegraph.ArrayType("float64", (nbytes // 8,))))


# ---- arena ----


def test_executables_share_one_arena():
    backend = RecordingBackend()
    first, second = backend.compile(diamond()), backend.compile(diamond())
    assert backend.device.memory_stats()["arenas"] == size_class(diamond().arena_bytes)
    assert first.pieces().keys() & second.pieces().keys()
    kernels = [graph.nodes[0].values for graph in backend.device.driver.graphs]
    assert kernels[0] == kernels[1]  # both write their first scratch buffer at one address


def test_a_larger_need_gets_a_new_arena_and_the_old_one_lives_as_long_as_its_users():
    backend = RecordingBackend()
    driver, stats = backend.device.driver, backend.device.memory_stats
    small = backend.compile(diamond())
    before = stats()["arenas"]
    large = backend.compile(products())
    assert stats()["arenas"] == before + size_class(products().arena_bytes + WORKSPACE_BYTES)
    late = backend.compile(diamond())
    assert late.pieces().keys() & large.pieces().keys()
    assert not late.pieces().keys() & small.pieces().keys()
    small(arguments_of(small))
    small.close()
    driver.graphs.clear()
    del small
    gc.collect()
    assert stats()["arenas"] == size_class(products().arena_bytes + WORKSPACE_BYTES)
    late.close()
    large.close()
    del late, large
    gc.collect()
    assert stats()["arenas"] == 0


def test_launches_that_the_host_drives_have_scratch_of_their_own():
    backend = RecordingBackend(lacks=["conditional_nodes"])
    first, second = backend.compile(nested_loops()), backend.compile(nested_loops())
    assert not first.pieces().keys() & second.pieces().keys()


def test_what_must_keep_its_value_is_never_shared():
    def total(x):
        return x.sum()

    large = tracegraph.ArrayType("float64", (1 << 20,))
    plan = tracegraph.jit(total).lower(large).plan
    backend = RecordingBackend()
    driver = backend.device.driver
    one, other = backend.compile(plan), backend.compile(plan)
    cleared = [call.detail for call in driver.calls if call.operation == "clear"]
    assert len(cleared) == len(set(cleared)) == 2
    assert backend.device.memory_stats()["constants"] > 0
    assert one.pieces() != other.pieces()


# ---- pool ----


def test_no_more_than_a_share_of_the_device_is_kept():
    pool = DevicePool(Heap(Timeline(RecordingDriver(memory=64 * MIB))))
    temporaries = [pool.take(MIB) for _ in range(40)]
    del temporaries
    assert pool.free_bytes == 64 * MIB * KEPT_SHARE
    others = [pool.take(2 * MIB) for _ in range(6)]
    del others
    assert pool.free_bytes > 64 * MIB * KEPT_SHARE
    pool.take(4 * MIB)
    assert pool.free_bytes == 4 * MIB


def test_a_donated_array_is_the_memory_of_the_next_result(device):
    f = tracegraph.jit(lambda x: x[::-1] * 2, donate_argnums=0, device="cuda:0")
    x = array(device)
    addresses = set()
    for _ in range(6):
        x = f(x)
        addresses.add(x.data.pointer)
    assert len(addresses) == 2
    assert device.memory_stats()["arrays"] + device.memory_stats()["cached"] == 2 * size_class(800)


def test_an_object_that_its_own_function_refers_to_is_collected(device):
    class Model:
        def __init__(self):
            self.table = np.arange(100.0)
            self.run = tracegraph.jit(lambda x: x + self.table, device="cuda")

    model = Model()
    model.run(array(device))
    found = weakref.ref(model)
    assert len(device.driver.live_executables) == 1
    device.driver.graphs.clear()
    del model
    gc.collect()
    assert found() is None
    assert len(device.driver.live_executables) == 0


# ---- figures ----


def test_what_is_held_is_told_by_purpose(device):
    f = holding(MIB)
    before = device.memory_stats()
    assert (before["arrays"], before["constants"], before["graphs"]) == (0, 0, 0)
    y = f(array(device))
    stats = tracegraph.memory_stats("cuda")
    assert stats["arrays"] == stats["cached"] == size_class(800)
    assert stats["constants"] >= MIB
    assert stats["graphs"] == 1
    held = sum(stats[name] for name in ("arrays", "cached", "arenas", "constants"))
    assert stats["high_water"] == held
    assert stats["total"] - stats["free"] == held
    compiled = next(iter(f._builds.executables.values())).compiled
    assert stats["graph_bytes"] == compiled.memory["graph"] > 0
    assert stats["constants"] == compiled.memory["constants"]
    assert f.stats()["bytes_held"] == compiled.memory["scratch"] + compiled.memory["constants"]
    del y
    assert device.memory_stats()["arrays"] == 0
    assert device.memory_stats()["high_water"] == held


@pytest.mark.parametrize("scratch", ["kept", "per_launch"])
def test_the_workspace_of_a_library_is_scratch(device, scratch):
    device.driver.memory = 1 << 30
    f = tracegraph.jit(lambda x: (x @ x) @ x, device="cuda", scratch=scratch)
    lowered = f.lower(tracegraph.ArrayType(np.float32, (64, 64)))
    compiled = lowered.compile()
    needed = compiled.memory
    assert needed["scratch"] == lowered.memory["scratch"] + WORKSPACE_BYTES
    stats, kept = device.memory_stats(), scratch == "kept"
    assert stats["arenas"] == (size_class(needed["scratch"]) if kept else 0)
    assert stats["constants"] == needed["constants"]
    assert compiled.bytes_held == needed["constants"] + (needed["scratch"] if kept else 0)
    compiled.close()
    assert compiled.bytes_held == 0


# ---- budget ----


def test_the_least_recently_used_executable_is_evicted_and_built_again(device, set_budget):
    set_budget(3 * MIB - MIB // 2)
    a, b, c = (holding(MIB, name) for name in "abc")
    x = array(device)
    a(x), b(x), a(x), c(x)
    assert [f.stats()["evictions"] for f in (a, b, c)] == [0, 1, 0]
    b(x)
    assert [f.stats()["evictions"] for f in (a, b, c)] == [1, 1, 0]
    assert b.stats()["builds"] == 2
    assert b.stats()["traces"] == 1
    assert b.stats()["launches"] == 2
    assert device.memory_stats()["constants"] < 3 * MIB


def test_the_budget_is_that_of_the_environment_until_one_is_set(monkeypatch):
    monkeypatch.setattr(memory_budget, "_chosen", False)
    monkeypatch.setenv("TRACEGRAPH_MEMORY_BUDGET", "4096")
    assert memory.get_budget() == 4096
    monkeypatch.setenv("TRACEGRAPH_MEMORY_BUDGET", "4k")
    with pytest.raises(ValueError, match=r"'4k'.*number of bytes"):
        memory.get_budget()


@pytest.mark.parametrize(
    ("wrong", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_a_budget_is_a_number_of_bytes(wrong, error):
    with pytest.raises(error, match="set_budget takes"):
        memory.set_budget(wrong)


def test_an_executable_that_is_larger_than_the_budget_stays_until_the_next(device, set_budget):
    set_budget(0)
    a, b = holding(MIB, "a"), holding(MIB, "b")
    for f in (a, a, b, b, a):
        f(array(device))
    assert a.stats()["builds"] == 2
    assert b.stats()["builds"] == 1
    assert device.memory_stats()["graphs"] == 1


def test_a_lower_budget_holds_at_once(device, set_budget):
    a = holding(MIB)
    a(array(device))
    set_budget(MIB // 2)
    assert a.stats()["evictions"] == 1
    assert a.stats()["bytes_held"] == 0
    assert device.memory_stats()["constants"] == 0


def test_an_executable_in_use_is_not_evicted(device, set_budget):
    a = holding(MIB)
    a(array(device))
    (cached,) = executable_cache.least_recent_first()
    executable = cached.compiled.executable
    with executable._default_graph.lock:
        set_budget(0)
        assert a.stats()["evictions"] == 0
    set_budget(0)
    assert a.stats()["evictions"] == 1


def test_a_call_that_finds_its_executable_evicted_builds_again(device, monkeypatch):
    f = holding(MIB)
    x = array(device)
    f(x)
    (cached,) = executable_cache.least_recent_first()
    executable = cached.compiled.executable
    launch, evicted = executable.launch, []

    def evicted_just_before(*arguments):
        if not evicted:
            evicted.append(cached.evict())
        return launch(*arguments)

    monkeypatch.setattr(executable, "launch", evicted_just_before)
    f(x)
    assert evicted == [True]
    assert f.stats()["builds"] == 2
    assert f.stats()["launches"] == 2


def test_the_error_of_another_closed_executable_is_not_swallowed(device, monkeypatch):
    f = holding(MIB)
    f(array(device))
    (cached,) = executable_cache.least_recent_first()

    def calls_another(*arguments):
        raise ClosedError("another")

    monkeypatch.setattr(cached.compiled.executable, "launch", calls_another)
    with pytest.raises(ClosedError, match="'another' was closed"):
        f(array(device))
    assert f.stats()["builds"] == 1


# ---- out of memory ----


def test_free_memory_is_given_back_before_anything_is_evicted(device):
    f = holding(8 * MIB)
    f(array(device))
    kept = [array(device, 8 * MIB) for _ in range(2)]
    del kept
    assert device.pool.free_bytes >= 16 * MIB
    large = array(device, 48 * MIB)
    assert f.stats()["evictions"] == 0
    assert device.memory_stats()["cached"] == 0
    del large


def deferred(device, nbytes, double):
    """The driver of a stream on which a function still reads an array, which was dropped."""
    x = array(device, nbytes)
    with tracegraph.stream(7):
        double(x)
        reading = device.driver.streams[-1]
        reading.busy = True
        double(x)
    return reading


def test_what_was_lent_to_another_stream_is_waited_for_when_memory_is_short(device):
    double = tracegraph.jit(lambda x: x * 2, device="cuda:0")
    deferred(device, 8 * MIB, double)
    assert device.memory_stats()["arrays"] >= 8 * MIB
    array(device, 60 * MIB)
    assert double.stats()["evictions"] == 0


def test_what_another_stream_has_read_is_not_counted_among_arrays(device):
    double = tracegraph.jit(lambda x: x * 2, device="cuda:0")
    deferred(device, 8 * MIB, double).synchronize()
    stats = device.memory_stats()
    assert stats["arrays"] == 0
    assert stats["cached"] >= 8 * MIB


def test_idle_executables_are_evicted_when_memory_is_short(device):
    a, b = holding(16 * MIB, "a"), holding(16 * MIB, "b")
    x = array(device)
    a(x), b(x)
    large = array(device, 40 * MIB)
    assert [f.stats()["evictions"] for f in (a, b)] == [1, 0]
    del large
    a(x)
    assert a.stats()["builds"] == 2


@pytest.mark.parametrize("call", ["instantiate", "allocate_host", "kernel"])
def test_what_the_driver_itself_lacks_memory_for_is_made_after_others_are_closed(
    device, call, monkeypatch
):
    first, second = holding(MIB, "first"), checked("second")
    x = array(device)
    first(x)
    original = getattr(RecordingDriver, call)

    def scarce(driver, *args, **options):
        if not first.stats()["evictions"]:
            raise MemoryError(f"no memory for {call}")
        return original(driver, *args, **options)

    monkeypatch.setattr(RecordingDriver, call, scarce)
    second(x)
    assert first.stats()["evictions"] == 1
    assert second.stats()["builds"] == 1


def test_a_graph_that_nothing_makes_room_for_is_named_and_the_next_call_works(device, monkeypatch):
    f = checked("solve")
    x = array(device)
    with monkeypatch.context() as patch:
        patch.setattr(RecordingDriver, "instantiate", lambda *args, **options: raise_memory_error())
        with pytest.raises(OutOfMemoryError, match=r"the graph of solve \(full\)") as caught:
            f(x)
    assert caught.value.function.startswith("solve")
    f(x)


def raise_memory_error():
    raise MemoryError("full")


def checked(name):
    """A jitted function whose executable has a mailbox in pinned memory."""

    def f(x):
        return tracegraph.while_loop(lambda x: x[0] < 5, lambda x: x + 1, x, max_steps=9)

    f.__name__ = f.__qualname__ = name
    return tracegraph.jit(f, device="cuda:0")


def test_running_out_names_who_asked_and_who_holds(device):
    compiled = holding(40 * MIB, "hoarder").lower(np.ones(100)).compile()
    f = holding(32 * MIB, "latecomer")
    with pytest.raises(OutOfMemoryError) as caught:
        f(array(device))
    message = str(caught.value)
    assert "cuda:0" in message
    assert "bytes that for latecomer" not in message
    assert "latecomer (" in message
    assert f"hoarder {sum(compiled.executable.pieces().values()):,}" in message
    assert f"of {64 * MIB:,} are free" in message
    assert caught.value.nbytes >= 32 * MIB
    assert isinstance(caught.value, MemoryError)
    del caught
    compiled.close()
    device.driver.graphs.clear()
    del compiled
    f(array(device))
    assert f.stats()["launches"] == 1


def test_more_than_the_device_has_evicts_nothing(device):
    f = holding(MIB)
    f(array(device))
    with pytest.raises(OutOfMemoryError, match=r"has not enough memory for 83,886,080 bytes: "):
        array(device, 65 * MIB)
    assert f.stats()["evictions"] == 0


@pytest.mark.parametrize("make", [diamond, small_input, products], ids=lambda make: make.__name__)
def test_running_out_at_any_allocation_leaves_all_usable(make):
    def run(executable):
        arguments = arguments_of(executable)
        return executable(arguments)

    def attempt(backend):
        results = run(backend.compile(make()))
        return [result.pointer for result in results]

    reference = RecordingBackend()
    attempt(reference)
    allocations = reference.device.driver.count("allocate")
    for number in range(1, allocations + 1):
        backend = RecordingBackend(driver := ScarceDriver(number))
        with pytest.raises(MemoryError):
            attempt(backend)
        driver.graphs.clear()
        gc.collect()
        backend.device.heap.trim()
        assert driver.memory - driver.memory_info()[0] <= STOP_FLAG_BYTES
        driver.scarce_from = None
        assert attempt(backend)


class ForgetfulDriver(RecordingDriver):
    """A driver that, as a real one, keeps nothing of graphs that are closed or given up.

    What is busy is so until it is waited for.
    """

    def synchronize(self):
        super().synchronize()
        self.busy = False

    def allocate(self, nbytes):
        self.graphs.clear()
        return super().allocate(nbytes)

    def close(self, executable):
        super().close(executable)
        self.graphs.clear()


class ScarceDriver(RecordingDriver):
    """A driver whose memory is full from its n-th allocation on."""

    def __init__(self, number):
        super().__init__()
        self.scarce_from = number

    def allocate(self, nbytes):
        if self.scarce_from is not None and self.count("allocate") + 1 >= self.scarce_from:
            raise MemoryError
        return super().allocate(nbytes)


# ---- reset ----


def test_reset_gives_all_back_and_functions_work_again(device, monkeypatch):
    monkeypatch.setattr(lowering, "reset", device.reset)
    f = holding(MIB)
    x = array(device)
    y = f(x)
    compiled = f.lower(x).compile()
    tracegraph.reset()
    device.driver.graphs.clear()
    gc.collect()
    stats = device.memory_stats()
    assert stats["graphs"] == stats["cached"] == stats["constants"] == stats["arenas"] == 0
    assert stats["arrays"] == 2 * size_class(VECTOR.nbytes // 10)
    assert np.asarray(y).shape == (100,)
    with pytest.raises(ClosedError):
        compiled(x)
    f(x)
    counts = f.stats()
    assert (counts["traces"], counts["builds"], counts["launches"]) == (3, 2, 2)


def test_a_reset_whose_time_is_up_forgets_all_functions_nevertheless(device, monkeypatch):
    monkeypatch.setattr(lowering, "reset", device.reset)
    one, other = (tracegraph.jit(lambda x: x * 2, device="cuda:0") for _ in range(2))
    loop = tracegraph.jit(
        lambda x: tracegraph.while_loop(lambda x: x[0] > 0, lambda x: x - 1, x), device="cuda:0"
    )
    x = array(device)
    one(x), other(x), one(1.0)
    device.driver.busy = True
    loop(x)
    with tracegraph.time_limit(0.01), pytest.raises(TimeLimitError):
        tracegraph.reset()
    one(x), other(x), loop(x)
    assert [f.stats()["launches"] for f in (one, other, loop)] == [3, 2, 2]
    assert [f.stats()["traces"] for f in (one, other, loop)] == [3, 2, 2]
