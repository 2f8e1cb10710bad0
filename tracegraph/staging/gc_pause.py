"""Pause of Python's garbage collector, where collections cost time or may wait for the device.

Planning makes many objects that stay alive, and no cycles. Collections meanwhile traverse all of
them and free nothing: for a program of 10,000 equations they took a fifth of the time. Imports and
the making of a graph do likewise: one collection, of what a process has imported, takes 25 ms.

What a collection frees may be freed by the driver, which then waits for the device: what this
package holds there, and any other. In a thread that the device waits for, neither would go on. A
collection runs in whichever thread is due, so none may run as long as the device may wait.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()  # a collection may begin inside, and a finalizer pause again
_inside = 0
_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """Disable automatic collections in all threads; the last one that leaves enables them.

    They stay disabled if they were before.

    >>> with paused(), paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    begin()
    try:
        yield
    finally:
        end()


def count_as_old() -> None:
    """Let only full collections traverse what there is now.

    Imports make objects that stay. The first collection behind them would traverse all, and find
    none to free.
    """
    if not gc.get_freeze_count():  # else somebody has frozen objects, and they must stay so
        gc.freeze()
        gc.unfreeze()  # they are in the oldest generation then


def begin() -> None:
    """Begin a pause, which any thread may `end`."""
    global _inside, _enabled  # noqa: PLW0603 - the collector is the process's, too
    with _lock:
        if _inside == 0:
            _enabled = gc.isenabled()
            gc.disable()
        _inside += 1


def end() -> None:
    """End a pause that has begun."""
    global _inside  # noqa: PLW0603 - as in `begin`
    with _lock:
        _inside -= 1
        if _inside == 0 and _enabled:
            gc.enable()
