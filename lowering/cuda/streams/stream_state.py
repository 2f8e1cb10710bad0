"""Lane: a stream of a device, with all that is its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lowering.cuda.interface import Driver
from lowering.cuda.memory.arena import Arenas
from lowering.cuda.memory.pool import Pool
from lowering.cuda.streams.timeline import Timeline

if TYPE_CHECKING:
    from lowering.cuda.device import OpenDevice


@dataclass(frozen=True, slots=True, eq=False)
class StreamState:
    """A stream: what is in flight on it, the memory of its calls, and the scratch of its graphs.

    A `foreign` is a stream of another library, of whose end nobody tells.
    """

    device: OpenDevice
    driver: Driver
    timeline: Timeline
    pool: Pool
    arenas: Arenas
    foreign: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is the device's own stream."""
        return self is self.device.default_stream
