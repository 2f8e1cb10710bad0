"""Arrays in blocks of several processes, made whole in all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracegraph.distributed.membership import peers
from tracegraph.sharding.partition_spec import block_index
from tracegraph.sharding.sharded_buffer import ShardedBuffer

Index = tuple[slice, ...]


def gathered(buffer: ShardedBuffer) -> np.ndarray[Any, Any]:
    """The whole array. All processes take part, and each sends the blocks that no earlier one has.

    Raises:
        PeerLostError, DeadlockError: as `Channel.exchange`.
    """
    channel = peers()
    if channel is None or buffer.mesh.processes == 1 or not buffer.spec.axes:
        return buffer.to_host()
    type_, mesh = buffer.type, buffer.mesh
    own = dict(zip(mesh.local_devices, buffer.blocks_on_host(), strict=True))
    data = b"".join([own[i].tobytes() for i, _ in _holders(buffer) if i in own])
    what = f"all_gather_to_host of an array of {type_}"
    parts = channel.exchange(data, f"{what} over {mesh.device}{buffer.spec}", what)
    whole, taken = np.empty(type_.shape, type_.dtype), [0] * mesh.processes
    for device, index in _holders(buffer):
        process, block = mesh.process_of(device), whole[index]
        start = taken[process]
        found = np.frombuffer(parts[process], type_.dtype, block.size, start)
        whole[index] = found.reshape(block.shape)
        taken[process] = start + block.nbytes
    return whole


def _holders(buffer: ShardedBuffer) -> Iterator[tuple[int, Index]]:
    """The first device that has each block, and where that is."""
    seen = set()
    for device in range(buffer.mesh.size):
        index = block_index(buffer.mesh, buffer.spec, buffer.type.shape, device)
        if str(index) not in seen:
            seen.add(str(index))
            yield device, index
