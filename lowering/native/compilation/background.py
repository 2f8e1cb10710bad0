"""The thread that compiles while other code runs: one for the process, made when it is needed.

It is a daemon: a process that ends does not wait for its jobs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from lowering.native.compilation.llvm_turns import in_llvm

Job = Callable[[], object]


class Background:
    """Runs jobs one after the other, in the order in which they came.

    The result of a job lives until the next job is done: code that was replaced may run until then,
    and to free it, which has to wait for LLVM, is not left to the thread that runs it.

    A job that raises ends the thread, which reports it; the next job has a new thread.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def add(self, job: Job) -> None:
        """Run a job later, unless the process ends before that."""
        self._jobs.put(job)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._work, name="tracegraph compiler", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        replaced: object = None
        while True:
            job = self._jobs.get()
            following = job()
            with in_llvm():
                replaced = following  # noqa: F841
            del job, following


_of_process = [Background()]


def in_background(job: Job) -> None:
    """Run a job in the process's thread for that."""
    _of_process[0].add(job)


def _after_fork() -> None:
    """A child has no such thread, nor the jobs of its parent."""
    _of_process[0] = Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
