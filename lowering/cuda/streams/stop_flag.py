"""StopFlag: a word in device memory that ends all loops on a device, whatever their stream.

It is raised at once, and lowered in stream order, behind the launches that it is to end. Exported
graphs have words of their own, which are raised with it while launches of them are in flight.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, Protocol, TypeVar

from lowering.cuda.interface import Allocation, Driver, Event
from lowering.cuda.streams.in_flight import InFlightLaunch
from tracegraph.concurrency.weak_set import ConcurrentWeakSet


class Launches(Protocol):
    """A timeline: what it launches on, and its launches in flight."""

    driver: Driver
    in_flight: deque[InFlightLaunch]


_T = TypeVar("_T", bound=Launches)


class StopFlag(Generic[_T]):
    """The flag of one device. `lock` guards it, and the launches in flight of all timelines."""

    def __init__(self, driver: Driver) -> None:
        self.lock = threading.RLock()
        self.timelines: ConcurrentWeakSet[_T] = ConcurrentWeakSet()
        self._driver = driver
        self._word: Allocation | None = None
        self._up: list[Allocation] = []  # the words that are raised
        self._lowered: Event | None = None

    @property
    def word(self) -> Allocation:
        """The memory; loops run while it is zero."""
        with self.lock:
            if self._word is None:
                word = self._driver.allocate(4)
                self._driver.clear(word.pointer, 4)
                self._lowered = self._driver.record()
                self._word = word
            return self._word

    def all(self) -> list[_T]:
        """The timelines of the device's streams."""
        return list(self.timelines)

    def await_lowered(self, driver: Driver) -> None:
        """Let the stream of `driver` wait until the flag is down. Needs the lock."""
        if self._up:  # lowering it was interrupted
            self._lower()
        if self._lowered is None:
            return
        if self._lowered():
            self._lowered = None
        elif driver is not self._driver:
            driver.wait(self._lowered)

    def stop(
        self, reason: BaseException, *, at_once: bool = False
    ) -> tuple[list[InFlightLaunch], Event | None]:
        """End all loops in flight; returns those launches, and an event behind their end.

        Loops that devices leave together end behind the same step on all; `at_once`, this device
        leaves them alone.
        An interrupt at any point does not affect later launches.
        """
        with self.lock:
            in_flight = [
                pending
                for timeline in self.timelines
                for pending in timeline.in_flight
                if not pending.passed()
            ]
            if not in_flight:
                return [], None
            for pending in in_flight:
                pending.stop(reason)
            own = [pending.flag for pending in in_flight if pending.flag is not None]
            self._up = [self.word, *dict.fromkeys(own)]
            for word in self._up:
                self._driver.raise_flag(word.pointer, at_once=at_once)
            self._lower()
            return in_flight, self._lowered

    def _lower(self) -> None:
        for timeline in self.timelines:
            if timeline.driver is not self._driver and timeline.in_flight:
                self._driver.wait(timeline.driver.record())
        for word in self._up:
            self._driver.clear(word.pointer, 4)
        self._up = []
        self._lowered = self._driver.record()
