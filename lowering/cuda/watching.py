"""Watcher: shows the progress of programs in flight, and what they print, from a thread.

The thread is started when there is something to watch, and ends when there is not. It reads counts
that kernels keep in host memory, and never waits for the device.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lowering.cuda.effects import Effects
from lowering.cuda.interface import Driver
from lowering.cuda.printing import PrintRing
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

    def look(self) -> None:
        """Show what is new."""
        if self.prints is not None:
            self.prints.show()
        for number, monitor in enumerate(self.effects.monitors):
            steps = self.effects.count(number)
            if steps != self.shown[number]:
                bar = self.bars[number] or open_bar(monitor)
                self.bars[number], self.shown[number] = bar, steps
                bar.update(steps)

    def close(self) -> None:
        """Show the end."""
        self.look()
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
        self._watches: dict[Effects, _Watch] = {}
        self._errors: dict[Effects, BaseException] = {}
        self._thread: threading.Thread | None = None

    def expect(self, effects: Effects) -> None:
        """Let the counts begin anew for a launch that follows, unless one is being watched."""
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
        with self._lock:
            watch = self._watches.get(effects)
            if watch is not None and watch.passed():
                self._close(watch)
            error = self._errors.pop(effects, None)
        if error is not None:
            raise error

    def _run(self) -> None:
        self._driver.activate()
        while True:
            time.sleep(INTERVAL)
            with self._lock:
                for watch in list(self._watches.values()):
                    self._look(watch)
                if not self._watches:
                    self._thread = None
                    return

    def _look(self, watch: _Watch) -> None:
        if watch.passed():
            self._close(watch)
            return
        try:
            watch.look()
        except Exception as error:
            self._fail(watch, error)

    def _close(self, watch: _Watch) -> None:
        self._watches.pop(watch.effects, None)
        try:
            watch.close()
        except Exception as error:
            self._fail(watch, error)

    def _fail(self, watch: _Watch, error: Exception) -> None:
        self._watches.pop(watch.effects, None)
        self._errors[watch.effects] = error
