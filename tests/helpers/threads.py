"""Work in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

SECONDS = 120
"""More than any work takes: a thread that runs longer hangs."""


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Call `work` with each number below `count`, in threads that start together.

    What the first to fail raises is raised.
    """
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait(SECONDS)
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=[n], daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]
