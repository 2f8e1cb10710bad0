"""Timeline: what was launched on a stream, how to wait for it, and how to stop it.

A launch with loops may run for ever. It is waited for by polling, so that an interrupt or a time
limit gets through; then a flag in device memory, which all loops read at each step, ends them. What
such a launch computed is no result: reading it raises.

Without loops in flight, waiting is one blocking call of the driver.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Any, Self

import numpy as np

from lowering.cuda.effects.effects import Effects
from lowering.cuda.effects.print_ring import PrintRing
from lowering.cuda.effects.progress import Watcher
from lowering.cuda.interface import Allocation, Driver, Event
from lowering.cuda.streams.in_flight import Flight
from lowering.cuda.streams.stop_flag import StopFlag
from tracegraph import limits
from tracegraph.errors import DeviceLostError

LONGEST_SLEEP = 1e-3
SLEEP_SHARE = 1 / 64
"""A wait sleeps for this share of the time that it has taken so far: it is late by no more. So it
spins while waking would take longer."""
WAKING_SECONDS = 60e-6
"""What a sleep takes longer than it was asked for: Linux adds 50 µs to all of them."""

MOST_QUEUED = 16
"""Launches behind a loop, after which the next one waits: a full queue would block signals, too.
Driver 580 was seen to block at the 28th graph behind one that runs."""

STAGED_BYTES = 64 << 10
"""Up to this size the driver takes over pageable memory at once; above, it waits for the stream."""


class Timeline:
    """The launches of one stream. Threads may use it concurrently.

    The streams of a device share a stop flag, the lock that guards it, a watcher, and the ring that
    programs print through: all belong to the timeline of the device's own stream, the `home`.
    """

    def __init__(self, driver: Driver, home: Self | None = None) -> None:
        self.driver = driver
        self.home = home or self
        self.watcher: Watcher = home.watcher if home else Watcher(driver)
        self.stopping: StopFlag = home.stopping if home else StopFlag(driver)
        self.flights: deque[Flight] = deque()
        self._lock = self.stopping.lock
        self._launched = 0
        self._queued = 0
        self._unheard: dict[Effects, None] = {}
        self._speaking: dict[Timeline, None] = {}  # others that stay until they are heard
        self.held: deque[tuple[Event, tuple[Any, ...]]] = deque()
        self._prints: PrintRing | None = None
        with self._lock:
            self.stopping.timelines.add(self)

    @property
    def stop_flag(self) -> Allocation:
        """The word that ends loops while it is not zero."""
        return self.stopping.word

    @property
    def prints(self) -> PrintRing:
        """The ring through which all programs of the device print."""
        with self._lock:
            home = self.home
            if home._prints is None:
                home._prints = PrintRing.allocate(home.driver)
            return home._prints

    @property
    def busy(self) -> bool:
        """Whether loops may be in flight."""
        return bool(self.flights)

    @property
    def unheard(self) -> bool:
        """Whether launches may have something to say."""
        return bool(self._unheard)

    @property
    def idle(self) -> bool:
        """Whether all has passed that `hold` was told of, and all loops have ended."""
        with self._lock:
            self._land(list(takewhile(Flight.passed, self.flights)))
            self._let_go()
            return not self.flights and not self.held

    # Launching

    def launch(
        self, start: Callable[[], None], effects: Effects | None, loops: bool, source: Flight | None
    ) -> Flight | None:
        """Launch by `start`; the flight that the results wait for.

        `source` is the flight that the arguments wait for.
        """
        self.make_room()
        with self._lock:
            self._land(list(takewhile(Flight.passed, self.flights)))
            self.stopping.await_lowered(self.driver)
            if effects is not None:
                self.watcher.expect(effects)
                self._unheard[effects] = None
                self._stay()
            self._queued += bool(self.flights)
            if not loops and not (effects is not None and effects.monitors):
                start()
                return source
            return self._launch_loops(start, effects)

    def make_room(self) -> None:
        """Wait if many launches are behind loops."""
        if self._queued >= MOST_QUEUED:
            self.settle()

    def _launch_loops(self, start: Callable[[], None], effects: Effects | None) -> Flight:
        """The flight is on record before it starts: an interrupt must not leave loops unseen."""
        flight = self._new_flight(effects, start)
        try:
            start()
        except Exception:
            self._land([flight])
            raise
        flight.passed()
        if effects is not None and effects.shows:
            self.watcher.follow(effects, flight.passed, self.home._prints)
        return flight

    def _new_flight(
        self, effects: Effects | None = None, start: Callable[[], None] | None = None
    ) -> Flight:
        self._launched += 1
        flight = Flight(self._launched, self.driver.record, effects, start)
        self.flights.append(flight)
        return flight

    def follow(self, event: Event, other: Timeline) -> Flight | None:
        """Let this stream wait for an event of another one.

        While loops are in flight there, work here has to be waited for as if it had loops, too: the
        flight to wait for, if so.
        """
        if event():
            return None
        self.driver.wait(event)
        if not other.busy:
            return None
        with self._lock:
            flight = self._new_flight()
            flight.passed()
            return flight

    def hold(self, event: Event, *owners: Any) -> None:
        """Keep objects until an event of this stream has passed."""
        with self._lock:
            self._let_go()
            self.held.append((event, owners))

    def let_go(self) -> None:
        """Hold no more what was to be kept until events that have passed."""
        if self.held:
            with self._lock:
                self._let_go()

    def _let_go(self) -> None:
        while self.held and self.held[0][0]():
            self.held.popleft()

    # Waiting

    def wait(self) -> None:
        """Wait for all that is on the stream, show what it printed, and raise what it reports.

        Raises:
            TimeLimitError: the time of a `time_limit` was up; loops were stopped.
            Exception: the first failure of a check in a program.
        """
        if not self.flights and not self._unheard:
            self.driver.activate()
            self.driver.synchronize()
            self.let_go()
            return
        unheard = self._take_unheard()
        try:
            self.settle()
        except BaseException:
            self._put_back(unheard)
            raise
        self._hear(unheard)

    def settle(self) -> None:
        """Wait for all that is on the stream; failures are left to be raised by the next `wait`.

        Raises:
            TimeLimitError: the time of a `time_limit` was up; loops were stopped.
        """
        self.driver.activate()
        if self.flights:
            self._poll()
        else:
            self.driver.synchronize()
        self.let_go()

    def loops_in_flight(self) -> bool:
        """Whether there are any on the streams of the device."""
        timelines = self.stopping.all()
        return not all(flight.passed() for t in timelines for flight in list(t.flights))

    def settle_loops(self) -> None:
        """Wait for the loops in flight on all streams of the device, as `settle` does."""
        for timeline in self.stopping.all():
            if timeline.busy:
                timeline.settle()

    def read(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Wait, and copy to a host array. Raises what `wait` does."""
        if self.flights or self._unheard:
            self.wait()
        self.driver.activate()
        self.driver.copy_to_host(target, pointer)
        self.let_go()

    def write(self, pointer: int, source: np.ndarray[Any, Any]) -> None:
        """Copy a host array, which may change as soon as this returns.

        Raises:
            TimeLimitError: as `settle`, where the copy has to wait.
        """
        if source.nbytes > STAGED_BYTES and self.flights:
            self.settle()
        if self.driver.copy_to_device(pointer, source):
            self.settle()

    def _poll(self) -> None:
        """Wait in Python, where signals are handled."""
        with self._lock:
            flights, passed = list(self.flights), self.driver.record()
        start, deadline = time.perf_counter(), limits.deadline()
        try:
            while not passed():
                if deadline is not None and time.monotonic() >= deadline:
                    raise limits.exceeded()
                if self.home._prints is not None:
                    self.home._prints.show()
                elapsed = time.perf_counter() - start
                pause = min(elapsed * SLEEP_SHARE, LONGEST_SLEEP) - WAKING_SECONDS
                if pause > 0:
                    time.sleep(pause)
        except DeviceLostError:
            raise  # nothing is left to be stopped
        except BaseException as reason:
            self.stop(reason)
            raise
        self._land(flights)

    def _land(self, flights: list[Flight]) -> None:
        with self._lock:
            for flight in flights:
                if not flight.over:
                    self.flights.remove(flight)
                    flight.land()
            if not self.flights:
                self._queued = 0

    # Stopping

    def stop(self, reason: BaseException) -> None:
        """End all loops in flight on the device, and wait until it is rid of them."""
        self.driver.activate()
        flights, ended = self.stopping.stop(reason)
        try:
            while ended is not None and not ended():
                time.sleep(LONGEST_SLEEP)
        finally:
            for flight in flights:
                if flight.effects is not None:
                    flight.effects.ignore_failure()
        for timeline in self.stopping.all():
            timeline._land([flight for flight in flights if flight in timeline.flights])

    # Hearing

    def last_words(self) -> list[BaseException]:
        """Show what launches that are over have left, and return what each would raise."""
        errors: list[BaseException] = []
        for effects in self._take_unheard():
            try:
                self._hear({effects: None})
            except BaseException as error:
                errors.append(error)
        return errors

    def _take_unheard(self) -> dict[Effects, None]:
        with self._lock:
            unheard, self._unheard = self._unheard, {}
            self.home._speaking.pop(self, None)
            return unheard

    def _put_back(self, unheard: dict[Effects, None]) -> None:
        with self._lock:
            self._unheard = unheard | self._unheard
            self._stay()

    def _stay(self) -> None:
        """Live on until all is heard, even if the stream is left."""
        if self._unheard and self is not self.home:
            self.home._speaking[self] = None

    def _hear(self, unheard: dict[Effects, None]) -> None:
        """Show and raise what launches that are over have left."""
        if not unheard:
            return
        remaining = dict(unheard)
        try:
            if self.home._prints is not None:
                self.home._prints.show()
                self.home._prints.warn_of_losses()
            for effects in unheard:
                del remaining[effects]
                self.watcher.finish(effects)
                effects.raise_failure()
        finally:
            self._put_back(remaining)
