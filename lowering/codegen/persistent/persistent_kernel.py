"""The function of a persistent kernel, and how it is launched."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import nullcontext

from lowering.codegen.effects.signals import STOP_WATCH
from lowering.codegen.geometry import nest_geometry
from lowering.codegen.geometry_records import shared_bytes
from lowering.codegen.kernel_code import (
    FEW_BLOCKS,
    NAME,
    KernelCode,
    declare_parameters,
    declare_shared_memory,
    function,
    named,
)
from lowering.codegen.kernel_parameters import StopFlagAddress
from lowering.codegen.nests import nest_parameters, write_nests
from lowering.codegen.persistent.lane_kernel import lane_text
from lowering.codegen.persistent.peer_rooms import SentStop, declare_exchanges, save_turns
from lowering.codegen.persistent.persistent_layout import PersistentLayout, accessed
from lowering.codegen.persistent.phases import PhaseWriter, declare_words
from lowering.codegen.persistent.sent_in_turns import sent_in_turns
from lowering.codegen.persistent.storage import (
    Storage,
    bring_home,
    declare_homes,
    declare_storage,
    in_memory,
    place_storage,
    save_storage,
)
from lowering.codegen.persistent.surroundings import Surroundings
from lowering.codegen.persistent.swapped_carries import SwappedCarry, swapped_carries
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.lockstep import in_lockstep
from lowering.plan.nests.buffer import Buffer
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.hardware import ALIGNMENT, SHARED_BYTES
from lowering.plan.target.scope import Scope


def persistent_text(
    node: PersistentKernelNode,
    offsets: Mapping[Buffer, int],
    surroundings: Surroundings,
    loops: Set[int],
    indirect: Set[Buffer] = frozenset(),
) -> tuple[str, KernelCode]:
    """The function of a persistent kernel, called `NAME`, and how it is launched.

    `offsets` places scratch buffers. `loops` are the conditions of all while nodes of the Plan. The
    addresses of `indirect` buffers are read from the pointer table.
    """
    if node.scope.lanes:
        return lane_text(node, offsets, surroundings, loops, indirect)
    scope, layout = node.scope, PersistentLayout.of(node)
    read, written = accessed(layout)
    buffers = tuple(dict.fromkeys([*read, *written]))
    inside = set(layout.inside)
    outside = {b for b in buffers if not surroundings.only_in(b, inside)}
    storage = place_storage(read, set(written), outside, scope, layout.kept, SHARED_BYTES)
    conditions = layout.slots.keys()
    nests = (*layout.geometries, *layout.beside)
    others = tuple(dict.fromkeys(p for n in nests for p in nest_parameters(n, loops, conditions)))
    if layout.peers.rooms and StopFlagAddress() not in others:
        others = (*others, StopFlagAddress())  # for waits
    pointers = {buffer: f"p{i}" for i, buffer in enumerate(buffers)}
    writer = SourceWriter(pointers, named(others), loops, conditions)
    writer.line(f"const int thread = {'0' if scope.threads == 1 else 'int(threadIdx.x)'};")
    passed = {
        buffer: in_memory(name) if buffer in storage.placed else name
        for buffer, name in pointers.items()
        if buffer not in storage.placed or buffer in storage.loaded
    }
    declared, parameters = declare_parameters(
        writer, passed, written, offsets, indirect, layout.workspace
    )
    geometries = [nest_geometry(nest, scope.threads) for nest in layout.beside]
    shared = max([storage.end, *map(shared_bytes, geometries)])
    declare_shared_memory(writer, shared)
    whiles = [each for each in layout.inside if isinstance(each, WhileNode)]
    if StopFlagAddress() in others and whiles:
        writer.line(f"tg_stop_watch {STOP_WATCH} = {{tg_clock(), 0}};")
    swaps = _swaps(layout, scope, surroundings, storage)
    watched = bool(whiles) and all(map(in_lockstep, whiles))
    stop = SentStop(surroundings.stop_flag, watched)
    turns = {
        loop: sent_in_turns(loop, layout, surroundings) for loop in whiles if in_lockstep(loop)
    }
    phases = PhaseWriter(writer, scope, layout, swaps, offsets, stop, turns)
    with writer.block(f"if (blockIdx.x < {scope.blocks}u)") if scope.beside else nullcontext():
        _write_body(writer, node, layout, storage, phases)
    blocks = scope.blocks
    if scope.beside:
        with writer.block("else"):
            blocks += write_nests(writer, layout.beside, geometries, before=blocks)
    cluster = scope.blocks if scope.clustered else 1
    alone = node.exchange
    early = alone is not None and scope.blocks <= FEW_BLOCKS
    text = function(declared, writer.text, scope.threads, cluster=cluster, dependents=early)
    grid, block = (blocks, 1, 1), (scope.threads, 1, 1)
    return text, KernelCode(
        NAME,
        parameters,
        grid,
        block,
        shared,
        cluster,
        cooperative=scope.blocks > 1 and alone is None and not scope.beside,
        peers=layout.peers.tables,
        together=scope.blocks if scope.beside else 0,
        in_turn=alone is not None or scope.beside,
    )


def _write_body(
    writer: SourceWriter,
    node: PersistentKernelNode,
    layout: PersistentLayout,
    storage: Storage,
    phases: PhaseWriter,
) -> None:
    """Write the phases, between loading what the kernel keeps and saving it."""
    scope = node.scope
    words = f"shared + {layout.words}"
    if scope.blocks > 1 and node.exchange is None:
        writer.line("tg_u64* const arrived = reinterpret_cast<tg_u64*>(workspace);")
        before = "tg_arrivals_before(arrived)"
        if scope.beside:
            before = f"tg_arrivals_of(arrived, {scope.blocks})"
        writer.line(f"tg_u64 arrivals = {before};")
        words = f"workspace + {ALIGNMENT}"
    declare_words(writer, layout.slots, scope, words)
    declare_exchanges(writer, layout.peers, scope)
    declare_storage(writer, storage, scope)
    moved = [each.old for found in phases.swaps.values() for each in found]
    moved = [buffer for buffer in moved if buffer not in storage.placed]
    declare_homes(writer, moved)
    if storage.loaded:
        phases.barrier()
    phases.graph(node.graph)
    if storage.loaded:
        phases.barrier()
        save_storage(writer, storage, scope)
    bring_home(writer, moved, scope)
    if layout.peers.rooms:
        save_turns(writer, layout.peers, scope)


def _swaps(
    layout: PersistentLayout, scope: Scope, surroundings: Surroundings, storage: Storage
) -> dict[WhileNode, tuple[SwappedCarry, ...]]:
    """The carries of each loop that swap their buffers."""
    if scope.threads == 1:
        return {}  # registers have no addresses
    placed = storage.placed.keys()
    return {
        loop: swapped_carries(loop, layout.nests, surroundings, placed)
        for loop in layout.inside
        if isinstance(loop, WhileNode)
    }
