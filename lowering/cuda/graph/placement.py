"""Placement: the addresses of a Plan's fixed memory, from the arena to the pointer table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.codegen import Unit
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.node_owners import allocation
from lowering.cuda.graph.pointer_table import table_bytes
from lowering.cuda.graph.small_inputs import ValueSlot, slots_bytes
from lowering.cuda.interface import Allocation, Event, GraphMemory
from lowering.cuda.libraries.library_calls import (
    PreparedCalls,
    captured,
    outside,
    workspace_offsets,
)
from lowering.cuda.libraries.pointer_arrays import pointers_bytes
from lowering.cuda.libraries.recapture import placeholder_bytes
from lowering.cuda.memory.pool import PooledMemory
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.stream_state import StreamState
from lowering.plan.launch_graph import moving_buffers, moving_calls, recaptured_calls
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import LibraryNode, Node
from lowering.plan.owners import SlotTable
from lowering.plan.plan import Plan
from lowering.plan.target.hardware import ALIGNMENT


@dataclass(frozen=True, slots=True, eq=False)
class Constants:
    """The constants of a Plan in device memory, which graphs of all streams read.

    `ready` is the event behind the copies that fill them, on the default stream.
    """

    addresses: Mapping[Buffer, int]
    memory: Allocation | None
    ready: Event | None


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Addresses that never change, for the graph of one stream.

    `addresses` has scratch and const buffers, and the slots of small inputs; `workspaces` has the
    workspace of each library call, and of each kernel node with one. `pointer_arrays` has the first
    one of each library call that reads some. Those of `moving` calls are written by each launch,
    and come first. `recaptured` has the buffers of each call that is captured again where they are,
    and `placeholders` an address for what only launches know. The graph's slots keep the pieces in
    `memory` alive; `scratch` is allocated by each launch instead.
    `needed` are the bytes of ``"scratch"`` and ``"constants"``. `warm_up` is a workspace, and room
    for the buffers of any call that is made `outside` the graph.
    """

    addresses: Mapping[Buffer, int]
    workspaces: Mapping[Node, int]
    pointer_arrays: Mapping[LibraryNode, int]
    moving: tuple[LibraryNode, ...]
    recaptured: Mapping[LibraryNode, tuple[Buffer, ...]]
    placeholders: int
    values_address: int
    table_address: int
    scratch: GraphMemory | None
    memory: tuple[Allocation, ...]
    needed: Mapping[str, int]
    warm_up: PooledMemory | None


def upload(plan: Plan, device: OpenDevice) -> Constants:
    """Allocate and write the constants of a Plan.

    Raises:
        OutOfMemoryError: the device has not enough memory.
    """
    if not plan.constants:
        return Constants({}, None, None)
    offsets: dict[Buffer, int] = {}
    size = 0
    for buffer, _ in plan.constants:
        offsets[buffer], size = size, size + round_up(buffer.type.nbytes, ALIGNMENT)
    memory = device.heap.allocate(max(size, ALIGNMENT), "constants")  # if all are empty
    addresses = {buffer: memory.pointer + offset for buffer, offset in offsets.items()}
    for buffer, data in plan.constants:
        if data.nbytes:
            device.timeline.write(addresses[buffer], np.ascontiguousarray(data))
    return Constants(addresses, memory, device.driver.record())


