"""OwnedStream: a stream that tracegraph made, and destroys."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from lowering.cuda.interface import Driver

if TYPE_CHECKING:
    from lowering.cuda.open_devices import OpenDevice


class OwnedStream:
    """A new stream of a device.

    Results on it and work in flight keep the stream open. When this object is collected, the graphs
    for the stream and their scratch memory go, as soon as the stream is idle.
    """

    def __init__(self, device: OpenDevice, priority: int | None = None) -> None:
        device.driver.activate()
        if priority is not None:
            require_priority(priority, device.driver)
        self._stream = device.driver.create_stream(priority)
        self._state = device.streams.open_own(self.__cuda_stream__()[1], self._stream)
        weakref.finalize(self, device.streams.leave, self._state).atexit = False

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle."""
        version, handle = self._stream.__cuda_stream__()
        return version, int(handle)

    @property
    def priority(self) -> int:
        """Its priority; lower numbers come first."""
        return int(self._stream.priority)

    def synchronize(self) -> None:
        """Wait for all work in it; raises what `Timeline.wait` does."""
        self._state.timeline.wait()


def require_priority(priority: int, driver: Driver) -> None:
    """Raise TypeError or ValueError unless a priority is one that the device has."""
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(f"a priority is an int, such as -1, got {priority!r}")
    lowest, highest = driver.priorities
    if not highest <= priority <= lowest:
        raise ValueError(
            f"the priorities of cuda:{driver.ordinal} are {highest} (first) to {lowest}, got "
            f"{priority}"
        )
