"""Placement: the addresses of a Plan's fixed memory, from the arena to the pointer table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.fixed_layout import FixedLayout, Piece
from lowering.cuda.graph.node_owners import allocation
from lowering.cuda.graph.peer_links import is_reached, link_peers
from lowering.cuda.graph.small_inputs import ValueSlot
from lowering.cuda.interface import Allocation, Event, GraphMemory
from lowering.cuda.libraries.library_calls import PreparedCalls, outside, workspace_offsets
from lowering.cuda.memory.pool import PooledMemory
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.stream_state import StreamState
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import LibraryNode, Node
from lowering.plan.owners import SlotTable
from lowering.plan.plan import Plan
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.generated.dataclass import dataclass


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
    code: PlanCode,
    values: Mapping[Buffer, ValueSlot],
    constants: Constants,
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
        MeshDeviceError: as `link_peers` does.
    """
    plan, layout = code.plan, FixedLayout.of(code, values, fixed)
    library_offset = round_up(plan.arena_bytes, ALIGNMENT)
    arena_bytes = library_offset + plan.library_bytes
    arena = scratch = None
    if plan.allocated_bytes:
        scratch = definition.add_memory(graph, arena_bytes, allocation(arena_bytes))
    elif arena_bytes:
        arena = (stream.arenas.shared if share else stream.arenas.private)(arena_bytes)
    size = layout.nbytes
    take = stream.heap.allocate_shared if is_reached(code.unit) else stream.heap.allocate
    memory = take(size, "constants", stream.driver) if size else None
    definition.slots.retain(arena, memory, constants.memory)
    home = arena or scratch
    base, arena_base = (0 if each is None else each.pointer for each in (memory, home))
    if size:
        stream.driver.clear(base, size)
    if constants.ready is not None and not stream.is_default:
        stream.driver.wait(constants.ready)
    pieces = [Piece(p.what, base + p.start, p.nbytes) for p in layout.pieces]
    if arena is not None:
        library = Piece("library workspace", arena_base + library_offset, plan.library_bytes)
        pieces = [Piece("arena", arena_base, plan.arena_bytes), library, *pieces]
    _name(definition.slots, pieces, constants)
    addresses = {buffer: arena_base + offset for buffer, offset in plan.offsets.items()}
    addresses |= {buffer: base + slot.offset for buffer, slot in values.items()}
    stop_flag: dict[Buffer, int] = {}
    if plan.stop_flag is not None:
        word = stream.timeline.stop_flag
        definition.slots.retain(word)
        stop_flag[plan.stop_flag] = word.pointer
    libraries = workspace_offsets(code.calls)
    kernels = {node: base + offset for node, offset in layout.workspaces.items()}
    link_peers(code.unit, kernels, memory, stream.driver)
    return Placement(
        addresses={**addresses, **constants.addresses, **stop_flag, **fixed},
        workspaces={
            **kernels,
            **{node: arena_base + library_offset + at for node, at in libraries.items()},
        },
        pointer_arrays={node: base + offset for node, offset in layout.pointer_arrays.items()},
        moving=layout.moving,
        recaptured=layout.recaptured,
        placeholders=base + layout.placeholders,
        values_address=base,
        table_address=base + layout.table,
        scratch=scratch,
        memory=tuple(piece for piece in (arena, memory, constants.memory) if piece is not None),
        needed={
            "scratch": arena_bytes,
            "constants": sum(p.nbytes for p in (memory, constants.memory) if p is not None),
        },
        warm_up=_warm_up(plan, code.calls, stream),
    )


def _name(slots: SlotTable, pieces: Sequence[Piece], constants: Constants) -> None:
    """Name the pieces of memory that are not empty."""
    named = [
        Piece(f"constant {buffer.number} {buffer.type}", address, buffer.type.nbytes)
        for buffer, address in constants.addresses.items()
    ]
    for piece in (*pieces, *named):
        if piece.nbytes:
            slots.name(piece.what, piece.start, piece.nbytes)


def _warm_up(plan: Plan, calls: PreparedCalls, stream: StreamState) -> PooledMemory | None:
    """Memory for the warm-up of library calls, with the graph of the default stream."""
    if not calls or not stream.is_default:
        return None
    most = max(outside(plan.per_launch, node)[1] for node in calls)
    return stream.pool.take(plan.library_bytes + most)
