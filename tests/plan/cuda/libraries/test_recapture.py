"""Recaptured calls: which nodes get which parameters when arguments and results move."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.cuda.calls import stream_graph
from lowering.cuda.calls.executable import CudaExecutable
from lowering.cuda.graph.copies import COPY_KERNEL
from lowering.cuda.libraries import recapture
from lowering.errors import NestedCaptureError, UnrepeatableCaptureError
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.features import override as declare
from lowering.testing.call_log import InjectedError
from lowering.testing.recorded_objects import RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign
from tests.fakes.interrupts import InterruptError, interrupt_after, interrupted
from tests.helpers.compiled import plan_of
from tests.programs.hand_made_plans import VECTOR, moving_transforms
from tracegraph import ArrayType
from tracegraph.errors import (
    CapturingStreamError,
    ClosedError,
    DeviceLostError,
    FallbackWarning,
    UpdateError,
)

LARGE = ArrayType("complex64", (1024, 1024))
SMALL = ArrayType("complex128", (8,))


class LaunchedDriver(RecordingDriver):
    """Keeps what the nodes of the executable that was launched last have, and may refuse."""

    refuses: str | None = None

    def _log(self, operation: str, *detail: Any) -> int:
        position = super()._log(operation, *detail)
        if operation == self.refuses:
            raise InjectedError(operation)
        return position

    def _launch(self, executable: Any) -> None:
        super()._launch(executable)
        self.launched = {n: [*v] for n, v in executable.values.items() if n.kind == "library"}


class Called:
    """An executable on a recording driver, and what each call asks of it."""

    driver: LaunchedDriver

    def __init__(self, made: Any, driver: LaunchedDriver | None = None) -> None:
        self.driver = driver or LaunchedDriver()
        self.backend = RecordingBackend(self.driver)
        self.executable: CudaExecutable = self.backend.compile(made)

    def buffer(self, type_: ArrayType = LARGE) -> Any:
        return self.backend.device.pool.buffer(type_)

    def __call__(self, *arguments: Any) -> list[Any]:
        start = len(self.driver.calls)
        results = self.executable(list(arguments))
        self.asked = [call.operation for call in self.driver.calls[start:]]
        self.updated = [
            call.detail for call in self.driver.calls[start:] if call.operation == "update_kernel"
        ]
        return results

    @property
    def nodes(self) -> list[RecordedNode]:
        return self.driver.graphs[0].nodes

    def launched(self) -> list[list[int]]:
        """What each transform read and wrote in the last launch."""
        return [self.driver.launched[node] for node in self.nodes if node.kind == "library"]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> RecordingBackend:
    backend = RecordingBackend(LaunchedDriver())
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    return backend


planned = partial(plan_of, choices={"operands": "in_place"})


def pointers(*buffers: Any) -> list[int]:
    return [buffer.pointer for buffer in buffers]


# ---- updates ----


def test_a_call_updates_the_transform_and_copies_nothing() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    assert [node.kind for node in call.nodes] == ["library"]
    kept = []
    for _ in range(3):
        x = call.buffer()
        (result,) = call(x)
        kept += [x, result]
        assert call.launched() == [pointers(x, result)]
        assert call.updated == [("transform", x.pointer, result.pointer)]
        assert call.asked.count("begin_capture") == call.asked.count("end_capture") == 1
    assert call.executable.stats()["bytes_copied"] == 0
    assert COPY_KERNEL not in {node.name for node in call.nodes}


def test_a_call_with_the_same_addresses_updates_nothing() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    x = call.buffer()
    for turn in range(3):
        call(x)
        assert turn == 0 or call.asked == ["launch"]


def test_addresses_that_come_back_are_captured_once() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    xs = [call.buffer() for _ in range(7)]  # more than executables
    for _ in range(2):
        for x in xs:
            call(x)
    for x in xs * 10:
        (result,) = call(x)
        assert "begin_capture" not in call.asked
        assert call.launched() == [pointers(x, result)]
        del result


def test_parameters_are_kept_for_the_addresses_used_last() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    xs = [call.buffer() for _ in range(recapture.KEPT + 1)]
    for x in xs:
        call(x)
    for x in reversed(xs[1:]):
        call(x)
        assert "begin_capture" not in call.asked
    call(xs[0])
    assert "begin_capture" in call.asked
    call(xs[-1])
    assert "begin_capture" in call.asked, "it was the one used longest ago"
    call(xs[1])
    assert "begin_capture" not in call.asked


def test_only_transforms_whose_arrays_moved_are_captured_again() -> None:
    call = Called(planned(lambda x, y: (np.fft.fft2(x), np.fft.fft(y), x + y), LARGE, LARGE))
    x, y, other = (call.buffer() for _ in range(3))
    results = call(x, y)
    for _ in range(2):  # results of both calls exist in turn
        kept, results = results, call(x, y)
    first, second, _ = results
    call(x, other)
    read = {source for source, _ in call.launched()}
    assert read == {x.pointer, other.pointer}
    del kept, first, second


def test_what_is_between_transforms_stays() -> None:
    call = Called(planned(lambda x: np.fft.fft2(np.fft.fft2(x)), LARGE))
    moved = []
    for _ in range(2):
        x = call.buffer()
        moved.append(x)
        results = call(x)
        (source, scratch), (again, target) = call.launched()
        assert (source, target) == (x.pointer, results[0].pointer)
        assert scratch == again
        moved.append(results)
    assert len(call.updated) == 2


def test_an_argument_that_moves_alone_updates_what_reads_it() -> None:
    call = Called(planned(lambda x: np.fft.fft2(np.fft.fft2(x)), LARGE))
    x, y = call.buffer(), call.buffer()
    call(x)
    (result,) = call(y)
    assert [detail[1] for detail in call.updated] == [y.pointer]
    del result


def test_kernels_and_transforms_of_one_argument_both_get_its_address() -> None:
    call = Called(planned(lambda x: (np.fft.fft2(x), np.sin(x)), LARGE))
    x = call.buffer()
    call(x)
    assert sorted(name == "transform" for name, *_ in call.updated) == [False, True]
    assert all(x.pointer in values for _, *values in call.updated)


# ---- several executables ----


def launches(made: Plan, seed: int) -> tuple[list[Any], int]:
    """What transforms have at each of some launches, whose arguments are chosen at random."""
    choose, call = random.Random(seed), Called(made)
    arrays = [[call.buffer(t) for _ in range(3)] for t in call.executable.plan.in_types]
    kept: list[Any] = []
    launched = []
    for turn in range(150):
        given = [choose.choice(some[: 1 + turn // 50]) for some in arrays]
        kept = [call(*given), *kept[: choose.randrange(3)]]
        launched.append(call.launched())
        read = {values[0] for values in launched[-1]}
        assert {array.pointer for array in given} <= read
        assert {result.pointer for result in kept[0]} <= {values[1] for values in launched[-1]}
    return launched, call.driver.count("instantiate")


@pytest.mark.parametrize("seed", range(4))
def test_the_device_sees_what_it_sees_with_one_executable(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(lambda x, y: (np.fft.fft2(x), np.fft.fft(y)), LARGE, LARGE)
    launched, executables = launches(plan, seed)
    assert executables > 1
    monkeypatch.setattr(stream_graph, "MOST", 1)
    assert launches(plan, seed) == (launched, 1)


def test_results_that_take_turns_need_no_updates_in_the_end() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    x = call.buffer()
    for _ in range(60):
        results = call(x)  # while those of the call before are there
    assert call.asked == ["launch"]
    assert call.launched() == [pointers(x, *results)]


def test_scratch_of_each_launch_allows_one_executable() -> None:
    call = Called(
        planned(lambda x: np.fft.fft2(np.fft.fft2(x)), LARGE, scratch="per_launch"),
    )
    xs = [call.buffer() for _ in range(2)]
    for x in xs * 20:
        (result,) = call(x)
        assert call.launched()[0][0] == x.pointer
        assert call.launched()[1][1] == result.pointer
        del result
    assert call.driver.count("instantiate") == 1


# ---- other arguments ----


def test_small_arguments_may_be_values(backend: RecordingBackend) -> None:
    call = Called(planned(lambda x: np.fft.fft(x), SMALL))
    x = call.buffer(SMALL)
    call(x)
    assert call.launched()[0][0] == x.pointer
    (result,) = call(np.ones(8, complex))
    ((slot, target),) = call.launched()
    assert slot not in pointers(x)
    assert slot % 16 == 0
    assert target == result.pointer
    load = next(node for node in call.nodes if node.kind == "kernel")
    assert load in next(node for node in call.nodes if node.kind == "library").behind()


def test_arrays_of_others_are_where_they_are_if_they_are_aligned(
    backend: RecordingBackend,
) -> None:
    driver: Any = backend.device.driver
    reals = ArrayType("float32", (1 << 20,))
    f = tracegraph.jit(np.fft.rfft, device="cuda:0")
    memory = driver.allocate(2 * reals.nbytes)
    f(Foreign(memory.pointer + 16, None, "<f4", reals.shape))
    assert f.stats()["bytes_copied"] == 0
    ((source, _),) = driver.launched.values()
    assert source == memory.pointer + 16
    f(Foreign(memory.pointer + 4, None, "<f4", reals.shape))
    f(tracegraph.owned(memory.pointer + 8, reals, owner=memory, device="cuda"))
    assert f.stats()["bytes_copied"] == 2 * reals.nbytes
    ((source, _),) = driver.launched.values()
    assert source % 16 == 0


def test_a_donated_argument_is_read_and_written_over(backend: RecordingBackend) -> None:
    driver: Any = backend.device.driver
    step = tracegraph.jit(lambda x: np.fft.fft2(np.fft.fft2(x)), donate_argnums=0, device="cuda:0")
    buffer = backend.device.pool.buffer(LARGE)
    x = tracegraph.Array(buffer)
    address = buffer.pointer
    del buffer
    for _ in range(4):
        start = len(driver.calls)
        x = step(x)
        first, last = driver.launched.values()
        assert first[0] == last[1] == address
    asked = [call.operation for call in driver.calls[start:]]
    assert asked == ["launch"], "a chain stays where it is"
    assert step.stats()["bytes_copied"] == 0


# ---- what it holds ----


def test_the_graph_holds_placeholders_and_the_handle_until_launches_have_addresses() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    (node,) = call.executable.slots.nodes
    whats = [slot.what for slot in node.slots]
    assert whats == ["library handle", "library workspace", "placeholders"]
    (held,) = call.nodes
    table = call.executable._default_graph.definition.slots
    (at,) = (p for p, slot in table._named if slot.what == "placeholders")
    assert [*held.added] == [at, at + 256]
    x = call.buffer()
    (result,) = call(x)
    assert call.launched() == [pointers(x, result)]


def test_the_check_looks_at_addresses_that_are_less_aligned_and_in_another_order() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    _, first, second = (c.detail for c in call.driver.calls if c.operation == "transform")
    assert first[0] < first[1]
    assert second[0] > second[1]
    assert {address % 256 for address in first} == {0}
    assert {address % 256 for address in second} == {16}


def test_nothing_is_left_when_it_is_closed_or_collected() -> None:
    for close in (True, False):
        call = Called(planned(lambda x: (np.fft.fft2(x), x * 2), LARGE))
        graph = call.executable._default_graph
        recaptured = [weakref.ref(c) for c, _ in graph.replicas._words.recaptured]
        assert recaptured
        call(call.buffer())
        if close:
            call.executable.close()
            with pytest.raises(ClosedError):
                call(call.buffer())
        else:
            del call.executable
        del graph
        gc.collect()
        assert [found() for found in recaptured] == [None]


def test_no_call_is_captured_again_inside_of_a_capture() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    with call.driver.capture_lock.hold(), pytest.raises(NestedCaptureError, match="end it before"):
        call(call.buffer())
    x = call.buffer()
    (result,) = call(x)
    assert call.launched() == [pointers(x, result)]


def test_a_capture_that_fails_leaves_no_lock() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    call.driver.refuses = "transform"
    with pytest.raises(UpdateError, match="fft 1024x1024"):
        call(call.buffer())
    assert call.driver.open_captures == 0
    with call.driver.capture_lock.hold():
        pass
    call.driver.refuses = None
    x = call.buffer()
    (result,) = call(x)
    assert call.launched() == [pointers(x, result)]


# ---- streams, exports, captures by others ----


def test_each_stream_has_a_workspace_and_parameters_of_its_own(backend: RecordingBackend) -> None:
    driver: Any = backend.device.driver
    f = tracegraph.jit(np.fft.fft2, device="cuda:0")
    x = tracegraph.Array(backend.device.pool.buffer(LARGE))
    one = f(x)
    (here,) = driver.graphs[0].nodes
    with tracegraph.stream(7):
        start = len(driver.calls)
        other = f(x)
    (there,) = driver.graphs[1].nodes
    assert here.values[0] == there.values[0]
    assert here.values[1] != there.values[1]
    areas = [call.detail for call in driver.calls if call.operation == "use_workspace"]
    late = [c.detail for c in driver.calls[start:] if c.operation == "use_workspace"]
    assert not {*late} & {*areas[: len(areas) - len(late)]}
    start = len(driver.calls)
    del one, other
    again = f(x)
    assert {c.detail for c in driver.calls[start:] if c.operation == "use_workspace"} <= {
        *areas[: len(areas) - len(late)]
    }
    assert f.stats()["bytes_copied"] == 0
    del again


def test_exported_graphs_have_the_addresses_themselves() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    x, start = call.buffer(), len(call.driver.calls)
    exported = call.executable.export_graph([x])
    made = [c for c in call.driver.calls[start:] if c.operation == "transform"]
    (result,) = exported.results
    assert made[-1].detail == (x.pointer, result.pointer)  # behind the run outside of the graph
    assert len(made) == 2
    (node,) = exported.slots.nodes
    whats = {slot.what for slot in node.slots}
    assert {"argument 0 c64[1024,1024]", "result 0 c64[1024,1024]", "library handle"} <= whats
    assert "placeholders" not in whats
    (result,) = call(x)
    assert call.launched() == [pointers(x, result)]


def test_arguments_of_exports_are_aligned() -> None:
    reals = ArrayType("float32", (1 << 20,))
    call = Called(planned(np.fft.rfft, reals))
    memory = call.driver.allocate(2 * reals.nbytes)
    for offset, same in ((16, True), (4, False)):
        call.executable.export_graph([Foreign(memory.pointer + offset, None, "<f4", reals.shape)])
        *_, last = (c.detail for c in call.driver.calls if c.operation == "transform")
        assert (last[0] == memory.pointer + offset) is same
        assert last[0] % 16 == 0


def test_calls_that_others_capture_have_the_addresses_themselves() -> None:
    reals = ArrayType("float32", (1 << 20,))
    call = Called(planned(np.fft.rfft, reals))
    driver = call.driver
    driver.captured_streams.add(77)
    memory = driver.allocate(2 * reals.nbytes)
    with tracegraph.stream(77):
        (result,) = call(Foreign(memory.pointer + 16, None, "<f4", reals.shape))
        with pytest.raises(CapturingStreamError, match="begins at no multiple of 16 bytes"):
            call(Foreign(memory.pointer + 4, None, "<f4", reals.shape))
    (child,) = driver.captures[77].nodes
    (node,) = child.bodies[0].nodes
    assert node.name == f"transform {memory.pointer + 16} {result.pointer}"


# ---- where captures differ ----


class Differing(LaunchedDriver):
    """A driver whose captures aside have other nodes, from one of them on."""

    first = 1

    def recapture(self, kernels: Any, issue: Callable[[], None]) -> Any:
        found = super().recapture(kernels, issue)
        self.first -= 1
        if self.first < 1:
            raise UnrepeatableCaptureError("at other addresses it is other kernels")
        return found


@pytest.mark.parametrize(
    "driver", [Differing(), LaunchedDriver(library_kinds=("memset", "kernel"))]
)
def test_what_is_no_chain_of_kernels_gets_copies_and_says_so(driver: LaunchedDriver) -> None:
    call = Called(planned(np.fft.fft2, LARGE), driver)
    plan = call.executable.plan
    assert [node.kind for node in plan.graph.nodes] == ["copy", "library", "copy"]
    assert not call.executable.features.library_updates
    assert "each launch copies 8,388,608 B to scratch" in explain(plan)
    (fallback,) = plan.fallbacks
    assert "a Fourier transform: no updates of library calls here" in f"{fallback.what}: " + (
        fallback.why
    )
    x = call.buffer()
    call(x)
    assert {name for name, *_ in call.updated} == {COPY_KERNEL}
    assert call.executable.stats()["bytes_copied"] == 2 * LARGE.nbytes
    assert driver.open_captures == 0
    del call, x
    gc.collect()
    driver.graphs.clear()
    assert [e for e in driver.live_executables if not e.closed] == []


def test_a_user_is_warned_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = RecordingBackend(Differing())
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    with pytest.warns(FallbackWarning, match="copies 16,777,216 B for a Fourier transform"):
        tracegraph.jit(np.fft.fft2, device="cuda:0").lower(LARGE).compile()


def test_updates_can_be_declared_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_FEATURES", "no-library-updates")
    call = Called(planned(np.fft.fft2, LARGE))
    assert call.executable.plan.copied_bytes == 2 * LARGE.nbytes
    assert call.driver.count("begin_capture") == 1
    monkeypatch.delenv("TRACEGRAPH_FEATURES")
    assert Called(planned(np.fft.fft2, LARGE)).executable.plan.copied == ()


def test_a_call_that_would_be_other_kernels_raises_and_the_next_is_right() -> None:
    driver = Differing()
    driver.first = 2
    call = Called(planned(np.fft.fft2, LARGE), driver)
    assert call.executable.plan.copied == ()
    with pytest.raises(UpdateError, match=r"other kernels.*no-library-updates"):
        call(call.buffer())
    driver.first = 9
    x = call.buffer()
    (result,) = call(x)
    assert call.launched() == [pointers(x, result)]


def test_a_lost_device_is_named() -> None:
    call = Called(planned(np.fft.fft2, LARGE))

    def lost(kernels: Any, issue: Any) -> Any:
        raise DeviceLostError("CUDA_ERROR_LAUNCH_FAILED")

    call.driver.recapture = lost  # type: ignore[method-assign]
    with pytest.raises(DeviceLostError):
        call(call.buffer())


# ---- loops that the host drives ----


def test_transforms_before_loops_that_the_host_drives() -> None:
    def function(x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, y: y * 0.5, np.fft.fft2(x) + 1), np.fft.fft(x)

    with declare(conditional_nodes=False):
        call = Called(planned(function, LARGE, ArrayType("int64", ())))
    x = call.buffer()
    for argument in (x, call.buffer(), x):
        call(argument, 0)
        sources = {d[1] for d in call.updated if d[0] == "transform"}
        assert sources == {argument.pointer}


# ---- failures and interrupts ----


def test_a_call_that_fails_anywhere_is_made_good_by_the_next() -> None:
    reference = Called(moving_transforms())
    built = len(reference.driver.calls)
    reference(reference.buffer(VECTOR))
    for number in range(built + 2, len(reference.driver.calls) + 1):
        driver = LaunchedDriver(fail_at=number)
        call = Called(moving_transforms(), driver)
        x = call.buffer(VECTOR)
        with pytest.raises((InjectedError, UpdateError)):
            call(x)
        assert driver.open_captures == 0
        (result,) = call(x)
        (source, scratch), (again, target) = call.launched()
        assert (source, target) == (x.pointer, result.pointer)
        assert scratch == again


def test_a_call_that_is_interrupted_anywhere_is_made_good_by_the_next() -> None:
    modules = ("recapture", "address_updates", "replicas")
    call = Called(planned(lambda x: np.fft.fft2(np.fft.fft2(x)), LARGE))
    xs = [call.buffer() for _ in range(3)]
    for k in range(3):
        fresh = [call.buffer()]

        def interrupted_call(k: int = k, fresh: list[Any] = fresh) -> None:
            call.executable([fresh[0] if k == 2 else xs[k]])

        for _ in interrupted(interrupted_call, *modules):
            for x in (xs[0], fresh[0], xs[1]):
                (result,) = call(x)
                assert call.launched()[0][0] == x.pointer
                assert call.launched()[1][1] == result.pointer
                del result
            assert call.driver.open_captures == 0


def test_an_interrupt_at_any_bytecode_of_a_recapture() -> None:
    call = Called(planned(np.fft.fft2, LARGE))
    kept = []
    for count in range(0, 400, 7):
        x = call.buffer()
        kept.append(x)
        sys.settrace(interrupt_after(count, ("recapture",)))
        try:
            call.executable([x])
        except InterruptError:
            pass
        finally:
            sys.settrace(None)
        (result,) = call(x)
        assert call.launched() == [pointers(x, result)]
        del result
