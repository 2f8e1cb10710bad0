"""The function of a loop whose lanes never meet: one thread makes all steps of its lane."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import prod

from lowering.codegen.effects.signals import STOP_WATCH
from lowering.codegen.expressions import index_type
from lowering.codegen.kernel_code import NAME, KernelCode, declare_parameters, function, named
from lowering.codegen.kernel_parameters import StopFlagAddress
from lowering.codegen.nests import nest_parameters
from lowering.codegen.persistent.lane_graph import lane_graph, own_axis
from lowering.codegen.persistent.peer_rooms import SentStop
from lowering.codegen.persistent.persistent_layout import PersistentLayout, accessed
from lowering.codegen.persistent.phases import PhaseWriter, declare_words
from lowering.codegen.persistent.storage import Storage, declare_storage
from lowering.codegen.persistent.surroundings import Surroundings
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.scope import Scope
from tracegraph.ir.record import replace
from tracegraph.ir.types import row_major_strides


def lane_text(
    node: PersistentKernelNode,
    offsets: Mapping[Buffer, int],
    surroundings: Surroundings,
    loops: Set[int],
    indirect: Set[Buffer],
) -> tuple[str, KernelCode]:
    """The function of a persistent kernel with a thread for each lane, as `persistent_text`."""
    scope, inside = node.scope, set(walk(node.graph))
    thread = Scope(1, 1, lanes=scope.lanes)
    one = lane_graph(node, lambda buffer: not surroundings.only_in(buffer, inside))
    layout = PersistentLayout.of(replace(node, graph=one.graph, scope=thread))
    read, written = accessed(layout)
    buffers = tuple(dict.fromkeys([*read, *written]))
    conditions = layout.slots.keys()
    others = tuple(
        dict.fromkeys(p for n in layout.geometries for p in nest_parameters(n, loops, conditions))
    )
    pointers = {buffer: f"p{i}" for i, buffer in enumerate(buffers)}
    writer = SourceWriter(pointers, named(others), loops, conditions)
    passed = {buffer: name for buffer, name in pointers.items() if buffer not in one.private}
    own = [buffer for buffer in written if buffer not in one.private]
    declared, parameters = declare_parameters(writer, passed, own, offsets, indirect, 0)
    _declare_lane(writer, scope)
    if StopFlagAddress() in others:
        writer.line(f"tg_stop_watch {STOP_WATCH} = {{tg_clock(), 0}};")
    declare_words(writer, layout.slots, thread, "")
    private = {buffer: 0 for buffer in buffers if buffer in one.private}
    declare_storage(writer, Storage(private, 0, ()), thread)
    PhaseWriter(writer, thread, layout, {}, offsets, SentStop(None, watched=True)).graph(one.graph)
    text = function(declared, writer.text, scope.threads, dependents=False)
    grid, block = (scope.blocks, 1, 1), (scope.threads, 1, 1)
    return text, KernelCode(NAME, parameters, grid, block, 0)


def _declare_lane(writer: SourceWriter, scope: Scope) -> None:
    """Declare the lane of the thread, and its index along each axis of lanes."""
    count, kind = prod(scope.lanes), index_type(scope.blocks * scope.threads)
    writer.line(f"const {kind} number = {kind}(blockIdx.x) * {scope.threads} + int(threadIdx.x);")
    if count % scope.threads:
        writer.line(f"if (number >= {count}) return;")
    writer.line("const int thread = 0;")
    strides = row_major_strides(scope.lanes)
    for number, (extent, stride) in enumerate(zip(scope.lanes, strides, strict=True)):
        if extent == 1:
            continue
        quotient = "number" if stride == 1 else f"number / {stride}"
        outermost = prod(scope.lanes[:number]) == 1
        name = f"lane{number}"
        value = quotient if outermost else f"{quotient} % {extent}"
        writer.line(f"const {index_type(extent)} {name} = {index_type(extent)}({value});")
        writer.bind(own_axis(number, extent), name)
