"""What cannot be freed is warned of, unless nothing can be done about it any more."""

import gc
import sys
import threading
import warnings
from types import SimpleNamespace

import pytest

pytest.importorskip("cuda.bindings")

from cuda.bindings import driver as bindings  # noqa: TID251 - its enumerations alone

from lowering.driver import (
    clean_up,
    error_checks,
    foreign_captures,
    graphs,
    handles,
    memory_resources,
    user_objects,
)
from lowering.driver.handles import CudaExecutableGraph, CudaTimer
from lowering.driver.memory_resources import PinnedMemory, PoolMemory
from lowering.driver.user_objects import UserObjects
from tracegraph.errors import CleanUpWarning

RESULTS = bindings.CUresult
INVALID = RESULTS.CUDA_ERROR_INVALID_HANDLE
NOTHING_TO_DO = [
    RESULTS.CUDA_ERROR_DEINITIALIZED,
    RESULTS.CUDA_ERROR_CONTEXT_IS_DESTROYED,
    RESULTS.CUDA_ERROR_ILLEGAL_ADDRESS,
    RESULTS.CUDA_ERROR_LAUNCH_FAILED,
]


class Failing:
    """A driver whose calls that free all return the `result`."""

    CUresult = RESULTS
    CUhostFn = staticmethod(bindings.CUhostFn)
    result = INVALID

    def __init__(self):
        self.freed = []

    def __getattr__(self, name):
        def call(*arguments):
            self.freed.append(name)
            return (self.result, None) if name == "cuStreamEndCapture" else (self.result,)

        return call

    def cuThreadExchangeStreamCaptureMode(self, mode):
        return RESULTS.CUDA_SUCCESS, mode

    def cuGetErrorString(self, result):
        return RESULTS.CUDA_SUCCESS, b"it is no handle"

    def cuUserObjectCreate(self, *arguments):
        return RESULTS.CUDA_SUCCESS, 5

    def cuGraphRetainUserObject(self, *arguments):
        return (RESULTS.CUDA_SUCCESS,)

    def cuEventCreate(self, flags):
        return RESULTS.CUDA_SUCCESS, 6


@pytest.fixture
def driver(monkeypatch):
    fake = Failing()
    for module in (error_checks, foreign_captures, graphs, handles, memory_resources, user_objects):
        monkeypatch.setattr(module, "driver", fake)
    started = SimpleNamespace(
        start_new_thread=lambda function, args: None, allocate_lock=threading.Lock
    )
    monkeypatch.setattr(user_objects, "_thread", started)
    return fake


def drop_executable():
    CudaExecutableGraph(7, None)


def drop_timer():
    CudaTimer.create()


def drop_tied_graph():
    UserObjects().tie(SimpleNamespace(handle=3), object())


def free_memory():
    PoolMemory(SimpleNamespace(memory_resource=None)).deallocate(
        4096, 64, stream=SimpleNamespace(handle=1)
    )


def trim_pinned_memory():
    pinned = PinnedMemory()
    pinned.deallocate(4096, 64)
    pinned.trim()


WAYS = [
    (drop_executable, "an executable graph", "cuGraphExecDestroy"),
    (drop_timer, "an event", "cuEventDestroy"),
    (drop_tied_graph, "what a graph points to", "cuUserObjectRelease"),
    (free_memory, "64 bytes of device memory", "cuMemFreeAsync"),
    (trim_pinned_memory, "a piece of pinned memory", "cuMemFreeHost"),
]


@pytest.mark.parametrize(("drop", "what", "operation"), WAYS)
def test_what_is_not_freed_is_named(driver, drop, what, operation):
    with warnings.catch_warnings(record=True, action="always") as warned:
        drop()
        gc.collect()
    (warning,) = warned
    message = warning.message
    assert isinstance(message, CleanUpWarning)
    assert str(message).startswith(f"{what} could not be freed: {operation} failed with")
    assert (message.operation, message.name) == (operation, "CUDA_ERROR_INVALID_HANDLE")
    assert "CUDA_ERROR_INVALID_HANDLE: it is no handle; it stays until" in str(message)


@pytest.mark.parametrize(("drop", "what", "operation"), WAYS)
@pytest.mark.parametrize("result", [RESULTS.CUDA_SUCCESS, *NOTHING_TO_DO], ids=lambda r: r.name)
def test_nothing_is_said_where_all_went_well_or_is_gone(driver, drop, what, operation, result):
    driver.result = result
    drop()
    gc.collect()
    assert driver.freed == [operation]


def test_nothing_is_said_at_the_end_of_the_process(driver, monkeypatch):
    monkeypatch.setattr(clean_up, "sys", SimpleNamespace(is_finalizing=lambda: True))
    drop_executable()
    gc.collect()
    assert driver.freed == ["cuGraphExecDestroy"]
    assert not sys.is_finalizing()


def test_an_executable_is_closed_where_warnings_are_errors(driver):
    executable = CudaExecutableGraph(7, None)
    with pytest.raises(CleanUpWarning):
        executable.close()
    assert executable.handle is None
    executable.close()
    assert driver.freed == ["cuGraphExecDestroy"]


@pytest.mark.parametrize(
    ("result", "warns"),
    [
        (RESULTS.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, False),
        (INVALID, True),
    ],
)
def test_a_capture_that_cannot_be_ended(driver, monkeypatch, result, warns):
    driver.cuGraphGetNodes = lambda *arguments: (RESULTS.CUDA_SUCCESS, [], 0)
    driver.cuStreamBeginCaptureToGraph = lambda *arguments: (RESULTS.CUDA_SUCCESS,)
    driver.result = result
    capturing = iter([False, True])
    monkeypatch.setattr(graphs, "is_capturing", lambda stream: next(capturing))

    def issue():
        raise KeyError("mine")

    with pytest.MonkeyPatch.context() as patch:
        said = []
        patch.setattr(clean_up.warnings, "warn", lambda warning, stacklevel: said.append(warning))
        with pytest.raises(KeyError, match="mine"):
            graphs.capture_nodes(SimpleNamespace(handle=1), [], issue, 9)
    assert [type(warning) for warning in said] == [CleanUpWarning] * warns
