"""StreamState: a stream of a device, with the memory that belongs to it."""

from __future__ import annotations

from lowering.cuda.interface import Driver
from lowering.cuda.memory.arena import Arenas
from lowering.cuda.memory.heap import Heap
from lowering.cuda.memory.pool import DevicePool
from lowering.cuda.streams.timeline import Timeline
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class StreamState:
    """A stream: its timeline, the pool of its calls' memory, and the scratch of its graphs.

    The heap is the device's.

    A `foreign` stream is another library's, which does not say when it destroys it.
    """

    driver: Driver
    heap: Heap
    timeline: Timeline
    pool: DevicePool
    arenas: Arenas
    foreign: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is the default stream of the device."""
        return self.timeline is self.timeline.default_timeline
