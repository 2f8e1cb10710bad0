"""LastUse: of what must not be used on two streams at once, such as an executable's memory."""

from __future__ import annotations

from lowering.cuda.flight import Flight
from lowering.cuda.interface import Event
from lowering.cuda.timeline import Timeline


class LastUse:
    """The stream that used something last. Whoever launches holds a lock meanwhile.

    On the device's own stream no event is recorded: should another stream come next, it waits for
    all that is there. Others may be destroyed before that: each launch on them records one.
    """

    __slots__ = ("_event", "timeline")

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._event: Event | None = None

    def enter(self, timeline: Timeline) -> Flight | None:
        """Let another stream wait for it, and be the last; as `Timeline.follow`."""
        before, event = self.timeline, self._event
        flight = timeline.follow(event or before.driver.record(), before)
        self.timeline, self._event = timeline, None
        return flight

    def settle(self) -> None:
        """Wait for it; raises what `Timeline.settle` does."""
        if self._event is None or not self._event():
            self.timeline.settle()

    def leave(self, event: Event) -> None:
        """Note the event behind the use."""
        self._event = event
