"""Launching the devices of a mesh: in one order in all threads, and with the host in the loops.

Programs of meshes that have devices in common must come to these in one order: else each device
would wait for one that runs the other program. So a launch, or a build, which also runs
collectives, has all of its devices for itself until the last one is launched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Lock, Thread
from typing import TypeVar

from lowering.cuda.streams.launched_together import LaunchedTogether
from tracegraph.concurrency.hold_ups import taking_part
from tracegraph.concurrency.interrupts import interrupts_held_back

T = TypeVar("T")

JOIN_SECONDS = 0.05
"""Python does not see a signal that came just before a wait: so waits are short."""

_devices: defaultdict[int, Lock] = defaultdict(Lock)
"""Who launches on a GPU, by its number in this process."""


def launchers(ordinals: Sequence[int]) -> Sequence[Lock]:
    """What a thread holds to be the only one that launches on these GPUs.

    They are taken in this order by all, so that none waits for who waits for it.
    """
    return [_devices[ordinal] for ordinal in sorted(ordinals)]


def each_driven(
    launch: Callable[[int], T], count: int, together: LaunchedTogether
) -> tuple[list[T], BaseException | None]:
    """Launch devices whose loops the host drives, each in a thread, as they wait for one another.

    If one fails, or this thread is interrupted, the others end where they wait.

    Returns:
        The results, and the first failure, if there is one; then some are missing.
    """
    results: dict[int, T] = {}
    failures: list[BaseException] = []

    def fail(failure: BaseException) -> None:
        failures.append(failure)
        together.failed = True

    def run(number: int) -> None:
        try:
            with taking_part():
                results[number] = launch(number)
        except BaseException as failure:
            fail(failure)

    threads = [
        Thread(target=copy_context().run, args=(run, i), name=f"device {i}", daemon=True)
        for i in range(count)
    ]
    try:
        with interrupts_held_back():
            for thread in threads:
                thread.start()
    except BaseException as interrupt:
        fail(interrupt)
    waiting = [thread for thread in threads if thread.ident is not None]
    while waiting:
        try:
            for thread in waiting:
                while thread.is_alive():
                    thread.join(JOIN_SECONDS)
            waiting = []
        except BaseException as interrupt:  # of several, the first one counts
            fail(interrupt)
    return [results[number] for number in sorted(results)], failures[0] if failures else None
