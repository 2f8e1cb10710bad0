"""Time limits: how long programs may run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

from tracegraph.errors import TimeLimitError
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Limit:
    seconds: float
    deadline: float


_current: ContextVar[_Limit | None] = ContextVar("tracegraph_time_limit", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop the loops of programs that still run when the time is up.

    The time counts from when the block is entered. Every wait for a running program inside the
    block, and every loop that runs as plain Python, then raises. Of nested limits, the first to
    expire counts.

    Args:
        seconds: how long, in seconds.

    Raises:
        TypeError: `seconds` is not a number.
        ValueError: `seconds` is negative or NaN.
        TimeLimitError: from inside the block: the time is up, and a program has been stopped.

    >>> from tracegraph import while_loop
    >>> with time_limit(60):
    ...     while_loop(lambda n: n < 100, lambda n: 2 * n, 3)
    192
    """
    duration = _checked(seconds)
    around = _current.get()
    limit = _Limit(duration, time.monotonic() + duration)
    if around is not None and around.deadline < limit.deadline:
        limit = around
    token = _current.set(limit)
    try:
        yield
    finally:
        _current.reset(token)


def _checked(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        kind = type(seconds).__qualname__
        raise TypeError(f"time_limit: seconds must be a number, not an instance of {kind}")
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"time_limit: seconds must be at least 0, not {seconds}")
    return float(seconds)


def deadline() -> float | None:
    """When, on the clock of `time.monotonic`, running programs must be stopped; None: never."""
    limit = _current.get()
    return None if limit is None else limit.deadline


def exceeded() -> TimeLimitError:
    """The error for a program that was stopped because the time was up."""
    limit = _current.get()
    assert limit is not None, "there is a deadline"
    return TimeLimitError(limit.seconds)


def check() -> None:
    """Called by loops on the host, once a step.

    Raises:
        TimeLimitError: the time is up.
    """
    limit = _current.get()
    if limit is not None and time.monotonic() >= limit.deadline:
        raise TimeLimitError(limit.seconds)
