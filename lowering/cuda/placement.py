"""Where a Plan's fixed memory lies: arena, constants, workspaces, and the slots of small inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lowering.buffer import Buffer
from lowering.codegen import Unit
from lowering.cuda.device import OpenDevice
from lowering.cuda.interface import Allocation
from lowering.cuda.library import WORKSPACE_BYTES
from lowering.cuda.memory import Lease
from lowering.cuda.values import ValueSlot, slots_bytes
from lowering.plan import LibraryNode, Node, Plan, walk
from lowering.slots import SlotTable

ALIGNMENT = 256


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Addresses that never change.

    `addresses` has scratch and const buffers, and small inputs at their slots; `workspaces` the
    workspace of each kernel node that has one. All of it is in `slots`, and listed in `memory`.
    `warm_up`, a workspace and room for any product's target, is for use outside the graph.
    """

    addresses: Mapping[Buffer, int]
    workspaces: Mapping[Node, int]
    values_address: int
    library_workspace: int
    slots: SlotTable
    memory: tuple[Allocation, ...]
    warm_up: Lease | None


def place(
    plan: Plan, unit: Unit, values: Mapping[Buffer, ValueSlot], device: OpenDevice, *, share: bool
) -> Placement:
    """Allocate a Plan's fixed memory, clear counters and values, and upload the constants.

    With `share`, scratch lies in an arena that other executables use, too: a launch must then be
    over before another one starts. Kernels' workspaces keep their counters between launches, and
    are never shared.

    Raises:
        OutOfMemoryError: the device has not enough memory.
    """
    fixed: dict[Buffer, int] = {}
    size = 0
    for buffer, _ in plan.constants:
        fixed[buffer], size = size, size + _aligned(buffer.type.nbytes)
    values_offset, size = size, size + _aligned(slots_bytes(list(values.values())))
    for buffer, slot in values.items():
        fixed[buffer] = values_offset + slot.offset
    workspaces: dict[Node, int] = {}
    for node, code in unit.kernels.items():
        if code.workspace_bytes:
            workspaces[node], size = size, size + _aligned(code.workspace_bytes)

    products = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    scratch = _aligned(plan.arena_bytes)
    arena_bytes = scratch + (WORKSPACE_BYTES if products else 0)
    allocate_arena = device.arenas.shared if share else device.arenas.private
    arena = allocate_arena(arena_bytes) if arena_bytes else None
    memory = device.heap.allocate(size, "constants") if size else None
    slots = SlotTable()
    slots.retain(arena, memory)
    base = memory.pointer if memory else 0
    arena_base = arena.pointer if arena else 0
    if size > values_offset:
        device.driver.clear(base + values_offset, size - values_offset)
    for buffer, data in plan.constants:
        if data.nbytes:
            device.timeline.write(base + fixed[buffer], np.ascontiguousarray(data))
    addresses = {buffer: arena_base + offset for buffer, offset in plan.offsets.items()}
    addresses |= {buffer: base + offset for buffer, offset in fixed.items()}
    return Placement(
        addresses=addresses,
        workspaces={node: base + offset for node, offset in workspaces.items()},
        values_address=base + values_offset,
        library_workspace=arena_base + scratch,
        slots=slots,
        memory=tuple(piece for piece in (arena, memory) if piece is not None),
        warm_up=_warm_up(products, device),
    )


def _warm_up(products: Sequence[LibraryNode], device: OpenDevice) -> Lease | None:
    """Memory that products run in once, not in the arena: another thread may launch meanwhile."""
    if not products:
        return None
    target = max(node.target.buffer.type.nbytes for node in products)
    return device.pool.take(WORKSPACE_BYTES + target)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
