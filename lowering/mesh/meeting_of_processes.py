"""Where the devices of a mesh meet that several processes share.

Devices of the host meet in collectives, those that are GPUs while their graphs are made.

Operands go to the first process and from there to the devices of the group, each of which computes
all results: they have the same operands in the same order, and so the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextvars import copy_context
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.plan.calls.rendezvous import Array, Arrival, Combine, Lines
from tracegraph.sharding.mesh import Mesh

if TYPE_CHECKING:
    from tracegraph.distributed.channel import Channel


class MeetingOfBuilds:
    """The `BuildMeeting` of processes with one device each, which learn by the `number` that one of
    them fails.
    """

    of_processes = True

    def __init__(self, channel: Channel, mesh: Mesh, program: str, number: int | None) -> None:
        self.group = Lines(mesh.shape).group
        self._channel, self._program, self._number = channel, program, number

    def gather(self, device: int, given: Any) -> list[Any]:
        """As `BuildMeeting`."""
        doing = f"the build of {self._program}"
        data = json.dumps(given).encode()
        found = self._channel.exchange(data, "memory of a build", doing, self._number)
        return [json.loads(each) for each in found]

    def fail(self, failure: BaseException) -> None:
        """Nothing: other processes learn of it from the code that ends the build."""


class MeetingOfProcesses:
    """The meeting place of one launch on the host."""

    def __init__(self, channel: Channel, mesh: Mesh) -> None:
        self.group = Lines(mesh.shape).group
        self._channel, self._mesh = channel, mesh
        self._launch = channel.new_launch()
        self._numbers = {device: count() for device in mesh.local_devices}
        # programs run in a context of their own, which knows no time limit of the caller
        self._contexts = {device: copy_context() for device in mesh.local_devices}

    def meet(self, device: int, arrival: Arrival, combine: Combine) -> None:
        """As `MeetingPlace`."""
        mesh, group = self._mesh, arrival.group
        number = next(self._numbers[device])
        data = b"".join([source.tobytes() for source in arrival.sources])
        meeting = f"{number} of launch {self._launch} on {mesh.device}: {arrival.text}"
        owners = [mesh.process_of(other) for other in group]
        parts = self._contexts[device].run(
            self._channel.meet, "device", device, group, owners, data, meeting, arrival.text,
            self._launch, len(mesh.local_devices),
        )  # fmt: skip
        sources = [_arrays(part, arrival.sources) for part in parts]
        own = combine(sources)[group.index(device)]
        for target, result in zip(arrival.targets, own, strict=True):
            target[...] = result

    def leave(self, device: int, failed: bool) -> None:
        """As `MeetingPlace`. A device that is done is not waited for: all have the same program."""
        if failed:
            self._channel.fail(self._launch, device)

    def check(self) -> None:
        """As `MeetingPlace`."""
        self._channel.check(self._launch, "a loop")


def _arrays(data: bytes, like: Sequence[Array]) -> list[Array]:
    """Arrays, one behind the other in bytes."""
    found, start = [], 0
    for array in like:
        flat = np.frombuffer(data, array.dtype, array.size, start)
        found.append(flat.reshape(array.shape))
        start += array.nbytes
    return found
