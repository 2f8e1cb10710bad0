"""Launches of exported graphs are ordered with calls, with reads and with one another."""

import gc
import random
import weakref
from contextlib import suppress

import numpy as np
import pytest

import tracegraph
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.streams.exclusive_use import ExclusiveUse
from lowering.cuda.streams.launch_end import LaunchEnd
from lowering.plan.nests.buffer import Buffer
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Owner
from tests.fakes.stream_order import LAG, LateDriver, unordered
from tests.helpers.threads import in_threads
from tests.programs.hand_made_plans import (
    VECTOR,
    copy_kernel,
    copy_plan,
    diamond,
    in_place_plan,
    memory_for,
    nested_loops,
    plan,
)
from tracegraph import ArrayType
from tracegraph.errors import CapturingStreamError, ClosedError, StoppedError, TimeLimitError


def looping_plan():
    function = tracegraph.jit(
        lambda x: tracegraph.while_loop(
            lambda x: x[0] < 5, lambda x: x + 1, x, schedule="conditional"
        ),
        device="cuda",
    )
    return function.lower(VECTOR).plan


def exported(make, backend, arguments=None):
    made = make()
    executable = backend.compile(made)
    if isinstance(backend.device.driver, LateDriver):
        backend.device.driver.executables.append(executable)
    given = executable.export_graph(arguments or memory_for(made, backend))
    if isinstance(backend.device.driver, LateDriver):
        backend.device.driver.exported.append(given)
    return given, executable


def operations(driver, start=0):
    return [(call.operation, call.stream) for call in driver.calls[start:]]


# Loops


def exported_elsewhere(backend):
    other, _ = exported(nested_loops, backend)
    executable = other.instantiate()
    return lambda: executable.launch(77)


def called_elsewhere(backend):
    made = nested_loops()
    executable = backend.compile(made)
    backend.device.driver.executables.append(executable)
    arguments = memory_for(made, backend)

    def call():
        with tracegraph.stream(77):
            executable(arguments)

    call()
    return call


@pytest.mark.parametrize("elsewhere", [exported_elsewhere, called_elsewhere])
def test_graphs_with_while_nodes_run_one_at_a_time(elsewhere):
    backend = RecordingBackend(LateDriver())
    given, _ = exported(nested_loops, backend)
    first, second = given.instantiate(), elsewhere(backend)
    first.launch(8)
    start = len(backend.device.driver.calls)
    second()
    done = operations(backend.device.driver, start)
    assert ("wait", 77) in done
    assert done.index(("wait", 77)) < done.index(("launch", 77))


def test_a_call_with_loops_is_waited_for_by_an_exported_one():
    backend = RecordingBackend(LateDriver())
    given, executable = exported(nested_loops, backend)
    mine = given.instantiate()
    arguments = memory_for(executable.plan, backend)
    with tracegraph.stream(8):
        executable(arguments)
    start = len(backend.device.driver.calls)
    mine.launch(77)
    done = operations(backend.device.driver, start)
    assert done.index(("wait", 77)) < done.index(("launch", 77))


def test_graphs_without_loops_do_not_wait_for_each_other():
    backend = RecordingBackend(LateDriver())
    one, _ = exported(diamond, backend)
    other, _ = exported(diamond, backend)
    first, second = one.instantiate(), other.instantiate()
    for stream, executable in ((8, first), (9, second)):
        executable.launch(stream)
    start = len(backend.device.driver.calls)
    first.launch(8)
    second.launch(9)
    assert "wait" not in [operation for operation, _ in operations(backend.device.driver, start)]


# Results


@pytest.mark.parametrize("make", [diamond, nested_loops, copy_plan])
@pytest.mark.parametrize("stream", [None, 77])
def test_results_are_read_on_the_stream_that_writes_them(make, stream):
    backend = RecordingBackend()
    given, _ = exported(make, backend)
    given.instantiate().launch(stream)
    start = len(backend.device.driver.calls)
    given.results[0].to_host()
    assert ("copy_to_host", stream or 1) in operations(backend.device.driver, start)
    assert given.results[0].__cuda_array_interface__["stream"] == stream or 1


def test_another_stream_waits_for_results():
    backend = RecordingBackend(LateDriver())
    given, executable = exported(copy_plan, backend)
    given.instantiate().launch(77)
    for stream in (None, 9):
        start = len(backend.device.driver.calls)
        if stream is None:
            executable(given.results)
        else:
            with tracegraph.stream(stream):
                executable(given.results)
        done = operations(backend.device.driver, start)
        where = stream or 1
        assert done.index(("wait", where)) < done.index(("launch", where))
    given.results[0].hand_over(9)
    assert backend.device.driver.calls[-1].operation == "hand_over"


