"""OwnedStream: a stream that tracegraph made, and destroys."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowering.cuda.device import OpenDevice


class OwnedStream:
    """A new stream of a device.

    Results on it and work in flight keep the stream open. When this object is collected, the graphs
    for the stream and their scratch memory go, as soon as the stream is idle.
    """

    def __init__(self, device: OpenDevice) -> None:
        device.driver.activate()
        self._stream = device.driver.create_stream()
        self._state = device.streams.open_own(self.__cuda_stream__()[1], self._stream)
        weakref.finalize(self, device.streams.leave, self._state).atexit = False

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle."""
        version, handle = self._stream.__cuda_stream__()
        return version, int(handle)

    def synchronize(self) -> None:
        """Wait for all work in it; raises what `Timeline.wait` does."""
        self._state.timeline.wait()
