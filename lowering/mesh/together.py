"""How the executables of a mesh run together.

On the host, each device is a thread, and the thread of the caller is the first one, so that a
signal or a callback finds it. If one fails, those that wait for it end, too, and the caller gets
the first failure that is not of another's. Of several processes, each runs its own devices.

GPUs run by themselves: a thread launches the graph of each. What a launch waits for are launches
before, which all devices have. Nothing stops loops with collectives there: one device alone must
not leave them, and there is no step after which all would.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any

from lowering.mesh.meeting_of_processes import MeetingOfProcesses
from lowering.plan.calls.rendezvous import MeetingPlace, Rendezvous, place
from tracegraph import limits
from tracegraph.concurrency.each_in_a_thread import each_in_a_thread
from tracegraph.distributed.membership import peers
from tracegraph.errors import MeshDeviceError, PeerFailedError
from tracegraph.sharding.mesh import Mesh
from tracegraph.staging.interfaces import Executable

Arguments = Sequence[Sequence[Any]]
"""Those of each device."""

Results = list[Sequence[Any]]
"""Those of each device."""


def in_threads(devices: Sequence[Executable], mesh: Mesh, given: Arguments) -> Results:
    """Run each device in a thread, where collectives find a rendezvous."""
    rendezvous = _meeting_place(mesh)
    first = mesh.local_devices[0]
    results: list[Any] = [None] * len(given)
    failures: dict[int, BaseException] = {}

    def run(number: int) -> None:
        around = place.rendezvous, place.device
        place.rendezvous, place.device = rendezvous, first + number
        try:
            results[number] = devices[number].launch(given[number])
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
        in_order = [failure for _, failure in sorted(failures.items())]
        own = [failure for failure in in_order if not isinstance(failure, PeerFailedError)]
        raise (own or in_order)[0]
    return results


def _meeting_place(mesh: Mesh) -> MeetingPlace:
    """Where the devices meet in one launch."""
    channel = peers()
    if channel is None or mesh.processes == 1:
        return Rendezvous(mesh.shape)
    return MeetingOfProcesses(channel, mesh)


def launched(devices: Sequence[Executable], mesh: Mesh, given: Arguments) -> Results:
    """Launch the graph of each device.

    Raises:
        BaseException: why a device was not launched. If others were, a note says that they wait.
    """
    over: list[int] = []

    def launch(device: int) -> Sequence[Any]:
        results = devices[device](given[device])
        over.append(device)
        return results

    try:
        return each_in_a_thread([partial(launch, device) for device in range(len(given))])
    except BaseException as failure:
        if over and len(over) < len(given):
            failure.add_note(
                f"{len(over)} of the {len(given)} devices of {mesh} were launched, and wait for "
                "ever in the first collective of the program; end this process"
            )
        raise


def launched_to_the_end(
    devices: Sequence[Executable], mesh: Mesh, given: Arguments, *, name: str, verb: str
) -> Results:
    """Launch a program whose loops nothing stops.

    Raises:
        MeshDeviceError: there is a time limit.
    """
    if limits.deadline() is not None:
        raise MeshDeviceError(
            f"a time_limit cannot stop {name!r} on {mesh}: a loop of it holds a collective "
            f"({verb}), and a device that left the loop alone would leave the others waiting",
            "bound the loop by max_steps, and call the function outside of the time_limit; "
            'a mesh with device="host" obeys it',
        )
    return launched(devices, mesh, given)
