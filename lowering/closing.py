"""Closing what calls may be using: whether it is in use is asked of locks, and not waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import methodcaller
from threading import Lock

_take, _release = methodcaller("acquire", False), methodcaller("release")


@contextmanager
def held_if_free(locks: Sequence[Lock]) -> Iterator[bool]:
    """Hold those of the locks that are free; whether all of them were.

    Python looks for interrupts between calls of its own: so one call takes the locks and notes
    which, and one releases them all.
    """
    held: list[Lock] = []
    release = map(_release, held)
    try:
        held.extend(filter(_take, locks))
        yield len(held) == len(locks)
    finally:
        deque(release, 0)
