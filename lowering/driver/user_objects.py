"""User objects: what a graph points to, owned by the graph itself, wherever it goes.

A user object lives until the last graph, executable and launch that has a reference to it is gone.
Then the driver calls its destructor, on a thread where neither CUDA may be called nor Python run.
So the destructor is ``sem_post`` of the C library: it counts up a semaphore, and the owners that
belong to it are released by the next look at it, in a thread of Python. For a graph that never left
tracegraph that is at once, for then the driver calls the destructor as the graph is destroyed.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.cuda.interface import LOOKED_AT
from lowering.driver.checks import check

_NO_SYNC = driver.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC

_SEMAPHORE_BYTES = 64
"""More than a ``sem_t`` has in any C library."""


class TiedGraph:
    """A complete graph that keeps alive what it points to.

    The graph has a reference to a user object, and this object has one: it keeps the owners, too.
    When it is collected, both are let go of, unless somebody else has the graph.
    """

    __slots__ = ("__weakref__", "_held", "_user_object")

    def __init__(
        self, definition: GraphDefinition, user_object: Any, semaphore: int, among: UserObjects
    ) -> None:
        self._held = [definition]
        self._user_object = user_object
        end = weakref.finalize(self, among.leave, self._held, user_object, semaphore)
        end.atexit = False  # the process's end frees it anyhow

    @property
    def definition(self) -> GraphDefinition:
        """The graph. What anybody makes of it has a part in the user object."""
        return self._held[0]

    @contextmanager
    def untied(self) -> Iterator[Any]:
        """The handle, while the graph has no reference: an executable made of it has none either.

        The driver counts references up and down at each launch of one that has. Whoever makes one
        without holds this object for as long as it lives.
        """
        graph = self.definition.handle
        check(
            "cuGraphReleaseUserObject",
            driver.cuGraphReleaseUserObject(graph, self._user_object, 1),
        )
        try:
            yield graph
        finally:
            _retain(graph, self._user_object)


class UserObjects:
    """Owners by the semaphore that says when they are released.

    Semaphores are used again and never freed: the driver may call a destructor when Python is gone.

    Raises:
        RuntimeError: the system has no POSIX semaphores.
    """

    def __init__(self) -> None:
        _libc()  # raises where there is none
        self._owners: dict[int, Any] = {}
        self._left: deque[int] = deque()  # those of graphs that Python has let go of, in turns
        self._unused: list[int] = []

    def tie(self, definition: GraphDefinition, owners: Any) -> TiedGraph:
        """Let a graph, and whatever is made of it, keep `owners` alive."""
        self.release(LOOKED_AT)
        semaphore = self._semaphore()
        destroy = driver.CUhostFn(ctypes.cast(_libc().sem_post, ctypes.c_void_p).value)
        try:
            user_object = check(
                "cuUserObjectCreate", driver.cuUserObjectCreate(semaphore, destroy, 1, _NO_SYNC)
            )
        except BaseException:
            self._unused.append(semaphore)
            raise
        self._owners[semaphore] = owners
        tied = TiedGraph(definition, user_object, semaphore, self)
        _retain(definition.handle, user_object)
        return tied

    def leave(self, held: list[GraphDefinition], user_object: Any, semaphore: int) -> None:
        """Let go of a graph, and of its owners if nobody else has it. Any thread may call it."""
        self._left.append(semaphore)  # before the destructor may count it up: see `_look`
        held.clear()
        driver.cuUserObjectRelease(user_object, 1)
        self._look(semaphore)

    def release(self, most: int = sys.maxsize) -> None:
        """Let go of the owners that no graph has any more. Any thread may call it, at any point.

        At `most` so many graphs that others have, or had, are looked at, more the next time.
        """
        for _ in range(min(most, len(self._left))):
            try:
                semaphore = self._left[0]
            except IndexError:
                return  # another thread was faster
            self._left.rotate(-1)
            self._look(semaphore)

    def _look(self, semaphore: int) -> None:
        """Release the owners of a semaphore that was counted up.

        Threads may look at one semaphore at a time, and a thread at one that others have used again
        meanwhile: one of them counts it down, and finds it in `_left`. A lock would not do, for
        `leave` may be called by a garbage collection in the middle of any of this.
        """
        if _libc().sem_trywait(ctypes.c_void_p(semaphore)) == 0:
            self._left.remove(semaphore)
            self._owners.pop(semaphore)
            self._unused.append(semaphore)

    def _semaphore(self) -> int:
        try:
            return self._unused.pop()
        except IndexError:
            address = int(_libc().calloc(1, _SEMAPHORE_BYTES))
            _libc().sem_init(ctypes.c_void_p(address), 0, 0)
            return address


def _retain(graph: Any, user_object: Any) -> None:
    """Give a graph a reference."""
    check("cuGraphRetainUserObject", driver.cuGraphRetainUserObject(graph, user_object, 1, 0))


@cache
def _libc() -> ctypes.CDLL:
    if sys.platform == "win32":
        raise RuntimeError(
            "the CUDA backend needs a POSIX system: CUDA releases what graphs point to through "
            "sem_post of the C library; on Windows, run under WSL 2"
        )
    libc = ctypes.CDLL(None)
    libc.calloc.restype = ctypes.c_void_p
    libc.calloc.argtypes = ctypes.c_size_t, ctypes.c_size_t
    return libc
