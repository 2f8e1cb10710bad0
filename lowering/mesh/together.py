"""How the executables of a mesh of the host run together.

Each device is a thread, and the thread of the caller is the first one, so that a signal or a
callback finds it. If one fails, those that wait for it end, too, and the caller gets the first
failure that is not of another's. Of several processes, each runs its own devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from threading import Thread
from typing import Any

from lowering.mesh.meeting_of_processes import MeetingOfProcesses
from lowering.plan.calls.rendezvous import MeetingPlace, Rendezvous, place
from tracegraph.distributed.membership import peers
from tracegraph.errors import PeerFailedError, TimeLimitError
from tracegraph.sharding.mesh import Mesh
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.interfaces import Executable

Arguments = Sequence[Sequence[Any]]
"""Those of each device."""

Results = list[Sequence[Any]]
"""Those of each device."""


def in_threads(
    devices: Sequence[Executable],
    mesh: Mesh,
    given: Arguments,
    donated: Sequence[Donated | None],
) -> Results:
    """Run each device in a thread, where collectives find a rendezvous."""
    rendezvous = _meeting_place(mesh)
    first = mesh.local_devices[0]
    results: list[Any] = [None] * len(given)
    failures: dict[int, BaseException] = {}

    def run(number: int) -> None:
        around = place.rendezvous, place.device
        place.rendezvous, place.device = rendezvous, first + number
        try:
            results[number] = devices[number].launch(given[number], donated[number])
        except BaseException as failure:
            failures[number] = failure
        finally:
            place.rendezvous, place.device = around
            rendezvous.leave(first + number, number in failures)

    threads = [
        Thread(target=copy_context().run, args=(run, number), name=f"device {first + number}")
        for number in range(1, len(given))
    ]
    started: list[Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        run(0)
        for thread in threads:
            thread.join()
    except BaseException:  # an interrupt before the first device runs, or after it
        rendezvous.leave(first, True)
        for thread in started:
            thread.join()
        raise
    if failures:
        own = [n for n, failure in failures.items() if not isinstance(failure, PeerFailedError)]
        number = min(own or failures)
        failure = failures[number]
        if isinstance(failure, Exception) and not isinstance(failure, TimeLimitError):
            failure.add_note(f"on device {first + number} of {mesh}")
        raise failure
    return results


def _meeting_place(mesh: Mesh) -> MeetingPlace:
    """Where the devices meet in one launch."""
    channel = peers()
    if channel is None or mesh.processes == 1:
        return Rendezvous(mesh.shape)
    return MeetingOfProcesses(channel, mesh)
