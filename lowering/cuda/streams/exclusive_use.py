"""ExclusiveUse: what only one stream may use at a time, such as the print ring."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lowering.cuda.effects.callback_thread import require_not_awaited
from lowering.cuda.interface import Event
from lowering.cuda.streams.in_flight import InFlightLaunch
from lowering.cuda.streams.timeline import Timeline
from tracegraph.concurrency.locks import holding


class ExclusiveUse:
    """The stream that used it last, for which the next one waits on the device; None before that.

    On the default stream no event is recorded: another stream that comes next waits for all that is
    there by then. Other streams may be destroyed before that: each launch on them records an event.
    """

    __slots__ = ("_event", "_lock", "holding", "timeline")

    def __init__(self, timeline: Timeline | None = None) -> None:
        self._lock = threading.Lock()
        self.holding = holding(self._lock)
        """Keeps other threads from it; `hold` also lets a stream use it."""
        self.timeline = timeline
        self._event: Event | None = None

    @contextmanager
    def hold(self, timeline: Timeline) -> Iterator[None]:
        """Let a stream use it next, and keep other threads from it meanwhile."""
        with self._lock:
            self.enter(timeline)
            yield

    def enter(self, timeline: Timeline) -> InFlightLaunch | None:
        """Let a stream wait for the last use, and be the last; as `Timeline.follow`."""
        if timeline is self.timeline:
            return None
        before, event = self.timeline, self._event
        pending = None
        if before is not None:
            if before.busy:
                require_not_awaited("programs with loops or prints run one after the other")
            pending = timeline.follow(event or before.driver.record(), before)
        self.timeline, self._event = timeline, None
        return pending

    def leave(self, event: Event) -> None:
        """Note the event behind the use, while it is held."""
        self._event = event
