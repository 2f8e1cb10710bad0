"""Turns in LLVM: one thread at a time, and those that a caller waits for first.

Llvmlite has a lock of its own around each of its calls. To optimise a module is one call of up to
200 ms, which the thread in the background must not begin while a caller compiles.

The end of the process waits for the call of LLVM that runs, if one does: LLVM destroys its data
then, and would abort the process. No other begins.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class _Turns:
    def __init__(self) -> None:
        self.free = Condition()
        self.first = 0  # threads that wait and go first
        self.is_taken = self.is_over = False

    def take(self, first: bool) -> None:
        with self.free:
            self.first += first
            try:
                self.free.wait_for(lambda: not self.is_taken and (first or self._is_idle))
                self.is_taken = True
            finally:
                self.first -= first

    def give_back(self) -> None:
        with self.free:
            self.is_taken = False
            self.free.notify_all()

    @property
    def _is_idle(self) -> bool:
        return not self.first and not self.is_over

    def end(self) -> None:
        """Let no thread in but those that go first, and wait for the one that is there."""
        with self.free:
            self.is_over = True
            self.free.wait_for(lambda: not self.is_taken)


_of_process = [_Turns()]
"""The turns of this process: one in a list, for a child of it has others."""


@contextmanager
def first_in_llvm() -> Iterator[None]:
    """Within, this thread has LLVM to itself; it goes before those that use `in_llvm`."""
    yield from _turn(first=True)


@contextmanager
def in_llvm() -> Iterator[None]:
    """Within, this thread has LLVM to itself, once no other wants it."""
    yield from _turn(first=False)


def _turn(first: bool) -> Iterator[None]:
    turns = _of_process[0]
    turns.take(first)
    try:
        yield
    finally:
        turns.give_back()


def _before_fork() -> None:
    _of_process[0].take(first=True)


def _after_fork_in_parent() -> None:
    _of_process[0].give_back()


def _after_fork_in_child() -> None:
    _of_process[0] = _Turns()


# A child has this thread only: LLVM, and its lock, must not be in use by another one at the fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def _at_exit() -> None:
    _of_process[0].end()


atexit.register(_at_exit)
