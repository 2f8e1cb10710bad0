"""Locks: a cheap ``with``, and holding several at once, to close what calls may be using."""

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
    """Hold the locks that are free; the value is whether all were."""
    return _held(_take, locks)


def held(locks: Sequence[Lock]) -> AbstractContextManager[bool]:
    """Hold all locks, waiting for one after the other."""
    return _held(_wait_for, locks)


@contextmanager
def _held(take: Callable[[Lock], bool], locks: Sequence[Lock]) -> Iterator[bool]:
    """An interrupt may come between any two calls. So one call takes the locks and notes them, and
    one call releases those noted.
    """
    held: list[Lock] = []
    release = map(_release, held)
    try:
        held.extend(filter(take, locks))
        yield len(held) == len(locks)
    finally:
        deque(release, 0)


class _Holding:
    """Bound methods as attributes: a ``with`` statement finds them without binding."""

    __slots__ = ("__enter__", "__exit__")

    def __init__(self, lock: Lock) -> None:
        methods: Any = self
        methods.__enter__, methods.__exit__ = lock.acquire, lock.__exit__


def holding(lock: Lock) -> AbstractContextManager[object, None]:
    """The lock for a ``with`` statement, which takes 110 ns with it and 170 with the lock itself.

    Acquiring it before a ``try`` would take 80 ns, but an interrupt between the two would leave it
    locked for good.
    """
    return cast(AbstractContextManager[object, None], _Holding(lock))
