"""LastUse: of what must not be used on two streams at once, such as the print ring."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lowering.cuda.interface import Event
from lowering.cuda.streams.in_flight import Flight
from lowering.cuda.streams.timeline import Timeline


class LastUse:
    """The stream that used something last.

    On the device's own stream no event is recorded: should another stream come next, it waits for
    all that is there. Others may be destroyed before that: each launch on them records one.
    """

    __slots__ = ("_event", "_lock", "timeline")

    def __init__(self, timeline: Timeline) -> None:
        self._lock = threading.Lock()
        self.timeline = timeline
        self._event: Event | None = None

    @contextmanager
    def turn(self, timeline: Timeline) -> Iterator[None]:
        """Let a stream be the next, while nobody else is."""
        with self._lock:
            self.enter(timeline)
            yield

    def enter(self, timeline: Timeline) -> Flight | None:
        """Let a stream wait for it, and be the last; as `Timeline.follow`."""
        if timeline is self.timeline:
            return None
        before, event = self.timeline, self._event
        flight = timeline.follow(event or before.driver.record(), before)
        self.timeline, self._event = timeline, None
        return flight

    def leave(self, event: Event) -> None:
        """Note the event behind the use, in the turn."""
        self._event = event
