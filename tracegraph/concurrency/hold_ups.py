"""Calls of a driver that wait for a device, and hold up all threads in the driver meanwhile.

They free, load or copy. While some devices of a mesh are launched and the others are not yet, the
first wait for the others; a call that waited for one of the first would hold up the launch of the
others, for ever. So such calls and launches exclude one another, in processes with a mesh of GPUs.
What is freed by a finalizer, which may run in any thread at any point, is put off.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, get_ident

from tracegraph.concurrency.locks import holding

_gate = Lock()
_through: set[int] = set()
"""The threads that hold the gate, or take part in a launch that does."""
_put_off: deque[Callable[[], object]] = deque()
_in_use = False
_NOTHING = nullcontext()
_holding_gate = holding(_gate)


def exclude_launches() -> None:
    """From now on, calls that hold up others exclude launches of meshes."""
    global _in_use  # noqa: PLW0603 - the driver is the process's
    _in_use = True


def alone_in_driver() -> AbstractContextManager[None]:
    """Within the block, a mesh is launched, or a call may wait for a device: one at a time.

    >>> with alone_in_driver(), alone_in_driver():
    ...     pass
    """
    return _alone() if _in_use and get_ident() not in _through else _NOTHING


@contextmanager
def _alone() -> Iterator[None]:
    try:
        with _holding_gate, taking_part():
            yield
    finally:
        _free()


@contextmanager
def taking_part() -> Iterator[None]:
    """Within the block, this thread is one of those that launch a mesh together."""
    _through.add(get_ident())
    try:
        yield
    finally:
        _through.discard(get_ident())


def free(call: Callable[[], object]) -> None:
    """Make a call that may wait for a device; if a mesh is launched just now, after that.

    What it raises then goes to `sys.unraisablehook`, as from a finalizer: it is made by a thread
    that has not asked for it.

    >>> free(lambda: print("freed"))
    freed
    """
    if not _in_use:
        call()
        return
    _put_off.append(call)
    _free(call)


def free_now() -> None:
    """Make the calls that were put off, also in a thread that launches: its devices have ended."""
    if get_ident() in _through:
        _drain()
    else:
        _free()


def _free(asked: Callable[[], object] | None = None) -> None:
    """What another thread puts off in the end, it frees itself, or finds that this one will."""
    while _put_off and _gate.acquire(blocking=False):
        try:
            _drain(asked)
        finally:
            _gate.release()


def _drain(asked: Callable[[], object] | None = None) -> None:
    """Make the calls that were put off. What the one that was asked for raises, is raised."""
    failure: Exception | None = None
    while _put_off:
        call = _put_off.popleft()
        if call is not asked:
            _as_finalizer(call)
            continue
        try:
            call()
        except Exception as error:
            failure = error
    if failure is not None:
        raise failure


class _Owner:
    """What a finalizer is of."""


def _as_finalizer(call: Callable[[], object]) -> None:
    owner = _Owner()
    reference = weakref.ref(owner, lambda _: call())
    del owner, reference
