"""Captures by other code: work beside them, and a child graph in them."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

from lowering.driver.error_checks import SUCCESS, called
from lowering.driver.graph_nodes import child_node

_RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
_ACTIVE = driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
_SET = int(driver.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES)


class relaxed:  # noqa: N801 - used as the functions of contextlib are, at a third of their cost
    """Exempt this thread from the rules of global and thread-local captures.

    In such a capture, what might wait or allocate is refused and invalidates the capture, even on
    streams that are no part of it. Every look at an event is in such a block.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = relax()

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            driver.cuThreadExchangeStreamCaptureMode(self._before)


def relax() -> Any:
    """Exempt this thread from now on; its mode until then.

    None if that fails: the driver has shut down, or the device is lost, and no capture is open.
    """
    _, before = driver.cuThreadExchangeStreamCaptureMode(_RELAXED)
    return before


def takes_nodes(stream: Any) -> bool:
    """Whether a capture of the stream is open and valid."""
    result, status = driver.cuStreamIsCapturing(stream)
    return bool(result == SUCCESS and status == _ACTIVE)


def add_to_capture(stream: Any, child: Any) -> None:
    """Capture a child graph on a stream, as a launch in it would be."""
    info = called(driver.cuStreamGetCaptureInfo, stream)
    graph, before = info[2], list(info[3])
    node = child_node(graph, before, child)
    called(driver.cuStreamUpdateCaptureDependencies, stream, [node], None, 1, _SET)
