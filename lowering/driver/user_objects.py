"""User objects: a graph owns what it points to, wherever it goes.

A user object lives until the last graph, executable and launch with a reference to it is gone. Then
the driver calls its destructor, on a thread that must neither call CUDA nor run Python. So the
destructor is ``sem_post`` of the C library: it posts a semaphore, and the next look at that, on a
Python thread, releases the owners. For a graph that was not given away that is at once, since the
driver calls the destructor when the graph is destroyed. While others live, a thread of our own
looks now and then, so that their owners go without a further call of this package.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.cuda.interface import LOOKED_AT
from lowering.driver.clean_up import freed
from lowering.driver.error_checks import called
from lowering.driver.foreign_captures import relaxed

_NO_SYNC = driver.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC

_SEMAPHORE_BYTES = 64
"""More than a ``sem_t`` has in any C library."""

LOOK_SECONDS = 0.1
"""Between two looks at the graphs that were given away: what they kept is free that soon."""

EXIT_SECONDS = 1.0
"""How long the end of the process waits for a look that has begun."""


class TiedGraph:
    """A complete graph that keeps alive what it points to.

    The graph has a reference to a user object, and so has this object. When this is collected, its
    reference and the graph are dropped; the owners go with them unless the graph was given away.
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
        """The graph. Whatever is made from it has a reference to the user object."""
        return self._held[0]

    @contextmanager
    def untied(self) -> Iterator[Any]:
        """The handle, while the graph has no reference: an executable made of it has none either.

        With one, the driver would count references at each launch. The executable has to hold this
        object instead.
        """
        graph = self.definition.handle
        called(driver.cuGraphReleaseUserObject, graph, self._user_object, 1)
        try:
            yield graph
        finally:
            _retain(graph, self._user_object)


class UserObjects:
    """Owners by the semaphore that is posted when they may be released.

    Semaphores are reused and never freed: the driver may call a destructor after Python has ended.

    Args:
        activate: called once in the thread that looks, before it releases anything.

    Raises:
        RuntimeError: the system has no POSIX semaphores.
    """

    def __init__(self, activate: Callable[[], object] = lambda: None) -> None:
        _libc()  # raises where there is none
        self._activate = activate
        self._watching = _thread.allocate_lock()  # held by the thread that looks
        # Held during a look, and for good once the process ends: the interpreter ends threads in
        # the middle of a call, and C++ code that frees an owner then calls std::terminate.
        self._looking = _thread.allocate_lock()
        atexit.register(self._looking.acquire, timeout=EXIT_SECONDS)
        self._owners: dict[int, Any] = {}
        self._left: deque[int] = deque()  # of graphs that Python has dropped, round robin
        self._unused: list[int] = []

    def tie(self, definition: GraphDefinition, owners: Any) -> TiedGraph:
        """Let a graph, and whatever is made of it, keep `owners` alive."""
        self.release(LOOKED_AT)
        semaphore = self._semaphore()
        destroy = driver.CUhostFn(ctypes.cast(_libc().sem_post, ctypes.c_void_p).value)
        try:
            user_object = called(driver.cuUserObjectCreate, semaphore, destroy, 1, _NO_SYNC)
        except BaseException:
            self._unused.append(semaphore)
            raise
        self._owners[semaphore] = owners
        tied = TiedGraph(definition, user_object, semaphore, self)
        _retain(definition.handle, user_object)
        return tied

    def leave(self, held: list[GraphDefinition], user_object: Any, semaphore: int) -> None:
        """Drop a graph, and its owners unless it was given away. Any thread may call it."""
        self._left.append(semaphore)  # before the destructor may run: see `_look`
        with relaxed():
            held.clear()
            released = driver.cuUserObjectRelease(user_object, 1)
        self._look(semaphore)
        if self._left and self._watching.acquire(blocking=False):
            # Not by `threading`, which waits for locks: a garbage collection may have called this.
            try:
                _thread.start_new_thread(self._watch, ())
            except RuntimeError:  # no thread starts any more when the process ends
                self._watching.release()
        freed("what a graph points to", "cuUserObjectRelease", released)

    def _watch(self) -> None:
        """Look at the graphs that were given away, until none is left."""
        with self._looking:
            self._activate()
        while True:
            time.sleep(LOOK_SECONDS)
            with self._looking:
                self.release()
            if self._left:
                continue
            self._watching.release()
            # One that was left just before found a thread and started none.
            if not self._left or not self._watching.acquire(blocking=False):
                return

    def release(self, most: int = sys.maxsize) -> None:
        """Release the owners of graphs that are gone. Any thread may call it, at any point.

        Looks at `most` of the graphs that were given away; the next call goes on behind them.
        """
        for _ in range(min(most, len(self._left))):
            try:
                semaphore = self._left[0]
            except IndexError:
                return  # another thread was faster
            self._left.rotate(-1)
            self._look(semaphore)

    def _look(self, semaphore: int) -> None:
        """Release the owners of a semaphore if it was posted.

        Several threads may look at one semaphore, even at one that was reused since a thread chose
        it. Exactly one of them sees the post, and finds the semaphore in `_left`, where it is put
        before it can be posted. So no lock is needed; and a garbage collection, which may call
        `leave` at any point, would deadlock on one.
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
    """Give a graph a reference to a user object."""
    called(driver.cuGraphRetainUserObject, graph, user_object, 1, 0)


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
