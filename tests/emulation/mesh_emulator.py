"""A mesh of emulated devices: each runs its kernels in a thread, and they exchange arrays.

Collectives outside of kernels meet as on a mesh of the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tracegraph
from lowering.codegen import Unit, unit_source
from lowering.mesh.executable import MeshExecutable
from lowering.mesh.together import in_threads
from lowering.plan.calls.rendezvous import Rendezvous
from lowering.plan.plan import Plan
from tests.emulation.emulator import Emulator
from tests.emulation.plan_emulator import run_plan
from tracegraph import Mesh, shard, tree
from tracegraph.sharding.sharded_buffer import ShardedBuffer


class EmulatedDevice:
    """What a mesh asks of the executable of a device."""

    closed = False

    def __init__(self, plan: Plan, unit: Unit, emulator: Emulator) -> None:
        self.plan, self.unit, self.emulator = plan, unit, emulator
        self.order: Random | None = None

    def launch(self, arguments: Sequence[Any], donated: Any = None) -> list[np.ndarray[Any, Any]]:
        return run_plan(self.plan, self.unit, self.emulator, arguments, self.order)


class EmulatedMesh:
    """A function of blocks on a mesh of emulated GPUs."""

    def __init__(
        self, fun: Any, mesh: Mesh, in_specs: Any, out_specs: Any, *arguments: Any, folder: Path
    ) -> None:
        mapped = shard(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        traced = tracegraph.jit(mapped).trace(*arguments)
        self.plan, self._structure = traced.lower().plan, traced.out_structure
        unit = unit_source(self.plan)
        first = Emulator(unit, folder)
        others = [
            first.of_another_device(folder / f"device{number}.so") for number in range(1, mesh.size)
        ]
        emulators = [first, *others]
        _link(unit, emulators, mesh.shape)
        self._devices = [EmulatedDevice(self.plan, unit, emulator) for emulator in emulators]
        self._executable = MeshExecutable(self.plan, self._devices, in_threads)  # type: ignore[arg-type]

    def __call__(self, *arguments: Any, seed: int = 0) -> Any:
        """The results; with a seed, blocks are held up at random, and threads go backwards."""
        for number, device in enumerate(self._devices):
            device.emulator.hold_up(seed and 1000 * seed + number)
            device.order = Random(seed) if seed else None
        found = self._executable(tree.leaves(arguments))
        return tree.unflatten(self._structure, list(map(_whole, found)))


def _whole(buffer: ShardedBuffer) -> np.ndarray[Any, Any]:
    """The whole array; what several devices have is the same."""
    whole = np.empty(buffer.type.shape, buffer.type.dtype)
    for index, block in zip(buffer.indices, buffer.blocks, strict=True):
        whole[index] = block
    for index, block in zip(buffer.indices, buffer.blocks, strict=True):
        np.testing.assert_array_equal(whole[index], block)
    return whole


def _link(unit: Unit, emulators: Sequence[Emulator], axes: Mapping[str, int]) -> None:
    """Write the tables of devices."""
    lines = Rendezvous(axes)
    for node, code in unit.kernels.items():
        for table in code.peers:
            spaces = [emulator.workspace(node) for emulator in emulators]
            for device, space in enumerate(spaces):
                group = lines.group(device, table.axes)
                starts = [spaces[other].ctypes.data for other in group]
                words = np.array([group.index(device), *starts], np.uint64)
                space[table.offset : table.offset + words.nbytes] = words.view(np.uint8)
