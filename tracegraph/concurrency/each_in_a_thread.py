"""Functions at the same time, each in a new thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def each_in_a_thread(functions: Sequence[Callable[[], T]]) -> list[T]:
    """The results of functions, each of which runs in a thread of its own.

    A driver has one current device in each thread: for several devices there are several threads.

    Raises:
        BaseException: what the first of them raises that fails, once all are over.

    >>> each_in_a_thread([lambda: 1, lambda: 2])
    [1, 2]
    """
    results: list[Any] = [None] * len(functions)
    failures: dict[int, BaseException] = {}

    def run(number: int) -> None:
        try:
            results[number] = functions[number]()
        except BaseException as failure:
            failures[number] = failure

    threads = [Thread(target=copy_context().run, args=(run, i)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[min(failures)]
    return results
