"""OwnedStream: a stream that tracegraph made, and destroys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracegraph.streams import Chosen

if TYPE_CHECKING:
    from lowering.cuda.device import OpenDevice


class OwnedStream:
    """A new stream of a device; results, and work in flight, keep it alive."""

    def __init__(self, device: OpenDevice) -> None:
        device.driver.activate()
        self._device = device
        self._stream = device.driver.create_stream()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle."""
        version, handle = self._stream.__cuda_stream__()
        return version, int(handle)

    def synchronize(self) -> None:
        """Wait for all work in it; raises what `Timeline.wait` does."""
        self._device.lane(Chosen(self.__cuda_stream__()[1], self)).timeline.wait()
