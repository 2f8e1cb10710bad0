"""A process among the others: initialize, shutdown, and what they know."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracegraph.errors import ProcessGroupError
from tracegraph.errors.keywords import required_int, required_seconds
from tracegraph.errors.tracebacks import entry_point
from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from tracegraph.distributed.channel import Channel
    from tracegraph.distributed.launchers import Broadcast

__all__ = ["initialize", "is_initialized", "process_count", "process_index", "shutdown"]


@dataclass(slots=True)
class _Membership:
    index: int = 0
    count: int = 1
    local_index: int = 0
    local_devices: tuple[int, ...] | None = None
    channel: Channel | None = None
    settled: bool = False


_membership = _Membership()
"""This process among the others. It is settled once a mesh was made of what it says, or a GPU was
chosen.
"""


@entry_point
def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    *,
    broadcast: Broadcast | None = None,
    initialization_timeout: float = 300.0,
) -> None:
    """Join the processes of a job, so that meshes span the devices of all of them.

    All processes call it, before the first `Mesh` is made, and wait there for one another. Without
    arguments, who is who is told by mpi4py, if it has been imported, or by the environment
    variables of torchrun, mpirun or srun. If there are none, the process is alone, and nothing is
    done; so the same program runs alone and under a launcher.

    Args:
        coordinator_address: ``"host:port"``, where the first process listens. Needed if neither
            variables nor `broadcast` tell it. Whoever reaches that port can disturb the job: let
            it be in a network of your own.
        num_processes: how many there are; None: by the variables.
        process_id: the number of this one, from 0; None: by the variables.
        local_device_ids: the GPUs of this process, of those that it sees; None: all of them, if
            the launcher shows each process its own, else its share in the order of processes.
        broadcast: a function that returns the value that the first process has passed, in all;
            it tells them where the first one listens. For Dask, Ray, or an MPI of your own.
        initialization_timeout: how many seconds to wait for the others.

    Raises:
        TypeError: an argument is of another type.
        ValueError: a number of a GPU or of seconds is negative.
        ProcessGroupError: the numbers are missing or no numbers of processes, the first process
            is not reached, some do not come in time, or a mesh has been made or a GPU been used
            already.

    >>> initialize()  # alone
    >>> process_count()
    1
    """
    if _membership.channel is not None:
        raise ProcessGroupError("tracegraph.distributed.initialize() was called before")
    # these need sockets, which a process that is alone does not load
    from tracegraph.distributed.joining import joined
    from tracegraph.distributed.launchers import placed

    seconds = required_seconds("initialization_timeout", initialization_timeout)
    chosen = _ids(local_device_ids)
    found, told = placed(coordinator_address, num_processes, process_id, broadcast)
    _membership.local_devices = chosen
    if found.count == 1:
        return
    if _membership.settled:
        raise ProcessGroupError(
            "a Mesh was made, or a function compiled for the first GPU, before "
            "tracegraph.distributed.initialize(), as if this process were alone; call it first"
        )
    channel = joined(found, told, seconds)
    _membership.index, _membership.count = found.index, found.count
    _membership.local_index, _membership.channel = found.local_index, channel
    atexit.register(channel.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=channel.drop)


def is_initialized() -> bool:
    """Whether this process has joined others.

    >>> is_initialized()
    False
    """
    return _membership.channel is not None


def process_index() -> int:
    """The number of this process, from 0.

    >>> process_index()
    0
    """
    return _membership.index


def process_count() -> int:
    """How many processes there are.

    >>> process_count()
    1
    """
    return _membership.count


def shutdown() -> None:
    """Take leave of the others; meshes that span them cannot be used after that.

    The first process waits until all have done so. It is done when Python ends, if not before.

    >>> shutdown()  # nothing to do for a process that is alone
    """
    if _membership.channel is not None:
        _membership.channel.close()


def peers() -> Channel | None:
    """The channel to the other processes; None in a process that is alone."""
    return _membership.channel


def settled() -> tuple[int, int]:
    """The number of this process and how many there are, from now on for good."""
    _membership.settled = True
    return _membership.index, _membership.count


def own_device() -> int:
    """Which of the GPUs that it sees is that of this process, from now on for good.

    >>> own_device()
    0
    """
    settled()
    return local_device(0, 1)


def local_device(number: int, each: int) -> int:
    """Which of the GPUs that it sees this process takes for device `number` of its `each`.

    Raises:
        ProcessGroupError: `local_device_ids` has too few.
    """
    chosen = _membership.local_devices
    if chosen is not None:
        if len(chosen) < each:
            raise ProcessGroupError(
                f"a mesh has {each} devices in each process, but local_device_ids has {chosen}"
            )
        return chosen[number]
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(seen.split(",")) if seen else None
    # the launcher shows each process its own, or a machine has too few for all of its processes
    if count is not None and (count == each or count < _processes_here() * each):
        return number
    return _membership.local_index * each + number


def _processes_here() -> int:
    """How many processes are on this machine."""
    channel = _membership.channel
    return 1 if channel is None else channel.hosts.count(channel.hosts[_membership.index])


def _ids(local_device_ids: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if local_device_ids is None:
        return None
    ids = local_device_ids if isinstance(local_device_ids, Iterable) else (local_device_ids,)
    found = tuple([required_int("local_device_ids", n, "numbers of GPUs") for n in ids])
    if any(n < 0 for n in found):
        raise ValueError(f"local_device_ids must be numbers of GPUs, from 0, not {found}")
    return found
