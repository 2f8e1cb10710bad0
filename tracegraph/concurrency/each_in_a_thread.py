"""Functions at the same time, each in a new thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Event, Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")


def each_in_a_thread(functions: Sequence[Callable[[], T]], *, waits: bool = False) -> list[T]:
    """The results of functions, each of which runs in a thread of its own.

    A driver has one current device in each thread: for several devices there are several threads.

    Args:
        functions: what runs.
        waits: whether the functions do no more than wait. An interrupt then leaves them to it;
            else it is raised once all are over, so that none comes between what is done later.

    Raises:
        BaseException: what the first of them raises that fails, once all are over.

    >>> each_in_a_thread([lambda: 1, lambda: 2])
    [1, 2]
    """
    results: list[Any] = [None] * len(functions)
    failures: dict[int, BaseException] = {}
    begun, over = Lock(), Event()

    def run(number: int) -> None:
        try:
            results[number] = functions[number]()
        except BaseException as failure:
            failures[number] = failure

    threads = [Thread(target=copy_context().run, args=(run, i)) for i in range(len(functions))]

    def run_all() -> None:
        if not begun.acquire(blocking=False):
            return
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()

    # An interrupt comes to the main thread, and may come while that starts another one. So it
    # starts a single one: either all functions run, or none.
    starter = Thread(target=run_all)
    try:
        starter.start()
        while starter.is_alive():  # Python does not see a signal that came just before a wait
            starter.join(0.1)
    except BaseException:
        if not begun.acquire(blocking=False) and not waits:
            over.wait()
        raise
    if failures:
        raise failures[min(failures)]
    return results
