"""Ticket: a wait for what other processes say."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence

from tracegraph import limits

_STEP = 0.1
"""Seconds between looks at the time limit in a wait."""

PATIENCE = 60.0
"""Seconds of a wait, after which a warning says what other processes do."""

Failure = Callable[[str], BaseException]
"""From what a process was in when it happened to the error."""


class Ticket:
    """A wait, perhaps as a part of a launch: its answer, or why there is none.

    `rows` is what other processes do, if that was asked for.
    """

    __slots__ = ("_data", "_failure", "_over", "launch", "rows")

    def __init__(self, launch: int | None = None) -> None:
        self.launch = launch
        self.rows: Sequence[str] = ()
        self._over = threading.Event()
        self._data: Sequence[bytes] = ()
        self._failure: Failure | None = None

    def answer(self, data: Sequence[bytes]) -> None:
        """End the wait."""
        if not self._over.is_set():
            self._data = data
            self._over.set()

    def fail(self, failure: Failure) -> None:
        """End the wait by an error."""
        if not self._over.is_set():
            self._failure = failure
            self._over.set()

    def wait(self, text: str, ask: Callable[[], None]) -> Sequence[bytes]:
        """The answer. `text` is what is waited for, and `ask` asks once what others do meanwhile.

        Raises:
            TimeLimitError: the time of a `time_limit` was up.
            BaseException: that by which it was ended.
        """
        asking: float | None = time.monotonic() + PATIENCE
        while not self._over.wait(_STEP):
            limits.check()
            if asking is not None and time.monotonic() > asking:
                asking = None
                ask()
            if self.rows:
                rows, self.rows = self.rows, ()
                _warn(text, rows)
        if self._failure is not None:
            raise self._failure(text)
        return self._data

    def wait_for_any(self) -> None:
        """Wait for an answer or an error, whatever it is."""
        self._over.wait()


def _warn(text: str, rows: Sequence[str]) -> None:
    lines = "".join(f"\n  {row}" for row in rows)
    warnings.warn(
        f"processes have waited {PATIENCE:g} s for one another in {text}; all of them must call "
        f"the same functions, in the same order. What they do:{lines}",
        RuntimeWarning,
        stacklevel=2,
    )
