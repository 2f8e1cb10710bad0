"""Watcher: a thread that shows progress and prints of programs in flight.

The thread starts when there is something to watch, and ends when there is nothing left. It reads
counts that kernels keep in host memory, and never waits for the device.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.effects.print_ring import PrintRing
from lowering.cuda.interface import Driver
from tracegraph.errors import DeviceLostError
from tracegraph.generated.dataclass import dataclass
from tracegraph.progress import Bar, open_bar

INTERVAL = 0.1
"""Seconds between two looks."""


@dataclass(slots=True, eq=False)
class _Watch:
    """What is shown of one executable. `passed` says whether its last launch is over."""

    effects: Effects
    passed: Callable[[], bool]
    prints: PrintRing | None
    bars: list[Bar | None]
    shown: list[int]

    def counts(self) -> list[int]:
        """The steps that are counted by now."""
        return [self.effects.count(number) for number in range(len(self.bars))]

    def show(self, counts: list[int]) -> None:
        """Show what is new: what was printed, and counts."""
        if self.prints is not None:
            self.prints.show()
        for number, (monitor, steps) in enumerate(zip(self.effects.monitors, counts, strict=True)):
            if steps != self.shown[number]:
                bar = self.bars[number] or open_bar(monitor)
                self.bars[number], self.shown[number] = bar, steps
                bar.update(steps)

    def close(self, counts: list[int]) -> None:
        """Show the end."""
        self.show(counts)
        for bar in self.bars:
            if bar is not None:
                bar.close()


class Watcher:
    """The watches of one device.

    An exception of a callback ends its watch, and is raised by the next wait for the program.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = threading.RLock()
        # Held while something is shown. That calls the user's functions, which may launch, and
        # launches need the other lock.
        self._showing = threading.RLock()
        self._watches: dict[Effects, _Watch] = {}
        self._errors: dict[Effects, BaseException] = {}
        self._thread: threading.Thread | None = None

    def expect(self, effects: Effects) -> None:
        """Reset the counts for a launch that follows, unless one is being watched."""
        with self._lock:
            if effects not in self._watches:
                effects.reset_counts()

    def follow(
        self, effects: Effects, passed: Callable[[], bool], prints: PrintRing | None
    ) -> None:
        """Watch a launch until it has passed; launches of one executable share a watch."""
        with self._lock:
            watch = self._watches.get(effects)
            if watch is None:
                count = len(effects.monitors)
                watch = _Watch(effects, passed, prints, [None] * count, [0] * count)
                self._watches[effects] = watch
            watch.passed = passed
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="tracegraph-progress", daemon=True
                )
                self._thread.start()

    def finish(self, effects: Effects) -> None:
        """Show the end of launches that have passed, and raise what a callback raised."""
        with self._showing:
            watch = self._watches.get(effects)
            if watch is not None:
                self._close_passed(watch)
            with self._lock:
                error = self._errors.pop(effects, None)
        if error is not None:
            raise error

    def _run(self) -> None:
        self._driver.activate()
        with self._driver.beside_captures():
            while True:
                time.sleep(INTERVAL)
                self._look_at_all()  # in a call, which leaves no reference during the sleep
                with self._lock:
                    if not self._watches:
                        self._thread = None
                        return

    def _look_at_all(self) -> None:
        with self._lock:
            watches = list(self._watches.values())
        for watch in watches:
            with self._showing:
                self._look(watch)

    def _look(self, watch: _Watch) -> None:
        try:
            if self._close_passed(watch) or self._watches.get(watch.effects) is not watch:
                return
        except DeviceLostError:  # those who wait for the launch are told
            with self._lock:
                self._watches.pop(watch.effects, None)
            return
        try:
            watch.show(watch.counts())
        except Exception as error:
            self._fail(watch, error)

    def _close_passed(self, watch: _Watch) -> bool:
        """Show the end of a watch if its launches have passed; whether they have."""
        with self._lock:
            if not watch.passed() or self._watches.get(watch.effects) is not watch:
                return False
            del self._watches[watch.effects]
            counts = watch.counts()  # before a launch that follows resets them
        try:
            watch.close(counts)
        except Exception as error:
            self._fail(watch, error)
        return True

    def _fail(self, watch: _Watch, error: Exception) -> None:
        with self._lock:
            if self._watches.get(watch.effects) is watch:
                del self._watches[watch.effects]
            self._errors[watch.effects] = error