def test_the_next_launch_waits_for_what_reads_results():
    backend = RecordingBackend(LateDriver())
    given, executable = exported(copy_plan, backend)
    mine = given.instantiate()
    mine.launch(77)
    with tracegraph.stream(9):
        executable(given.results)
    start = len(backend.device.driver.calls)
    mine.launch(77)
    done = operations(backend.device.driver, start)
    assert done.index(("wait", 77)) < done.index(("launch", 77))


def test_a_chain_of_exported_graphs_is_ordered():
    backend = RecordingBackend(LateDriver())
    one, _ = exported(copy_plan, backend)
    other, _ = exported(copy_plan, backend, list(one.results))
    first, second = one.instantiate(), other.instantiate()
    for _ in range(3):
        first.launch(8)
        second.launch(9)
    assert unordered(backend.device.driver) is None
    assert backend.device.driver.count("launch") == 6


class Bench:
    """Calls and exported graphs on one device, some of them fed by results of others."""

    def __init__(self, choose):
        self.choose, self.driver = choose, LateDriver()
        self.backend = RecordingBackend(self.driver)
        made = [copy_plan(), diamond(), copy_plan()]
        self.calls = [self.backend.compile(each) for each in made]
        self.driver.executables += self.calls
        self.arrays = [self.backend.device.pool.buffer(VECTOR) for _ in range(3)]
        self.given = []
        for make in (copy_plan, diamond, in_place_plan, copy_plan, diamond):
            source = choose.choice([*self.arrays, *(r for g in self.given for r in g.results)])
            self.given.append(exported(make, self.backend, [source])[0])
        self.executables = [g.instantiate() for g in self.given for _ in range(2)]

    def act(self):
        choose = self.choose
        stream = choose.choice([None, 8, 9])
        what = choose.random()
        results = [r for given in self.given for r in given.results]
        if what < 0.5:
            choose.choice(self.executables).launch(stream)
        elif what < 0.85:
            argument = [choose.choice([*self.arrays, *results])]
            executable = choose.choice(self.calls)
            if stream is None:
                self.arrays += executable(argument)
            else:
                with tracegraph.stream(stream):
                    self.arrays += executable(argument)
        else:
            choose.choice([*self.arrays, *results]).to_host()
        while len(self.arrays) > 5:
            self.arrays.pop(choose.randrange(len(self.arrays)))


@pytest.mark.parametrize("seed", range(8))
def test_no_memory_is_used_in_no_order(seed):
    bench = Bench(random.Random(seed))
    for _ in range(400):
        bench.act()
    assert unordered(bench.driver) is None
    assert bench.driver.count("launch") > 300


def moved_at_once(buffer, pool):
    buffer._free, buffer.timeline = pool.list_of(8192), pool.timeline


@pytest.mark.parametrize(
    ("owner", "name", "nothing"),
    [
        (LateDriver, "wait", lambda self, other: None),
        (CudaBuffer, "used_at", lambda self, event: None),
        (CudaBuffer, "awaited_by", lambda self, timeline: None),
        (CudaBuffer, "rewritten_on", moved_at_once),
    ],
)
def test_each_precaution_is_needed(owner, name, nothing, monkeypatch):
    monkeypatch.setattr(owner, name, nothing)
    found = []
    for seed in range(8):
        bench = Bench(random.Random(seed))
        for _ in range(200):
            bench.act()
        found.append(unordered(bench.driver))
    assert any(found)


def scratch_alone():
    """One kernel that writes to scratch, and no result."""
    x, y = Buffer("input", 0, VECTOR), Buffer("scratch", 0, VECTOR)
    return plan([copy_kernel(y, x)], set(), [x], [], scratch=[y], name="scratch_alone")


@pytest.mark.parametrize("ordered", [True, False])
def test_executables_of_one_graph_share_its_scratch(ordered, monkeypatch):
    if not ordered:
        monkeypatch.setattr(ExclusiveUse, "enter", lambda self, timeline: None)
    backend = RecordingBackend(LateDriver())
    given, _ = exported(scratch_alone, backend)
    first, second = given.instantiate(), given.instantiate()
    for stream in (8, 9, None, 9):
        first.launch(stream)
        second.launch(stream)
    assert (unordered(backend.device.driver) is None) == ordered


def test_threads_launch_on_streams_of_their_own():
    backend = RecordingBackend(LateDriver())
    given, executable = exported(diamond, backend)
    mine = [given.instantiate() for _ in range(3)]

    def work(number):
        for call in range(200):
            mine[(number + call) % 3].launch([None, 8, 9][number % 3])

    in_threads(6, work)
    assert backend.device.driver.count("launch") == 1200
    assert unordered(backend.device.driver) is None
    assert not executable.closed


