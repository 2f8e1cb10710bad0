"""Work in several threads at once, and collections of garbage beside them."""

from __future__ import annotations

import gc
import threading
import time
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


def collect_garbage() -> None:
    """Collect all garbage, as `gc.collect`, which does nothing while another thread collects.

    The thread that compiles in the background collects, too, and may wait for LLVM meanwhile.
    """
    until = time.monotonic() + SECONDS
    while True:
        cycle: list[object] = []
        cycle.append(cycle)  # so that a collection finds something
        del cycle
        if gc.collect():
            return
        assert time.monotonic() < until, "another thread collects garbage without end"
        time.sleep(0.001)
