"""Interrupts that come while something is done that must not be left half done."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` looks for names of handlers, for 8 µs
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGINT = int(signal.SIGINT)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, if it comes in this thread.

    >>> try:
    ...     with interrupts_held_back():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("this is still done")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    this is still done
    interrupted
    """
    handler = _signal.getsignal(_SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[FrameType | None] = []
    _signal.signal(_SIGINT, lambda _, frame: came.append(frame))
    try:
        yield
    finally:
        _signal.signal(_SIGINT, handler)
        if came:
            handler(signal.SIGINT, came[0])
