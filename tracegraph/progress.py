"""Progress of loops: a bar, or a callback.

Updates may come at any rate, from any place that knows the number of steps done. A number below the
last one means that the loop was entered again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import Source, user_source

INTERVAL = 0.5
"""Seconds between two lines of a bar that has no tqdm to draw it."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """A loop whose progress is shown: its name, and its number of steps if that is known.

    `callback(step, total)` is called instead of drawing a progress bar, if there is one.
    """

    label: str
    total: int | None
    callback: Callable[[int, int | None], object] | None
    source: Source | None

    def __str__(self) -> str:
        return repr(self.label)


class Bar(Protocol):
    """What shows the steps of one loop."""

    def update(self, step: int) -> None:
        """Show the number of steps done."""

    def close(self) -> None:
        """Show the last state, and end; may be called again."""


def monitor_of(
    construct: str, progress: Any, function: Callable[..., Any], total: int | None
) -> Monitor | None:
    """The monitor for an argument `progress`; `total` is the number of steps, if known.

    Raises:
        ProgressError: it is neither a bool, nor a string, nor a function.
    """
    if progress is False:
        return None
    label = progress if isinstance(progress, str) else errors.function_text(function)
    if progress is True or isinstance(progress, str):
        return Monitor(label, total, None, user_source())
    if not callable(progress):
        raise errors.ProgressError(construct, progress)
    return Monitor(label, total, progress, user_source())


def open_bar(monitor: Monitor) -> Bar:
    """The bar of a monitor: its callback, tqdm's bar, or without tqdm, lines on standard error."""
    if monitor.callback is not None:
        return _CallbackBar(monitor.callback, monitor.total)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _LineBar(monitor)
    return _TqdmBar(tqdm(desc=monitor.label, total=monitor.total))


@contextmanager
def watching(monitor: Monitor | None) -> Iterator[Callable[[int], None]]:
    """A function that takes the number of steps done while a loop runs; no-op without a monitor."""
    if monitor is None:
        yield lambda step: None
        return
    bar = open_bar(monitor)
    try:
        yield bar.update
    finally:
        bar.close()


_bars: ContextVar[dict[int, Bar] | None] = ContextVar("tracegraph_bars", default=None)


@contextmanager
def bars() -> Iterator[None]:
    """Keep the bars of a program's loops, from their first report to the end of the program."""
    opened: dict[int, Bar] = {}
    token = _bars.set(opened)
    try:
        yield
    finally:
        _bars.reset(token)
        for bar in opened.values():
            bar.close()


def report(monitor: Monitor, step: int) -> None:
    """Show the number of steps done, in the bar that the enclosing `bars` keeps for the monitor."""
    opened = _bars.get()
    if opened is None:
        with watching(monitor) as update:
            update(step)
        return
    if id(monitor) not in opened:
        opened[id(monitor)] = open_bar(monitor)
    opened[id(monitor)].update(step)


class _CallbackBar:
    def __init__(self, callback: Callable[[int, int | None], object], total: int | None) -> None:
        self._callback = callback
        self._total = total

    def update(self, step: int) -> None:
        self._callback(step, self._total)

    def close(self) -> None:
        pass


class _TqdmBar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def update(self, step: int) -> None:
        if step < self._bar.n:
            self._bar.reset(self._bar.total)
        self._bar.update(step - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _LineBar:
    """A line every `INTERVAL` seconds, and one at the end."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._step = 0
        self._shown: int | None = None
        self._due = time.monotonic() + INTERVAL

    def update(self, step: int) -> None:
        self._step = step
        if time.monotonic() >= self._due:
            self._show()
            self._due = time.monotonic() + INTERVAL

    def close(self) -> None:
        if self._step != self._shown:
            self._show()

    def _show(self) -> None:
        total = self._monitor.total
        of = "" if total is None else f"/{total}"
        print(f"{self._monitor.label}: {self._step}{of} steps", file=sys.stderr)
        self._shown = self._step
