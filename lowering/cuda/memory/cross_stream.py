"""Deferred free: memory of one stream that other streams use too is freed after those uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowering.cuda.interface import Allocation, Event
from lowering.cuda.streams.in_flight import InFlightLaunch

if TYPE_CHECKING:
    from lowering.cuda.memory.pool import FreeList
    from lowering.cuda.streams.timeline import Timeline


class CrossStreamUse:
    """Takes the place of a buffer's free list, and frees its memory behind the events of its uses.

    `ready` is the event behind what computes the buffer, if one is recorded. `followers` are the
    streams that wait for it already, each with the launch that its work has to wait for.
    """

    __slots__ = ("_uses", "followers", "free", "ready")

    free: FreeList
    """The list whose place it takes."""

    def __init__(self, free: FreeList, ready: Event | None = None) -> None:
        self.ready = ready
        self.followers: dict[Timeline, InFlightLaunch | None] = {}
        self.free = free
        self._uses: list[Event] = []

    def note(self, event: Event) -> None:
        """Note the event behind what another stream does with the memory."""
        self._uses = [*(use for use in self._uses if not use()), event]

    @property
    def over(self) -> bool:
        """Whether all uses have passed."""
        return all(use() for use in self._uses)

    def append(self, allocation: Allocation) -> None:
        """Take the memory back, when the buffer is collected."""
        if self._uses:
            self.free.deferred.append((allocation, self._uses))
        else:
            self.free.append(allocation)