def test_results_that_are_dropped_return_to_the_pool_of_their_stream():
    backend = RecordingBackend()
    given, _ = exported(copy_plan, backend)
    mine, (result,) = given.instantiate(), given.results
    mine.launch(77)
    pointer, dead = result.pointer, weakref.ref(result)
    state = next(s for s in backend.device.streams if s.driver.stream == 77)
    del result, given, mine
    backend.device.driver.graphs.clear()
    state.timeline.release_held()
    gc.collect()
    assert dead() is None
    assert [piece.pointer for free in state.pool.lists.values() for piece in free] == [pointer]
    assert all(p.pointer != pointer for free in backend.device.pool.lists.values() for p in free)


def test_a_launch_that_another_thread_is_about_to_make_keeps_its_event():
    backend = RecordingBackend(LateDriver())
    given, _ = exported(copy_plan, backend)
    mine = given.instantiate()
    mine.launch(77)
    state = next(s for s in backend.device.streams if s.driver.stream == 77)
    mark = LaunchEnd(state.driver.record)
    given.results[0].used_at(mark)  # as a call does that is interrupted by another thread here
    mine.launch(77)
    position = len(backend.device.driver.calls)
    mark.made = True
    assert mark.end().position >= position


def test_a_stream_is_not_idle_while_a_launch_is_in_flight():
    backend = RecordingBackend(LateDriver())
    given, _ = exported(copy_plan, backend)
    mine = given.instantiate()
    mine.launch(77)
    state = next(s for s in backend.device.streams if s.driver.stream == 77)
    assert not state.timeline.idle
    for _ in range(LAG):
        backend.device.driver.record()
    assert state.timeline.idle


# Arguments


def test_memory_of_the_user_is_waited_for_at_each_launch():
    backend = RecordingBackend()
    memory = backend.device.driver.allocate(VECTOR.nbytes)
    array = backend.owned(memory.pointer, VECTOR, Owner(memory), 7)
    given, _ = exported(copy_plan, backend, [array])
    mine = given.instantiate()
    for launches in (1, 2):
        start = len(backend.device.driver.calls)
        mine.launch(77)
        done = operations(backend.device.driver, start)
        assert done.index(("record", 7)) < done.index(("wait", 77)) < done.index(("launch", 77))
        assert launches


def test_arrays_of_other_libraries_are_waited_for_at_each_launch():
    class Foreign:
        __cuda_array_interface__ = {  # noqa: RUF012
            "typestr": "<f8",
            "shape": VECTOR.shape,
            "data": (1 << 40, False),
            "version": 3,
        }

    backend = RecordingBackend()
    given, _ = exported(copy_plan, backend, [Foreign()])
    mine = given.instantiate()
    start = len(backend.device.driver.calls)
    mine.launch(77)
    mine.launch(77)
    done = operations(backend.device.driver, start)
    assert done.count(("foreign", 77)) == 2
    assert done.index(("foreign", 77)) < done.index(("launch", 77))


@pytest.mark.parametrize("arguments", [None, [np.ones(1000)]], ids=["own", "copied"])
@pytest.mark.parametrize("make", [diamond, copy_plan])
def test_the_default_stream_alone_needs_no_events_and_copies_nothing_again(make, arguments):
    backend = RecordingBackend()
    given, _ = exported(make, backend, arguments)
    mine = given.instantiate()
    mine.launch()
    start = len(backend.device.driver.calls)
    mine.launch()
    assert operations(backend.device.driver, start) == [("launch", 1)]


def test_an_argument_that_was_stopped_is_refused():
    backend = RecordingBackend()
    loops, _ = exported(looping_plan, backend)
    copied, _ = exported(copy_plan, backend, list(loops.results))
    first, second = loops.instantiate(), copied.instantiate()
    backend.device.driver.busy = True
    first.launch()
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        loops.results[0].to_host()
    launches = backend.device.driver.count("launch")
    with pytest.raises(StoppedError):
        second.launch(77)
    assert backend.device.driver.count("launch") == launches
    first.launch()
    second.launch(77)


# Updates


def test_an_update_takes_over_what_is_ordered():
    backend = RecordingBackend()
    one, executable = exported(copy_plan, backend)
    other = executable.export_graph(memory_for(executable.plan, backend))
    mine = one.instantiate()
    assert mine.update(other)
    mine.launch(77)
    assert other.results[0].__cuda_array_interface__["stream"] == 77
    assert one.results[0].__cuda_array_interface__["stream"] == 1


def test_an_executable_that_is_passed_takes_over_what_is_ordered():
    backend = RecordingBackend()
    one, executable = exported(copy_plan, backend)
    other = executable.export_graph(memory_for(executable.plan, backend))
    mine = one.instantiate()
    assert one.update(other, mine)
    mine.launch(77)
    assert other.results[0].__cuda_array_interface__["stream"] == 77


# Stops


