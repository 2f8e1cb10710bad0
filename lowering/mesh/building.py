"""Builds of the graphs of all devices, which meet while they are made.

Each device has a thread, in which a library connects with the others, and runs their collectives
once. If one fails, or a process is lost, the others may wait for it inside of the library, where
nothing gets through to them but an abort.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from tracegraph.concurrency.interrupts import interrupts_held_back
from tracegraph.errors import PeerFailedError, PeerLostError

T = TypeVar("T")

LOOK_SECONDS = 0.05
"""How often devices are looked at."""

GRACE_SECONDS = 2.0
"""How long the others have after a failure to end by themselves: most often, all fail alike."""


def each_built(
    make: Callable[[int], T],
    count: int,
    look: Callable[[], None],
    meets: Callable[[], bool],
    abandon: Callable[[BaseException], None],
) -> list[T]:
    """What `make` gives for each number, all at the same time.

    If the others do not end after a failure, they are abandoned: then they may go on, and what they
    make is dropped. An interrupt waits until all are over, unless one of them waits for others.

    Args:
        make: called in a thread for each number.
        count: how many there are.
        look: called now and then; what it raises is a failure.
        meets: whether one of them waits inside of a library for others.
        abandon: called with the failure, once.

    Raises:
        BaseException: the failure: that of the first number, or else of `look`, or an interrupt.
    """
    made: dict[int, T] = {}
    failures: dict[int, BaseException] = {}

    def run(number: int) -> None:
        try:
            made[number] = make(number)
        except BaseException as failure:
            failures[number] = failure

    threads = [
        Thread(target=copy_context().run, args=(run, i), name=f"build {i}", daemon=True)
        for i in range(count)
    ]
    interrupts: list[BaseException] = []
    losses: list[BaseException] = []
    try:
        with interrupts_held_back():
            for thread in threads:
                thread.start()
    except BaseException as interrupt:
        interrupts.append(interrupt)
    threads = [thread for thread in threads if thread.ident is not None]
    failed_at: float | None = None
    while any(thread.is_alive() for thread in threads):
        try:
            for thread in threads:
                thread.join(LOOK_SECONDS / count)
            if not losses:
                look()
        except Exception as loss:
            losses.append(loss)
        except BaseException as interrupt:
            interrupts.append(interrupt)
        if failed_at is None and (failures or losses or (interrupts and meets())):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > GRACE_SECONDS:
            break
    own = [failures[number] for number in sorted(failures)]
    of_others = [failure for failure in own if isinstance(failure, PeerFailedError)]
    own = [failure for failure in own if failure not in of_others]
    if of_others and not losses:
        losses.append(PeerLostError(str(of_others[0])))
    for failure in (*interrupts, *own, *losses):
        abandon(failure)
        raise failure
    return [made[number] for number in range(count)]
