"""Peer links: kernels that exchange arrays with other devices find the memory of these in tables.

All devices of a mesh make their graphs at the same time, each in a thread or in a process. They
tell one another where the workspaces of such kernels are. Devices of one process have access to the
pools of one another. Of several processes, each opens the memory of the others, by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from lowering.codegen import Unit
from lowering.cuda.interface import Allocation, Driver, SharedAllocation
from lowering.plan.calls.rendezvous import BuildMeeting, place
from lowering.plan.nodes import Node
from tracegraph.errors import MeshDeviceError


def is_reached(unit: Unit) -> bool:
    """Whether kernels of other processes write to the workspaces of this unit."""
    meeting = place.peers
    return meeting is not None and meeting.of_processes and any(_exchanging(unit))


def _exchanging(unit: Unit) -> list[Node]:
    return [node for node, code in unit.kernels.items() if code.peers]


def link_peers(
    unit: Unit, workspaces: Mapping[Node, int], memory: Allocation | None, driver: Driver
) -> None:
    """Write the tables of devices, and wait until that, and all before it on the stream, is done.

    The workspaces are in the `memory`.

    Raises:
        MeshDeviceError: this thread makes no graph of a mesh.
        RuntimeError: devices cannot reach the memory of one another.
    """
    nodes = _exchanging(unit)
    if not nodes or memory is None:
        return
    meeting, device = place.peers, place.device
    if meeting is None:
        name = unit.kernels[nodes[0]].name
        raise MeshDeviceError(f"kernel {name} runs on the devices of a mesh, not on one alone")
    starts = [workspaces[node] for node in nodes]
    if meeting.of_processes:
        shared = cast(SharedAllocation, memory)  # as `is_reached` has said
        found = _opened(meeting, device, shared, starts, driver)
    else:
        found = _granted(meeting, device, starts, driver)
    for position, node in enumerate(nodes):
        for table in unit.kernels[node].peers:
            group = meeting.group(device, table.axes)
            words = [group.index(device), *[found[other][position] for other in group]]
            driver.copy_to_device(starts[position] + table.offset, np.array(words, np.uint64))
    driver.synchronize()
    meeting.gather(device, None)  # all have access, and none writes before the tables are there


def _granted(
    meeting: BuildMeeting, device: int, starts: Sequence[int], driver: Driver
) -> list[Sequence[int]]:
    """The workspaces of each device, which gets access to those of this one."""
    found = meeting.gather(device, (driver.ordinal, starts))
    others = [ordinal for number, (ordinal, _) in enumerate(found) if number != device]
    if others:
        driver.grant_access(others)
    return [each for _, each in found]


def _opened(
    meeting: BuildMeeting,
    device: int,
    memory: SharedAllocation,
    starts: Sequence[int],
    driver: Driver,
) -> list[Sequence[int]]:
    """The workspaces of each device, whose memory is opened."""
    offsets = [start - memory.pointer for start in starts]
    found: list[Sequence[int]] = []
    for number, (name, each) in enumerate(meeting.gather(device, (memory.name.hex(), offsets))):
        own = number == device
        base = memory.pointer if own else driver.open_shared(bytes.fromhex(name))
        found.append([base + offset for offset in each])
    return found
