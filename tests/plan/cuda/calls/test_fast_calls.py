"""Calls by a function made for the graph are those of the general way, and nothing else."""

import gc
import random
import sys
import threading
import weakref
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import tracegraph
from lowering.cuda.calls import fast_call
from lowering.cuda.calls.address_updates import AddressWords
from lowering.cuda.calls.stream_graph import StreamGraph
from lowering.plan.nests.buffer import Buffer
from lowering.testing.recorded_objects import RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import (
    SCALAR,
    VECTOR,
    diamond,
    effects,
    fan,
    nested_loops,
    products,
    small_input,
)
from tracegraph.current_stream import current_stream
from tracegraph.errors import ClosedError


def diamond_per_launch():
    """Scratch that each launch allocates, for which there has to be room."""
    return replace(diamond(), per_launch=True)


PLANS = (diamond, diamond_per_launch, small_input, fan, nested_loops, products, effects)


class Caller:
    """Calls with arguments that a random number generator chooses, and what became of them."""

    def __init__(self, made, seed):
        self.choose = random.Random(seed)
        self.driver = RecordingDriver()
        self.backend = RecordingBackend(self.driver)
        self.executable = self.backend.compile(made)
        types = self.executable.plan.in_types
        self.arrays = [[self.buffer(t) for _ in range(2)] for t in types]
        self.kept = []

    def buffer(self, type_):
        return self.backend.device.pool.buffer(type_)

    def argument(self, number, type_):
        kinds = ["here"] * 4 + ["host", "other stream"] + ["number"] * 3 * (not type_.shape)
        match self.choose.choice(kinds):
            case "number":
                return self.choose.choice([0, 1, True, 7, -1, 2**40, np.int64(7), np.int64(0)])
            case "host":
                return np.full(type_.shape, self.choose.randrange(3), type_.dtype)
            case "other stream":
                with tracegraph.stream(8):
                    stream = self.backend.device.streams.of(current_stream())
                return stream.pool.buffer(type_)
        return self.choose.choice(self.arrays[number])

    def call(self):
        types = self.executable.plan.in_types
        arguments = [self.argument(i, t) for i, t in enumerate(types)]
        stream = self.choose.choice([None, None, 9])
        with tracegraph.stream(stream) if stream else nullcontext():
            results = self.executable(arguments)
        self.kept = self.kept[-3:] + self.choose.choice([[], [results]])
        return [(r.type, r.pointer) for r in results]


def run(made, seed):
    caller = Caller(made, seed)
    results = [caller.call() for _ in range(200)]
    return results, caller.driver.calls, caller.executable.stats()


@pytest.mark.parametrize("make", PLANS, ids=lambda make: make.__name__)
def test_the_driver_gets_the_same_calls_as_from_general_calls(make, monkeypatch):
    fast = [run(make(), seed) for seed in range(3)]
    monkeypatch.setattr(fast_call, "MOST_ARRAYS", -1)
    assert [run(make(), seed) for seed in range(3)] == fast


def general_calls(monkeypatch):
    """The calls that go the general way from now on."""
    seen, start = [], StreamGraph._run
    monkeypatch.setattr(
        StreamGraph, "_run", lambda self, *given: (seen.append(given), start(self, *given))[1]
    )
    return seen


def test_arrays_and_numbers_go_the_fast_way_and_all_else_the_general_one(monkeypatch):
    backend = RecordingBackend()
    executable = backend.compile(small_input())
    seen = general_calls(monkeypatch)
    x, s = backend.device.pool.buffer(VECTOR), backend.device.pool.buffer(SCALAR)
    executable([s, x])
    assert len(seen) == 1  # the first call, whatever its arguments
    seen.clear()
    start = len(backend.device.driver.calls)
    executable([s, x]), executable([3, x]), executable([True, x])
    assert not seen
    operations = [call.operation for call in backend.device.driver.calls[start:]]
    assert set(operations) == {"allocate", "update_kernel", "launch"}
    executable([np.int64(3), x]), executable([3, np.ones(1000)])
    with tracegraph.stream(1):
        executable([3, x])
    assert len(seen) == 3


def test_each_stream_has_a_fast_call(monkeypatch):
    backend = RecordingBackend()
    driver, executable = backend.device.driver, backend.compile(diamond())
    with tracegraph.stream(8):
        (x,) = executable([np.ones(1000)])
        seen = general_calls(monkeypatch)
        start = len(driver.calls)
        for _ in range(3):
            x = executable([x])[0]
        assert not seen
        operations = [call.operation for call in driver.calls[start:]]
        assert operations.count("launch") == operations.count("record") == 3
        assert "wait" not in operations
    executable([x])
    assert len(seen) == 1
    assert driver.calls[-1].operation == "record"  # behind its use of a buffer of another stream


def test_what_has_no_fast_call(monkeypatch):
    """Programs with loops, which the host drives, or that report something."""
    for make, lacks in ((nested_loops, ()), (diamond, ("conditional_nodes",)), (effects, ())):
        backend = RecordingBackend(lacks=lacks)
        executable = backend.compile(make())
        seen = general_calls(monkeypatch)
        executable([np.zeros(t.shape, t.dtype) for t in executable.plan.in_types])
        assert len(seen) == 1


