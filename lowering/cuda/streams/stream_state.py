"""StreamState: a stream of a device, with the memory that belongs to it."""

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
    """A stream: its timeline, the pool of its calls' memory, and the scratch of its graphs.

    A `foreign` stream is another library's, which does not say when it destroys it.
    """

    device: OpenDevice
    driver: Driver
    timeline: Timeline
    pool: Pool
    arenas: Arenas
    foreign: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is the default stream of the device."""
        return self is self.device.default_stream
