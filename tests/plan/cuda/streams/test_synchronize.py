"""Waiting for a device: what it waits for, and what it leaves alone."""

from __future__ import annotations

from lowering.cuda.streams.stream_state import StreamState
from lowering.testing.recording_backend import RecordingBackend
from tracegraph.current_stream import Chosen
from tracegraph.streams import stream


def waited(backend: RecordingBackend) -> set[int]:
    """The handles of the streams that are waited for."""
    calls = backend.device.driver.calls
    start = len(calls)
    backend.synchronize()
    return {call.stream for call in calls[start:] if call.operation == "synchronize"}


def opened(backend: RecordingBackend, handle: int) -> StreamState:
    return backend.device.streams.of(Chosen(handle, None))


def test_streams_of_others_are_waited_for_where_they_are_in_use() -> None:
    backend = RecordingBackend()
    own = backend.device.driver.stream
    opened(backend, 77)
    assert waited(backend) == {own}
    with stream(77):
        assert waited(backend) == {own, 77}


def test_streams_of_this_package_are_waited_for() -> None:
    backend = RecordingBackend()
    made = backend.create_stream()
    assert waited(backend) == {backend.device.driver.stream, made.__cuda_stream__()[1]}


def test_streams_that_others_capture_are_left_alone() -> None:
    backend = RecordingBackend()
    driver = backend.device.driver
    opened(backend, 77)
    driver.captured_streams.add(77)
    with stream(77):
        assert waited(backend) == {driver.stream}


def test_a_device_that_nobody_has_used_is_not_opened() -> None:
    from lowering.backends.cuda_backend import CudaBackend

    CudaBackend().synchronize()
