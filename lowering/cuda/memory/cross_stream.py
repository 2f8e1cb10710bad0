"""Deferred free: memory of one stream that other streams use too is freed after those uses."""

from __future__ import annotations

from collections import deque

from lowering.cuda.interface import Allocation, Event
from lowering.cuda.memory.heap import DeferredFrees
from lowering.cuda.streams.in_flight import InFlightLaunch
from lowering.cuda.streams.launch_end import LaunchEnd
from lowering.cuda.streams.timeline import Timeline


class FreeList(deque[Allocation]):
    """Free memory of one size class, at most `most` pieces; compared by identity.

    Pieces in `deferred` are free when the events with them have passed.
    """

    __slots__ = ("deferred",)

    def __init__(self, most: int) -> None:
        super().__init__((), most)
        self.deferred: DeferredFrees = []

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]  # a deque has none
        return id(self)

    def reclaim(self) -> Allocation | None:
        """The oldest deferred piece, if it is free by now."""
        try:
            allocation, uses = self.deferred.pop(0)
        except IndexError:
            return None
        if all(passed() for passed in uses):
            return allocation
        self.deferred.append((allocation, uses))
        return None


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

    def pending(self) -> list[Event]:
        """The events of uses that have not passed, for a stream to wait for.

        A launch that another thread is about to make has none yet, and is in no order with this.
        """
        found = []
        for use in self._uses:
            if isinstance(use, LaunchEnd):
                if not use.made:
                    continue
                use = use.end()
            if not use():
                found.append(use)
        return found

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
