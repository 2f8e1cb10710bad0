"""Where a Plan's fixed memory lies: arena, constants, workspaces, and the slots of small inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lowering.buffer import Buffer
from lowering.codegen import Unit
from lowering.cuda.library import WORKSPACE_BYTES
from lowering.cuda.timeline import Timeline
from lowering.cuda.values import ValueSlot, slots_bytes
from lowering.plan import LibraryNode, Node, Plan, walk
from lowering.slots import SlotTable

ALIGNMENT = 256


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Addresses that never change.

    `addresses` has scratch and const buffers, and small inputs at their slots; `workspaces` the
    workspace of each kernel node that has one. All of it is in `slots`.
    """

    addresses: Mapping[Buffer, int]
    workspaces: Mapping[Node, int]
    values_address: int
    library_workspace: int
    slots: SlotTable
    nbytes: int


def place(
    plan: Plan, unit: Unit, values: Mapping[Buffer, ValueSlot], timeline: Timeline
) -> Placement:
    """Allocate a Plan's fixed memory in one piece, zero it, and upload the constants.

    Raises:
        MemoryError: the device has not enough memory.
    """
    offsets: dict[Buffer, int] = dict(plan.offsets)
    size = _aligned(plan.arena_bytes)
    for buffer, _ in plan.constants:
        offsets[buffer], size = size, size + _aligned(buffer.type.nbytes)
    values_offset, size = size, size + _aligned(slots_bytes(list(values.values())))
    for buffer, slot in values.items():
        offsets[buffer] = values_offset + slot.offset
    workspaces: dict[Node, int] = {}
    for node, code in unit.kernels.items():
        if code.workspace_bytes:
            workspaces[node], size = size, size + _aligned(code.workspace_bytes)
    zeroed = size
    library_offset = size
    if any(isinstance(node, LibraryNode) for node in walk(plan.graph)):
        size += WORKSPACE_BYTES

    slots = SlotTable()
    if not size:
        return Placement({}, {}, 0, 0, slots, 0)
    memory = timeline.driver.allocate(size)
    slots.retain(memory)
    if zeroed:
        timeline.driver.clear(memory.pointer, zeroed)
    for buffer, data in plan.constants:
        if data.nbytes:
            timeline.write(memory.pointer + offsets[buffer], np.ascontiguousarray(data))
    return Placement(
        addresses={buffer: memory.pointer + offset for buffer, offset in offsets.items()},
        workspaces={node: memory.pointer + offset for node, offset in workspaces.items()},
        values_address=memory.pointer + values_offset,
        library_workspace=memory.pointer + library_offset,
        slots=slots,
        nbytes=size,
    )


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
