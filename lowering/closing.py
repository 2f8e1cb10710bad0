"""Closing what calls may be using: whether it is in use is asked of locks, and not waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock


@contextmanager
def held_if_free(locks: Sequence[Lock]) -> Iterator[bool]:
    """Hold those of the locks that are free; whether all of them were."""
    held = [lock for lock in locks if lock.acquire(blocking=False)]
    try:
        yield len(held) == len(locks)
    finally:
        for lock in held:
            lock.release()
