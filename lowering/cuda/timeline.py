"""Timeline: what was launched on a device's stream, how to wait for it, and how to stop it.

A launch with loops may run for ever. It is waited for by polling, so that an interrupt or a time
limit gets through; then a flag in device memory, which all loops read at each step, ends them. What
such a launch computed is no result: reading it raises.

Without loops in flight, waiting is one blocking call of the driver.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import numpy as np

from lowering.cuda.effects import Effects
from lowering.cuda.flight import Flight
from lowering.cuda.interface import Allocation, Driver
from lowering.cuda.printing import PrintRing
from lowering.cuda.watching import Watcher
from tracegraph import limits

SPIN_SECONDS = 100e-6
LONGEST_SLEEP = 1e-3
SLEEP_SHARE = 1 / 32
"""A wait sleeps for this share of the time that it has taken so far: it is late by no more."""

MOST_QUEUED = 16
"""Launches behind a loop, after which the next one waits: a full queue would block signals, too.
Driver 580 was seen to block at the 28th graph behind one that runs."""

STAGED_BYTES = 64 << 10
"""Up to this size the driver takes over pageable memory at once; above, it waits for the stream."""


class Timeline:
    """The launches of one device. Threads may use it concurrently."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.watcher = Watcher(driver)
        self._lock = threading.RLock()
        self._flights: deque[Flight] = deque()
        self._launched = 0
        self._queued = 0
        self._unheard: dict[Effects, None] = {}
        self._stop_flag: Allocation | None = None
        self._flag_is_up = False
        self._prints: PrintRing | None = None

    @property
    def stop_flag(self) -> Allocation:
        """The word that ends loops while it is not zero."""
        with self._lock:
            if self._stop_flag is None:
                flag = self.driver.allocate(4)
                self.driver.clear(flag.pointer, 4)
                self._stop_flag = flag
            return self._stop_flag

    @property
    def prints(self) -> PrintRing:
        """The ring through which all programs of the device print."""
        with self._lock:
            if self._prints is None:
                self._prints = PrintRing.allocate(self.driver)
            return self._prints

    @property
    def busy(self) -> bool:
        """Whether loops may be in flight."""
        return bool(self._flights)

    # Launching

    def launch(
        self, start: Callable[[], None], effects: Effects | None, loops: bool, source: Flight | None
    ) -> Flight | None:
        """Launch by `start`; the flight that the results wait for.

        `source` is the flight that the arguments wait for.
        """
        if self._queued >= MOST_QUEUED:
            self.settle()
        with self._lock:
            self._land(list(takewhile(Flight.passed, self._flights)))
            if self._flag_is_up:
                self._lower_flag()
            if effects is not None:
                self.watcher.expect(effects)
                self._unheard[effects] = None
            self._queued += bool(self._flights)
            if not loops:
                start()
                return source
            return self._launch_loops(start, effects)

    def _launch_loops(self, start: Callable[[], None], effects: Effects | None) -> Flight:
        """The flight is on record before it starts: an interrupt must not leave loops unseen."""
        self._launched += 1
        flight = Flight(self._launched, self.driver.record, effects)
        self._flights.append(flight)
        try:
            start()
        except Exception:
            self._land([flight])
            raise
        flight.passed()
        if effects is not None and effects.shows:
            self.watcher.follow(effects, flight.passed, self._prints)
        return flight

    # Waiting

    def wait(self) -> None:
        """Wait for all that was launched, show what it printed, and raise what it reports.

        Raises:
            TimeLimitError: the time of a `time_limit` was up; loops were stopped.
            Exception: the first failure of a check in a program.
        """
        if not self._flights and not self._unheard:
            self.driver.activate()
            self.driver.synchronize()
            return
        unheard = self._take_unheard()
        try:
            self.settle()
        except BaseException:
            self._put_back(unheard)
            raise
        self._hear(unheard)

    def settle(self) -> None:
        """Wait for all that was launched; failures are left to be raised by the next `wait`.

        Raises:
            TimeLimitError: the time of a `time_limit` was up; loops were stopped.
        """
        self.driver.activate()
        if self._flights:
            self._poll()
        else:
            self.driver.synchronize()

    def read(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Wait, and copy to a host array. Raises what `wait` does."""
        if self._flights or self._unheard:
            self.wait()
        self.driver.activate()
        self.driver.copy_to_host(target, pointer)

    def write(self, pointer: int, source: np.ndarray[Any, Any]) -> None:
        """Copy a host array, which may change as soon as this returns.

        Raises:
            TimeLimitError: as `settle`, where the copy has to wait.
        """
        if source.nbytes > STAGED_BYTES and self._flights:
            self.settle()
        if self.driver.copy_to_device(pointer, source):
            self.settle()

    def finish(self) -> None:
        """Let what is in flight say what it has to, at the end of the process."""
        if self._unheard:
            self.wait()

    def _poll(self) -> None:
        """Wait in Python, where signals are handled."""
        with self._lock:
            flights, passed = list(self._flights), self.driver.record()
        start, deadline = time.perf_counter(), limits.deadline()
        try:
            while not passed():
                if deadline is not None and time.monotonic() >= deadline:
                    raise limits.exceeded()
                elapsed = time.perf_counter() - start
                if elapsed > SPIN_SECONDS:
                    if self._prints is not None:
                        self._prints.show()
                    time.sleep(min(elapsed * SLEEP_SHARE, LONGEST_SLEEP))
        except BaseException as reason:
            self._stop(reason)
            raise
        self._land(flights)

    def _land(self, flights: list[Flight]) -> None:
        with self._lock:
            for flight in flights:
                if not flight.over:
                    self._flights.remove(flight)
                    flight.land()
            if not self._flights:
                self._queued = 0

    # Stopping

    def _stop(self, reason: BaseException) -> None:
        """End all loops in flight, and wait until the device is free.

        The flag is cleared in stream order, behind all that it is to end: whatever interrupts this,
        later launches run as they should.
        """
        with self._lock:
            flights = [flight for flight in self._flights if not flight.passed()]
            if not flights:
                return
            for flight in flights:
                flight.stopped = type(reason).__name__
            self._flag_is_up = True
            self.driver.raise_flag(self.stop_flag.pointer)
            self._lower_flag()
            passed = self.driver.record()
        try:
            while not passed():
                time.sleep(LONGEST_SLEEP)
        finally:
            for flight in flights:
                if flight.effects is not None:
                    flight.effects.ignore_failure()
        self._land(flights)

    def _lower_flag(self) -> None:
        self.driver.clear(self.stop_flag.pointer, 4)
        self._flag_is_up = False

    # Hearing

    def _take_unheard(self) -> dict[Effects, None]:
        with self._lock:
            unheard, self._unheard = self._unheard, {}
            return unheard

    def _put_back(self, unheard: dict[Effects, None]) -> None:
        with self._lock:
            self._unheard = unheard | self._unheard

    def _hear(self, unheard: dict[Effects, None]) -> None:
        """Show and raise what launches that are over have left."""
        if not unheard:
            return
        remaining = dict(unheard)
        try:
            if self._prints is not None:
                self._prints.show()
                self._prints.warn_of_losses()
            for effects in unheard:
                del remaining[effects]
                self.watcher.finish(effects)
                effects.raise_failure()
        finally:
            self._put_back(remaining)
