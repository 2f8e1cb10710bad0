"""The function of a persistent kernel, and how it is launched."""

from __future__ import annotations

from collections.abc import Iterable, Set

from lowering.codegen.kernel_code import NAME, SPELLING, KernelCode, named, pointer
from lowering.codegen.nest_kinds import CanonicalNest, canonical
from lowering.codegen.nests import buffers_of, nest_parameters
from lowering.codegen.parameters import Parameter, StopFlag, TableEntry, Workspace
from lowering.codegen.persistent.exchanges import Exchange, exchanges_of
from lowering.codegen.persistent.stage_geometry import stage_geometry
from lowering.codegen.persistent.stages import (
    StageWriter,
    declare_words,
    words_bytes,
    workspace_bytes,
)
from lowering.codegen.persistent.storage import (
    bring_home,
    declare_homes,
    declare_storage,
    in_memory,
    place_storage,
    save_storage,
)
from lowering.codegen.preamble import c_type
from lowering.codegen.signals import STOP_WATCH
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.buffer import Buffer
from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.hardware import ALIGNMENT, SHARED_BYTES, VECTOR_BYTES
from lowering.plan.nodes import KernelNode, Node, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.rounding import round_up


def persistent_text(
    node: PersistentKernelNode, plan: Plan, loops: Set[int], indirect: Set[Buffer] = frozenset()
) -> tuple[str, KernelCode]:
    """The function of a persistent kernel, called `NAME`, and how it is launched.

    `loops` are the conditions of all while nodes of the Plan. The addresses of `indirect` buffers
    are read from the pointer table.
    """
    scope, inside = node.scope, tuple(walk(node.graph))
    nests: dict[KernelNode, tuple[CanonicalNest, ...]] = {
        each: tuple(map(canonical, each.kernel.nests))
        for each in inside
        if isinstance(each, KernelNode)
    }
    slots: dict[int, int] = {}
    for each in inside:
        if isinstance(each, ConditionalNode):
            slots.setdefault(each.condition, len(slots))
    geometries = {nest: stage_geometry(nest, scope) for own in nests.values() for nest in own}
    workspaces: dict[CanonicalNest, str] = {}
    workspace = round_up(words_bytes(slots), ALIGNMENT) + ALIGNMENT if scope.blocks > 1 else 0
    for nest, geometry in geometries.items():
        if nbytes := workspace_bytes(geometry):
            workspaces[nest], workspace = f"workspace + {workspace}", workspace + nbytes
            workspace = round_up(workspace, ALIGNMENT)
    by_nests = max([getattr(each, "shared_bytes", 0) for each in geometries.values()], default=0)
    words_at = round_up(by_nests, VECTOR_BYTES)
    kept_at = words_at + (words_bytes(slots) if scope.blocks == 1 and scope.threads > 1 else 0)

    read, written = _accessed(inside, geometries)
    buffers = tuple(dict.fromkeys([*read, *written]))
    storage = place_storage(read, set(written), _outside(plan, node), scope, kept_at, SHARED_BYTES)
    others = tuple(
        dict.fromkeys(p for nest in geometries for p in nest_parameters(nest, loops, slots.keys()))
    )
    names = named(others)
    pointers = {buffer: f"p{i}" for i, buffer in enumerate(buffers)}
    writer = SourceWriter(pointers, names, loops, slots.keys())
    writer.line(f"const int thread = {'0' if scope.threads == 1 else 'int(threadIdx.x)'};")
    declared: list[str] = []
    parameters: list[Parameter] = []
    for buffer, name in pointers.items():
        if buffer in storage.placed and buffer not in storage.loaded:
            continue
        outer = in_memory(name) if buffer in storage.placed else name
        declaration = pointer(buffer, outer, written, plan.offsets)
        if buffer in indirect:
            writer.line(f"{declaration} = ({c_type(buffer.type.dtype)}*)*t{name};")
            declared.append(f"const tg_u64* t{name}")
            parameters.append(TableEntry(buffer))
        else:
            declared.append(declaration)
            parameters.append(buffer)
    declared += [f"{SPELLING[type(parameter)][0]} {names[parameter]}" for parameter in others]
    parameters += others
    if workspace:
        declared.append("unsigned char* workspace")
        parameters.append(Workspace(workspace))
    shared = max(storage.end, kept_at) if scope.threads > 1 else by_nests
    if shared:
        writer.line("extern __shared__ __align__(16) unsigned char shared[];")
    if StopFlag() in others:
        writer.line(f"tg_stop_watch {STOP_WATCH} = {{tg_clock(), 0}};")
    if scope.blocks > 1:
        writer.line("tg_u64* const arrived = reinterpret_cast<tg_u64*>(workspace);")
        writer.line("tg_u64 arrivals = tg_arrivals_before(arrived);")
    memory = f"shared + {words_at}" if scope.blocks == 1 else f"workspace + {ALIGNMENT}"
    declare_words(writer, slots, scope, memory)
    declare_storage(writer, storage, scope)
    exchanges: dict[WhileNode, tuple[Exchange, ...]] = {}
    if scope.threads > 1:  # the registers of one thread have no addresses
        loops_inside = [each for each in inside if isinstance(each, WhileNode)]
        placed = storage.placed.keys()
        exchanges = {loop: exchanges_of(loop, nests, plan, placed) for loop in loops_inside}
    moved = [each.old for found in exchanges.values() for each in found]
    moved = [buffer for buffer in moved if buffer not in storage.placed]
    declare_homes(writer, moved)
    stages = StageWriter(writer, scope, nests, workspaces, slots, exchanges)
    if storage.loaded:
        stages.barrier()
    stages.graph(node.graph)
    if storage.saved:
        stages.barrier()
        save_storage(writer, storage, scope)
    bring_home(writer, moved, scope)

    cluster = scope.blocks if scope.clustered else 1
    attribute = f"TG_CLUSTER({cluster}) " if cluster > 1 else ""
    head = f'extern "C" __global__ void {attribute}__launch_bounds__({scope.threads})'
    begin = "  tg_wait_for_primaries();\n"
    text = f"{head}\n{NAME}({', '.join(declared)}) {{\n{begin}{writer.text}}}\n"
    grid, block = (scope.blocks, 1, 1), (scope.threads, 1, 1)
    together = scope.blocks > 1
    return text, KernelCode(NAME, tuple(parameters), grid, block, shared, cluster, together)


def _accessed(
    inside: Iterable[Node], nests: Iterable[CanonicalNest]
) -> tuple[list[Buffer], list[Buffer]]:
    """The buffers that the stages read, and those that they write, in order of first use."""
    read, written = (dict.fromkeys(found) for found in buffers_of(nests))
    for node in inside:
        if isinstance(node, KernelNode):
            continue
        if isinstance(node, WhileNode) and node.entry is not None:
            read[node.entry] = None
        elif not isinstance(node, ConditionalNode):
            read.update(dict.fromkeys(node.reads))
            written.update(dict.fromkeys(node.writes))
    return list(read), list(written)


def _outside(plan: Plan, node: PersistentKernelNode) -> set[Buffer]:
    """The buffers that other nodes of the Plan access."""
    own = set(walk(node.graph))
    found: set[Buffer] = set()
    for each in walk(plan.graph):
        if each not in own:
            found |= each.accessed_buffers
    return found
