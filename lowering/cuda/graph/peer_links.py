"""Peer links: kernels that exchange arrays with other devices find the memory of these in tables.

All devices of a mesh make their graphs at the same time, each in a thread. They tell one another
where the workspaces of such kernels are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lowering.codegen import Unit
from lowering.cuda.interface import Driver
from lowering.plan.calls.rendezvous import place
from lowering.plan.nodes import Node
from tracegraph.errors import MeshDeviceError


def link_peers(unit: Unit, workspaces: Mapping[Node, int], driver: Driver) -> None:
    """Write the tables of devices, and wait until that, and all before it on the stream, is done.

    Raises:
        MeshDeviceError: this thread makes no graph of a mesh.
        RuntimeError: devices cannot reach the memory of one another.
    """
    exchanging = [(workspaces[node], code) for node, code in unit.kernels.items() if code.peers]
    if not exchanging:
        return
    meeting, device = place.peers, place.device
    if meeting is None:
        name = exchanging[0][1].name
        raise MeshDeviceError(f"kernel {name} runs on the devices of a mesh, not on one alone")
    found = meeting.gather(device, (driver.ordinal, [start for start, _ in exchanging]))
    others = [ordinal for number, (ordinal, _) in enumerate(found) if number != device]
    if others:
        driver.grant_access(others)
    for position, (start, code) in enumerate(exchanging):
        for table in code.peers:
            group = meeting.group(device, table.axes)
            starts = [found[other][1][position] for other in group]
            words = np.array([group.index(device), *starts], np.uint64)
            driver.copy_to_device(start + table.offset, words)
    driver.synchronize()
    meeting.gather(device, None)  # access is granted by all
