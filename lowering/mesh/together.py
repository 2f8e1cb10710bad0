"""How the executables of a mesh of the host run together.

Each device is a thread, and the thread of the caller is the first one, so that a signal or a
callback finds it. If one fails, those that wait for it end, too, and the caller gets the first
failure that is not of another's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from threading import Thread
from typing import Any

from lowering.plan.calls.rendezvous import Rendezvous, place
from tracegraph.errors import PeerFailedError
from tracegraph.sharding.mesh import Mesh
from tracegraph.staging.interfaces import Executable

Arguments = Sequence[Sequence[Any]]
"""Those of each device."""

Results = list[Sequence[Any]]
"""Those of each device."""


def in_threads(devices: Sequence[Executable], mesh: Mesh, given: Arguments) -> Results:
    """Run each device in a thread, where collectives find a rendezvous."""
    rendezvous = Rendezvous(mesh.shape)
    results: list[Any] = [None] * len(given)
    failures: dict[int, BaseException] = {}

    def run(device: int) -> None:
        around = place.rendezvous, place.device
        place.rendezvous, place.device = rendezvous, device
        try:
            results[device] = devices[device].launch(given[device])
        except BaseException as failure:
            failures[device] = failure
        finally:
            place.rendezvous, place.device = around
            rendezvous.leave(device, device in failures)

    threads = [
        Thread(target=copy_context().run, args=(run, device), name=f"device {device}")
        for device in range(1, len(given))
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
        rendezvous.leave(0, True)
        for thread in started:
            thread.join()
        raise
    if failures:
        own = [f for _, f in sorted(failures.items()) if not isinstance(f, PeerFailedError)]
        raise own[0]
    return results
