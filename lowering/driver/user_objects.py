"""User objects: what a graph points to, owned by the graph itself, wherever it goes.

A user object lives until the last graph, executable and launch that has a reference to it is gone.
Then the driver calls its destructor, on a thread where neither CUDA may be called nor Python run.
So the destructor is ``sem_post`` of the C library: it counts up a semaphore, and the owners that
belong to it are released by the next look at it, in a thread of Python.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from functools import cache
from typing import Any

from cuda.bindings import driver

from lowering.driver.checks import check

_NO_SYNC = driver.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
_MOVE = driver.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE

_SEMAPHORE_BYTES = 64
"""More than a ``sem_t`` has in any C library."""


class UserObjects:
    """Owners by the semaphore that says when they are released.

    Semaphores are used again and never freed: the driver may call a destructor when Python is gone.
    """

    def __init__(self) -> None:
        self._owners: dict[int, Any] = {}
        self._turns: deque[int] = deque()  # the semaphores in the order in which they are looked at
        self._unused: list[int] = []

    def tie(self, graph: Any, owners: Any) -> None:
        """Let a graph, and whatever is made of it, keep `owners` alive."""
        self.release()
        semaphore = self._semaphore()
        self._owners[semaphore] = owners
        self._turns.append(semaphore)
        destroy = driver.CUhostFn(ctypes.cast(_libc().sem_post, ctypes.c_void_p).value)
        try:
            user_object = check(
                "cuUserObjectCreate", driver.cuUserObjectCreate(semaphore, destroy, 1, _NO_SYNC)
            )
        except BaseException:
            self._drop(semaphore)
            raise
        try:
            check(
                "cuGraphRetainUserObject",
                driver.cuGraphRetainUserObject(graph, user_object, 1, _MOVE),
            )
        except BaseException:
            driver.cuUserObjectRelease(user_object, 1)  # the destructor will be called
            raise

    def release(self, most: int = sys.maxsize) -> None:
        """Let go of the owners that no graph has any more. Any thread may call it, at any point.

        At `most` so many are looked at, others the next time.
        """
        for _ in range(min(most, len(self._turns))):
            try:
                semaphore = self._turns[0]
            except IndexError:
                return  # another thread was faster
            self._turns.rotate(-1)
            if _libc().sem_trywait(ctypes.c_void_p(semaphore)) == 0:
                self._drop(semaphore)

    def _drop(self, semaphore: int) -> None:
        self._turns.remove(semaphore)
        self._owners.pop(semaphore)
        self._unused.append(semaphore)

    def _semaphore(self) -> int:
        try:
            return self._unused.pop()
        except IndexError:
            address = int(_libc().calloc(1, _SEMAPHORE_BYTES))
            _libc().sem_init(ctypes.c_void_p(address), 0, 0)
            return address


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.calloc.restype = ctypes.c_void_p
    libc.calloc.argtypes = ctypes.c_size_t, ctypes.c_size_t
    return libc
