"""Calls on streams that other code captures: a child of its graph, or a refusal that leaves it."""

import gc
import sys
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import tracegraph
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign
from tests.programs.hand_made_plans import (
    callbacks,
    diamond,
    effects,
    nested_loops,
    small_input,
)
from tracegraph.errors import CapturingStreamError, ClosedError, OutOfMemoryError
from tracegraph.staging.calls.donated import Donated

STREAM = 77
FOREIGN = 1 << 40
"""The address of an array of another library."""


def product():
    x = np.zeros((64, 64), np.float32)
    return tracegraph.jit(lambda x: x @ (x + 1) * 2, device="cuda").lower(x).plan


def diamond_per_launch():
    return replace(diamond(), per_launch=True)


class CarefulDriver(RecordingDriver):
    """Refuses what would end a global capture: any call, unless the thread is exempt."""

    def _log(self, operation, *detail):
        if self.captured_streams and not self.relaxed[0]:
            raise AssertionError(f"{operation} ends the capture")
        assert self.stream not in self.captured_streams, f"{operation} on a captured stream"
        return super()._log(operation, *detail)


class Bench:
    def __init__(self, make=diamond, lacks=()):
        self.backend = RecordingBackend(CarefulDriver(), lacks)
        self.driver = self.backend.device.driver
        self.executable = self.backend.compile(make())
        self.arguments = [
            self.backend.device.pool.buffer(b.type.strong()) for b in self.executable.plan.inputs
        ]

    def capture(self, *arguments):
        with tracegraph.stream(STREAM):
            return self.executable(list(arguments) or self.arguments)

    @property
    def children(self):
        return [node.bodies[0] for node in self.driver.captures[STREAM].nodes]


@pytest.fixture
def bench(request):
    bench = Bench(*getattr(request, "param", ()))
    bench.driver.captured_streams.add(STREAM)
    return bench


def refused(bench, match, *arguments):
    """A refusal that does nothing, names the function, and leaves stream and function usable."""
    driver, name = bench.driver, bench.executable.plan.name
    with pytest.raises(CapturingStreamError, match=match) as caught:
        bench.capture(*arguments)
    assert repr(name) in str(caught.value)
    assert not driver.captures
    assert driver.relaxed == [0]
    driver.captured_streams.clear()
    with tracegraph.stream(STREAM):
        bench.executable(bench.arguments)


@pytest.mark.parametrize("bench", [(diamond,), (small_input,), (product,)], indirect=True)
def test_a_call_becomes_a_child_of_the_captured_graph(bench):
    results = bench.capture()
    (child,) = bench.children
    assert child.tied.frozen
    passed = {value for node in child.walk() for value in node.added}
    assert {result.pointer for result in results if result.type.size} <= passed
    types = [buffer.type.strong() for buffer in bench.executable.plan.outputs]
    assert [result.type for result in results] == types
    assert bench.executable.stats()["launches"] == 0
    assert bench.driver.count("launch") == 0
    assert bench.driver.relaxed == [0]


def test_the_next_call_comes_behind_and_reads_the_result_of_the_one_before():
    bench = Bench()
    bench.driver.captured_streams.add(STREAM)
    first = bench.capture()
    second = bench.capture(*[*first, *bench.arguments][: len(bench.arguments)])
    one, two = bench.driver.captures[STREAM].nodes
    assert two.dependencies == (one,)
    assert first[0].pointer != second[0].pointer
    read = {value for node in two.bodies[0].walk() for value in node.added}
    assert first[0].pointer in read


def test_no_two_calls_share_scratch(bench):
    assert bench.executable.plan.arena_bytes
    bench.capture()
    bench.capture()
    first, second = (
        {value for node in child.walk() for value in node.added} for child in bench.children
    )
    shared = {argument.pointer for argument in bench.arguments}
    assert {value for value in first & second if value >> 32} <= shared


def test_owners_live_as_long_as_the_captured_graph(bench):
    results = bench.capture()
    operands = [weakref.ref(array) for array in (*bench.arguments, *results)]
    captures, driver = bench.driver.captures, bench.driver
    driver.graphs.clear()
    driver.captured_streams.clear()
    bench.executable.close()
    del results, bench.arguments, bench.executable, bench.backend
    gc.collect()
    assert all(operand() is not None for operand in operands)
    assert driver.live_memory
    captures.clear()
    gc.collect()
    assert all(operand() is None for operand in operands)


def test_the_default_stream_is_waited_for_before_the_child_is_added(bench):
    bench.driver.calls.clear()
    bench.capture()
    operations = [call.operation for call in bench.driver.calls]
    assert operations.index("synchronize") < operations.index("add_to_capture")
    assert operations[-1] == "add_to_capture"


def test_a_function_is_compiled_inside_a_capture():
    backend = RecordingBackend(CarefulDriver())
    backend.device.driver.captured_streams.add(STREAM)
    with tracegraph.stream(STREAM):
        executable = backend.compile(diamond())
    assert not executable.closed
    assert backend.device.driver.relaxed == [0]
    assert not backend.device.driver.captures


def test_a_capture_that_has_failed_is_refused(bench):
    bench.driver.failed_captures.add(STREAM)
    refused(bench, "the capture has failed before")


def test_a_donating_function_is_refused():
    function = tracegraph.jit(lambda x: x + 1, device="cuda", donate_argnums=0)
    plan = function.lower(np.zeros(1000)).plan
    assert plan.aliases
    bench = Bench(lambda: plan)
    bench.driver.captured_streams.add(STREAM)
    refused(bench, "writes over donated arguments")