def test_behind_a_loop_that_runs_calls_are_general(monkeypatch):
    backend = RecordingBackend()
    loop, executable = backend.compile(nested_loops()), backend.compile(diamond())
    x = backend.device.pool.buffer(VECTOR)
    executable([x])
    seen = general_calls(monkeypatch)
    executable([x])
    backend.device.driver.busy = True
    loop([])
    executable([x])
    assert [len(arguments) for arguments, _ in seen] == [0, 1]


def test_few_texts_are_compiled():
    backend = RecordingBackend()
    fast_call._factory.cache_clear()
    for _ in range(3):
        for make in (diamond, small_input, fan):
            executable = backend.compile(make())
            arguments = [np.zeros(t.shape, t.dtype) for t in executable.plan.in_types]
            before = fast_call._factory.cache_info()
            executable(arguments)
            assert fast_call._factory.cache_info() == before  # many programs run once
            executable(arguments)
    assert fast_call._factory.cache_info().misses == 3


def test_a_number_that_is_passed_again_is_not_written_again():
    backend = RecordingBackend()
    executable = backend.compile(small_input())
    driver, x = backend.device.driver, backend.device.pool.buffer(VECTOR)
    load = driver.graphs[0].nodes[0]
    executable([4, x])
    for value, written in ((5, 1), (5, 0), (6, 1), (np.int64(5), 1), (6, 1), (6, 0), (5, 1)):
        start = len(driver.calls)
        executable([value, x])
        assert load.values[1] == value
        updates = [c.detail[0] for c in driver.calls[start:] if c.operation == "update_kernel"]
        assert updates == [load.name] * written


@pytest.mark.parametrize("make", [diamond, nested_loops], ids=lambda make: make.__name__)
def test_an_executable_that_is_dropped_is_gone_at_once(make):
    backend = RecordingBackend()
    executable = backend.compile(make())
    results = executable([np.zeros(t.shape, t.dtype) for t in executable.plan.in_types])
    results[0].synchronize()
    gone = weakref.ref(executable)
    gc.disable()
    try:
        del executable
        assert gone() is None
    finally:
        gc.enable()


def test_a_closed_executable_has_no_fast_call():
    backend = RecordingBackend()
    executable = backend.compile(diamond())
    x, launch = backend.device.pool.buffer(VECTOR), executable.launch
    launch([x])
    executable.close()
    for call in (executable, executable.launch, launch):
        with pytest.raises(ClosedError, match="'diamond' was closed"):
            call([x])


def test_threads_launch_with_their_own_arrays():
    driver = CheckingDriver()
    backend = RecordingBackend(driver)
    executable = backend.compile(fan())
    failures = []

    def work(number):
        try:
            arrays = [backend.device.pool.buffer(t) for t in executable.plan.in_types]
            for call in range(500):
                given = [call, *arrays[1:]] if call % 3 else arrays
                wanted = tuple(a.pointer for a in arrays[2:])
                driver.wanted.value = wanted
                executable(given)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert executable.stats()["launches"] == driver.checked == 4000


class CheckingDriver(RecordingDriver):
    """At each launch, the vectors in the graph must be those of the calling thread."""

    def __init__(self):
        super().__init__()
        self.wanted = threading.local()
        self.checked = 0

    def _launch(self, executable):
        super()._launch(executable)
        for number, pointer in zip((2, 3), self.wanted.value, strict=True):
            node = self.graphs[0].nodes[1 + number]  # behind the load kernel
            assert pointer in executable.values[node]
            self.checked += number == 2


def take_shared(updated, kernel):
    kernel.read_shared()
    updated.append(kernel)


def test_updates_write_what_moved_wherever_it_is():
    choose = random.Random(0)
    for _ in range(50):
        buffers = [Buffer("input", i, VECTOR) for i in range(choose.randrange(1, 8))]
        kernels = [RecordedNode("kernel", str(k), ()) for k in range(choose.randrange(1, 5))]
        users = {buffer: [] for buffer in buffers}
        places = {}
        for kernel in kernels:
            kernel.values = [-7] * 10
            for position in choose.sample(range(10), choose.randrange(5)):
                number = choose.randrange(len(buffers))
                kernel.values[position] = 0
                users[buffers[number]].append((kernel, position))
                places[kernel, position] = number
        before = [0] * len(buffers)
        updated = []
        updater = partial(partial, partial(take_shared, updated))
        words = AddressWords(buffers, users, before, None).updates(updater)
        for _ in range(5):
            addresses = [choose.choice([a, choose.randrange(9)]) for a in before]
            if addresses == before:
                continue
            updates = words.write(before, addresses)
            for update in updates:
                update()
                assert words.kernel(update) is updated[-1]
            moved = {number for number, a in enumerate(addresses) if a != before[number]}
            assert len(updated) == len(updates) == len(set(updated))
            assert set(updated) == {k for (k, _), n in places.items() if n in moved}
            for kernel in kernels:
                for position, value in enumerate(kernel.values):
                    number = places.get((kernel, position))
                    assert value == (-7 if number is None else addresses[number])
                assert len(kernel.values) == 10
            before = addresses
            updated.clear()
