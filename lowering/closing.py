"""Closing what calls may be using: whether it is in use is asked of locks, and not waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import methodcaller
from threading import Lock

_take, _wait_for = methodcaller("acquire", False), methodcaller("acquire")
_release = methodcaller("release")


def held_if_free(locks: Sequence[Lock]) -> AbstractContextManager[bool]:
    """Hold those of the locks that are free; whether all of them were."""
    return _held(_take, locks)


def held(locks: Sequence[Lock]) -> AbstractContextManager[bool]:
    """Hold all of the locks, one after the other, once each is free."""
    return _held(_wait_for, locks)


@contextmanager
def _held(take: Callable[[Lock], bool], locks: Sequence[Lock]) -> Iterator[bool]:
    """Python looks for interrupts between calls of its own: so one call takes the locks and notes
    which, and one releases them all.
    """
    held: list[Lock] = []
    release = map(_release, held)
    try:
        held.extend(filter(take, locks))
        yield len(held) == len(locks)
    finally:
        deque(release, 0)