@pytest.mark.parametrize(
    ("make", "lacks", "match"),
    [
        (nested_loops, (), r"a loop at .*conditional node \(while\).*one_kernel"),
        (nested_loops, ("conditional_nodes",), "the host drives its loops"),
        (diamond_per_launch, (), "each launch allocates its scratch"),
        (effects, (), "prints"),
        (callbacks, (), "calls back"),
    ],
)
def test_what_no_child_can_do_is_refused(make, lacks, match):
    bench = Bench(make, lacks)
    bench.driver.captured_streams.add(STREAM)
    with pytest.raises(CapturingStreamError, match=match):
        bench.capture()
    assert not bench.driver.captures
    assert bench.driver.relaxed == [0]


def test_arrays_of_other_libraries_are_used_in_place_and_nothing_waits_for_them(bench):
    foreign = Foreign(FOREIGN)
    bench.capture(foreign, *bench.arguments[1:])
    assert [call.detail for call in bench.driver.calls if call.operation == "foreign"] == [(False,)]
    kept = weakref.ref(foreign)
    del foreign
    gc.collect()
    assert kept() is not None
    bench.driver.captures.clear()
    bench.driver.graphs.clear()
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize(
    ("argument", "match"),
    [
        (np.zeros(1000), "is in host memory.*asarray"),
        (Foreign(FOREIGN, strides=(16,)), "is not contiguous"),
        (Foreign(FOREIGN + 4), "is not contiguous"),
    ],
)
def test_arguments_that_launches_would_not_read_again_are_refused(bench, argument, match):
    refused(bench, match, argument, *bench.arguments[1:])


def test_an_array_of_a_captured_stream_is_not_asked_for_by_a_call_on_another(monkeypatch):
    """Asking would make that stream a part of the capture."""
    bench = Bench()
    bench.driver.captured_streams.add(STREAM)
    bench.driver.relaxed[0] = 1
    library = SimpleNamespace(
        cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=STREAM))
    )
    monkeypatch.setitem(sys.modules, "cupy", library)
    array = type("ndarray", (Foreign,), {"__module__": "cupy"})(FOREIGN)
    before = len(bench.driver.calls)
    with pytest.raises(CapturingStreamError, match=r"inside `with tracegraph\.stream"):
        bench.executable([array, *bench.arguments[1:]])
    assert "foreign" not in [call.operation for call in bench.driver.calls[before:]]
    bench.driver.captured_streams.clear()
    bench.executable([array, *bench.arguments[1:]])


def test_numbers_keep_their_values():
    bench = Bench(small_input)
    bench.driver.captured_streams.add(STREAM)
    scalars = [buffer.type.shape == () for buffer in bench.executable.plan.inputs]
    given = [2 if s else a for s, a in zip(scalars, bench.arguments, strict=True)]
    assert any(scalars)
    bench.capture(*given)
    assert len(bench.children) == 1


def test_a_wrong_argument_is_an_error_of_its_own(bench):
    for wrong in ([], [*bench.arguments, bench.arguments[0]]):
        with tracegraph.stream(STREAM), pytest.raises(TypeError, match="arrays, got"):
            bench.executable(wrong)
    other = Foreign(FOREIGN)
    other.__cuda_array_interface__["typestr"] = "<f4"
    with pytest.raises(TypeError, match="float32"):
        bench.capture(other, *bench.arguments[1:])
    assert not bench.driver.captures


def test_a_closed_function_stays_closed():
    bench = Bench()
    bench.executable.close()
    bench.driver.captured_streams.add(STREAM)
    with pytest.raises(ClosedError):
        bench.capture()
    assert not bench.driver.captures


def test_other_streams_are_not_captured():
    bench = Bench()
    bench.driver.captured_streams.add(STREAM)
    bench.driver.relaxed[0] = 1  # the driver of this test would refuse it in a global capture
    bench.executable(bench.arguments)
    assert bench.driver.count("launch") == 1
    assert not bench.driver.captures


@pytest.mark.parametrize("make", [diamond, small_input, product], ids=lambda make: make.__name__)
def test_every_failure_leaves_the_capture_as_it_was(make):
    reference = Bench(make)
    reference.driver.captured_streams.add(STREAM)
    before = len(reference.driver.calls)
    reference.capture()
    count = len(reference.driver.calls) - before
    assert count > 5
    bench = Bench(make)
    driver = bench.driver
    driver.captured_streams.add(STREAM)
    for number in range(1, count + 1):
        driver.fail_at = len(driver.calls) + number
        try:
            bench.capture()
        except InjectedError:
            assert not driver.captures, number
        else:
            driver.captures.clear()
        assert driver.relaxed == [0]
        assert not driver.open_captures
        driver.fail_at = None
    driver.captures.clear()
    bench.capture()
    assert len(bench.children) == 1


def test_a_lack_of_memory_names_what_holds_it():
    bench = Bench()
    bench.driver.captured_streams.add(STREAM)
    bench.driver.memory = 0
    with pytest.raises(OutOfMemoryError, match=bench.executable.plan.name):
        bench.capture()
    assert not bench.driver.captures


def test_a_donation_is_not_needed_and_not_spent(bench):
    donated = Donated()
    with tracegraph.stream(STREAM):
        bench.executable(bench.arguments, donated)
    assert not donated.spent
    assert len(bench.children) == 1


def test_a_captured_consumer_makes_the_host_wait_not_its_stream(bench):
    (result, *_) = bench.capture()
    bench.driver.calls.clear()
    result.hand_over(STREAM)
    assert [call.operation for call in bench.driver.calls] == ["synchronize"]