def test_loops_in_flight_are_stopped_by_a_time_limit():
    backend = RecordingBackend()
    driver = backend.device.driver
    given, executable = exported(nested_loops, backend)
    mine = given.instantiate()
    flag = given.given.operands.flag
    driver.busy = True
    mine.launch()
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        given.results[0].to_host()
    assert ("raise_flag", (flag.pointer,)) in [(c.operation, c.detail) for c in driver.calls]
    assert not driver.flags
    with pytest.raises(StoppedError):
        given.results[0].to_host()
    mine.launch()
    assert given.results[0].to_host().shape == given.results[0].type.shape
    assert not executable.closed


def test_flags_of_graphs_that_are_not_in_flight_are_not_raised():
    backend = RecordingBackend()
    driver = backend.device.driver
    given, executable = exported(nested_loops, backend)
    driver.busy = True
    results = executable(memory_for(executable.plan, backend))
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        results[0].to_host()
    raised = [c.detail[0] for c in driver.calls if c.operation == "raise_flag"]
    assert raised == [backend.device.timeline.stop_flag.pointer]
    assert given.given.operands.flag.pointer not in raised


def test_a_close_waits_for_loops_in_flight():
    backend = RecordingBackend()
    driver = backend.device.driver
    given, _ = exported(nested_loops, backend)
    mine = given.instantiate()
    driver.busy = True
    mine.launch()
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0):
        mine.close()
    assert not mine.closed
    mine.close()
    assert mine.closed
    with pytest.raises(ClosedError):
        mine.launch()


# Captures by other code


def allocating_plan():
    function = tracegraph.jit(lambda x: np.sort(x)[::-1], device="cuda", scratch="per_launch")
    return function.lower(ArrayType("float64", (100_000,))).plan


def test_in_a_capture_it_becomes_a_child_graph():
    backend = RecordingBackend()
    driver = backend.device.driver
    given, executable = exported(diamond, backend)
    mine = given.instantiate()
    driver.captured_streams.add(8)
    launches = driver.count("launch")
    mine.launch(8)
    (node,) = driver.captures[8].nodes
    assert node.bodies == (given.definition,)
    assert driver.count("launch") == launches
    assert driver.relaxed == [0]
    other = executable.export_graph(memory_for(executable.plan, backend))
    assert mine.update(other)
    mine.launch(8)
    assert driver.captures[8].nodes[-1].bodies == (other.definition,)


@pytest.mark.parametrize(
    ("make", "why"),
    [(nested_loops, "conditional node"), (allocating_plan, "allocates its scratch")],
)
def test_a_capture_that_it_cannot_join_goes_on(make, why):
    backend = RecordingBackend()
    given, _ = exported(make, backend)
    mine = given.instantiate()
    backend.device.driver.captured_streams.add(8)
    with pytest.raises(CapturingStreamError, match=why):
        mine.launch(8)
    with pytest.raises(CapturingStreamError, match="upload before the capture"):
        mine.upload(8)
    assert not backend.device.driver.captures[8].nodes
    mine.launch()


def test_a_failed_capture_is_not_joined():
    backend = RecordingBackend()
    given, _ = exported(diamond, backend)
    driver = backend.device.driver
    driver.captured_streams.add(8)
    driver.failed_captures.add(8)
    with pytest.raises(CapturingStreamError, match="has failed before"):
        given.instantiate().launch(8)


# Streams


def test_streams_of_other_libraries():
    class Torch:
        cuda_stream = 21

    class Protocol:
        def __cuda_stream__(self):
            return 0, 22

    backend = RecordingBackend()
    given, _ = exported(diamond, backend)
    mine = given.instantiate()
    for stream, handle in ((Torch(), 21), (Protocol(), 22), (23, 23)):
        mine.upload(stream)
        mine.launch(stream)
        done = operations(backend.device.driver)
        assert ("upload", handle) in done
        assert ("launch", handle) in done
    with tracegraph.stream(24):
        mine.launch()
        mine.upload()
    assert ("launch", 24) in operations(backend.device.driver)
    with pytest.raises(TypeError, match="got str"):
        mine.launch("8")
    with pytest.raises(ValueError, match="per-thread"):
        mine.launch(2)


def test_a_launch_that_fails_anywhere_leaves_later_ones_in_order():
    for make in (copy_plan, nested_loops):
        for number in range(1, 12):
            backend = RecordingBackend(RecordingDriver())
            given, executable = exported(make, backend)
            mine, driver = given.instantiate(), backend.device.driver
            with tracegraph.stream(9):
                executable(memory_for(executable.plan, backend))
            driver.fail_at = len(driver.calls) + number
            with suppress(InjectedError):
                mine.launch(77)
            for each in driver.streams:
                each.fail_at = None
            mine.launch(8)
            mine.launch(77)
            start = len(driver.calls)
            given.results[0].to_host()
            assert operations(driver, start)[-1] == ("copy_to_host", 77)
            mine.close()