def place(
    plan: Plan,
    unit: Unit,
    values: Mapping[Buffer, ValueSlot],
    constants: Constants,
    calls: PreparedCalls,
    stream: StreamState,
    definition: Definition,
    graph: Any,
    *,
    share: bool,
    fixed: Mapping[Buffer, int],
) -> Placement:
    """Allocate what the graph for one stream needs besides constants; clear counters and values.

    Inputs and outputs with `fixed` addresses are there at all launches.
    With `share`, scratch that is kept between launches is in an arena that other graphs of the
    stream use too: a launch must be over before another starts. Kernels' workspaces keep counters
    between launches, and are never shared.

    Raises:
        FrozenSlotsError: the definition is complete.
        OutOfMemoryError: the device has not enough memory.
    """
    table = round_up(slots_bytes(list(values.values())), ALIGNMENT)
    size = table + round_up(table_bytes(plan.indirect), ALIGNMENT)
    workspaces: dict[Node, int] = {}
    needs: list[tuple[Node, int]] = [(n, code.workspace_bytes) for n, code in unit.kernels.items()]
    for node, nbytes in needs:
        if nbytes:
            workspaces[node], size = size, size + round_up(nbytes, ALIGNMENT)
    arrays: dict[LibraryNode, int] = {}
    moving = moving_calls(plan.graph, fixed)
    still = calls.keys() - set(moving)
    for call in (*moving, *(n for n in calls if n in still and not captured(n).direct)):
        if call.call.batches:
            arrays[call], size = size, size + pointers_bytes(call.call)
    size = placeholders = round_up(size, ALIGNMENT)
    recaptured = {n: moving_buffers(n, fixed) for n in recaptured_calls(plan.graph, fixed)}
    size += max(map(placeholder_bytes, recaptured.values()), default=0)

    library_offset = round_up(plan.arena_bytes, ALIGNMENT)
    arena_bytes = library_offset + plan.library_bytes
    arena = scratch = None
    if plan.allocated_bytes:
        scratch = definition.add_memory(graph, arena_bytes, allocation(arena_bytes))
    elif arena_bytes:
        arena = (stream.arenas.shared if share else stream.arenas.private)(arena_bytes)
    memory = stream.heap.allocate(size, "constants", stream.driver) if size else None
    slots = definition.slots
    slots.retain(arena, memory, constants.memory)
    base = memory.pointer if memory else 0
    home = arena or scratch
    arena_base = home.pointer if home else 0
    if size:
        stream.driver.clear(base, size)
    if constants.ready is not None and not stream.is_default:
        stream.driver.wait(constants.ready)
    addresses = {buffer: arena_base + offset for buffer, offset in plan.offsets.items()}
    addresses |= {buffer: base + slot.offset for buffer, slot in values.items()}
    addresses |= constants.addresses
    addresses |= fixed
    if arena is not None:
        _name(slots, "arena", arena_base, plan.arena_bytes)
        _name(slots, "library workspace", arena_base + library_offset, plan.library_bytes)
    for buffer, address in constants.addresses.items():
        _name(slots, f"constant {buffer.number} {buffer.type}", address, buffer.type.nbytes)
    _name(slots, "small inputs", base, slots_bytes(list(values.values())))
    _name(slots, "pointer table", base + table, table_bytes(plan.indirect))
    for node, nbytes in needs:
        _name(slots, "workspace", base + workspaces.get(node, 0), nbytes)
    for call, offset in arrays.items():
        _name(slots, "pointer arrays", base + offset, pointers_bytes(call.call))
    _name(slots, "placeholders", base + placeholders, size - placeholders)
    return Placement(
        addresses=addresses,
        workspaces={
            **{node: base + offset for node, offset in workspaces.items()},
            **{n: arena_base + library_offset + o for n, o in workspace_offsets(calls).items()},
        },
        pointer_arrays={node: base + offset for node, offset in arrays.items()},
        moving=moving,
        recaptured=recaptured,
        placeholders=base + placeholders,
        values_address=base,
        table_address=base + table,
        scratch=scratch,
        memory=tuple(piece for piece in (arena, memory, constants.memory) if piece is not None),
        needed={
            "scratch": arena_bytes,
            "constants": sum(p.nbytes for p in (memory, constants.memory) if p is not None),
        },
        warm_up=_warm_up(plan, calls, stream),
    )


def _name(slots: SlotTable, what: str, pointer: int, nbytes: int) -> None:
    """Name a piece of memory, unless it is empty."""
    if nbytes:
        slots.name(what, pointer, nbytes)


def _warm_up(plan: Plan, calls: PreparedCalls, stream: StreamState) -> PooledMemory | None:
    """Memory for the warm-up of library calls, with the graph of the default stream."""
    if not calls or not stream.is_default:
        return None
    most = max(outside(plan, node)[1] for node in calls)
    return stream.pool.take(plan.library_bytes + most)
