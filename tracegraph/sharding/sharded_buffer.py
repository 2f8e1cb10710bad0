"""ShardedBuffer: the memory of an Array that the devices of a mesh have in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.concurrency.each_in_a_thread import each_in_a_thread
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.sharding.mesh import Mesh
from tracegraph.sharding.partition_spec import PartitionSpec, block_index

NDArray = np.ndarray[Any, Any]


@record
class ShardedBuffer:
    """An array of a type, divided over a mesh by a spec; `blocks` has those of the devices of this
    process, in host memory or on GPUs.
    """

    type: ArrayType
    mesh: Mesh
    spec: PartitionSpec
    blocks: Sequence[Any]

    @property
    def device(self) -> str:
        """The mesh."""
        return self.mesh.device

    @property
    def where(self) -> str:
        """The mesh and the spec, which say where each element is."""
        return sharded_place(self.mesh, self.spec)

    @property
    def indices(self) -> list[tuple[slice, ...]]:
        """Where the blocks of this process are in the array."""
        return indices(self.mesh, self.spec, self.type.shape)

    @property
    def is_whole(self) -> bool:
        """Whether the devices of this process have all of its elements."""
        mesh = self.mesh
        if mesh.processes == 1:
            return True
        here, everywhere = (
            {str(block_index(mesh, self.spec, self.type.shape, device)) for device in devices}
            for devices in (mesh.local_devices, range(mesh.size))
        )
        return here == everywhere

    def to_host(self) -> NDArray:
        """The whole array, as a copy.

        Raises:
            NotAddressableError: other processes have parts of it.
        """
        if not self.is_whole:
            raise errors.NotAddressableError(f"Array of {self.type}", str(self.mesh))
        whole = np.empty(self.type.shape, self.type.dtype)
        for index, block in zip(self.indices, self.blocks_on_host(), strict=True):
            whole[index] = block
        return whole

    def blocks_on_host(self) -> Sequence[NDArray]:
        """The blocks of this process, in host memory."""
        if self._on_host:
            return self.blocks
        self.synchronize()
        return each_in_a_thread([block.to_host for block in self.blocks], waits=True)

    def synchronize(self) -> None:
        """Wait for all blocks, in this thread, where interrupts arrive.

        Raises:
            Exception: what the program reports, with a note that names the device.
        """
        failures = []
        on_gpus = [] if self._on_host else zip(self.mesh.local_devices, self.blocks, strict=True)
        for device, block in on_gpus:
            try:
                block.synchronize()
            except errors.TimeLimitError:
                raise  # all devices were stopped
            except Exception as failure:
                failure.add_note(f"on device {device} of {self.mesh}")
                failures.append(failure)
        if failures:
            raise failures[0]

    @property
    def _on_host(self) -> bool:
        return self.mesh.kind == "host"

    @property
    def pointer(self) -> int:
        """Raise ShardingError: it has one for each block."""
        raise errors.ShardingError(
            f"an Array of {self.type} that is divided over {self.mesh} has no single address; take "
            "its blocks, x.addressable_shards[i].data"
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("an Array in blocks has no __cuda_array_interface__; its shards may")

    def hand_over(self, stream: int) -> None:
        """Raise ShardingError: it is on several devices."""
        raise errors.ShardingError(f"an Array of {self.type} is divided over {self.mesh}")


def indices(mesh: Mesh, spec: PartitionSpec, shape: Sequence[int]) -> list[tuple[slice, ...]]:
    """Where the blocks of this process are in an array of this shape."""
    return [block_index(mesh, spec, shape, device) for device in mesh.local_devices]


def sharded_place(mesh: Mesh, spec: PartitionSpec) -> str:
    """A mesh and a spec as the place of an Array."""
    return f"{mesh.device}{spec}"
