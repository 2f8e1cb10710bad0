"""The translation unit of a Plan: the CUDA C++ of all kernels, and how each is launched."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from lowering.codegen.constants import constant
from lowering.codegen.geometry import block_threads, nest_geometry
from lowering.codegen.geometry_records import (
    LaunchGeometry,
    MapGeometry,
    PrintGeometry,
    RowGeometry,
    ScanGeometry,
    ScatterGeometry,
    TileGeometry,
)
from lowering.codegen.maps.maps import write_map
from lowering.codegen.maps.tiles import write_tiles
from lowering.codegen.nest_kinds import CanonicalNest, canonical
from lowering.codegen.parameters import (
    ConditionHandle,
    FailureWord,
    Parameter,
    PrintRing,
    PrintSite,
    StepCount,
    StopFlag,
    TableEntry,
    Workspace,
)
from lowering.codegen.preamble import c_type, preamble
from lowering.codegen.prints import print_site, write_print
from lowering.codegen.rows.cluster_geometry import cluster_of, resident_blocks
from lowering.codegen.rows.column_runs import coarsened
from lowering.codegen.rows.reductions import write_reduction
from lowering.codegen.rows.rows import write_rows
from lowering.codegen.scans.scans import write_scan
from lowering.codegen.scatters import write_scatter
from lowering.codegen.signals import signal_parameters
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.buffer import Buffer, overlap
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.hardware import ALIGNMENT
from lowering.plan.kernel import Kernel, MapNest, PrintNest, RowNest, ScanNest, ScatterNest
from lowering.plan.nest_analysis import nest_loads, nest_signals, nest_stores
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.plan import Plan
from lowering.plan.rounding import round_up
from tracegraph.ir.scalar import const


@dataclass(frozen=True, slots=True)
class KernelCode:
    """How a kernel node is launched: the function's name, its parameters and geometry."""

    name: str
    parameters: tuple[Parameter, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cluster: int = 1
    """Blocks of a thread block cluster, on devices that have them."""

    @property
    def buffers(self) -> set[Buffer]:
        """The buffers that the kernel accesses, by a parameter or through the pointer table."""
        by_table = {p.buffer for p in self.parameters if isinstance(p, TableEntry)}
        return by_table | {p for p in self.parameters if isinstance(p, Buffer)}

    @property
    def workspace_bytes(self) -> int:
        """Bytes of workspace that the node needs, 0 if none."""
        return sum(p.nbytes for p in self.parameters if isinstance(p, Workspace))


@dataclass(frozen=True, slots=True)
class Unit:
    """A translation unit, and the kernel of it that each kernel node launches."""

    source: str
    kernels: Mapping[KernelNode, KernelCode]


def unit_source(plan: Plan) -> Unit:
    """The translation unit of a Plan's kernels, those of loop bodies and branches included.

    Kernels with the same text share one function. The text depends on the Plan only, so compiled
    code can be cached by it.
    """
    names: dict[str, str] = {}
    kernels: dict[KernelNode, KernelCode] = {}
    functions: list[str] = []
    # unrolled copies of a loop's body share kernels
    written: dict[tuple[Kernel, bool], tuple[str, KernelCode]] = {}
    top, by_table = frozenset(plan.graph.nodes), frozenset(plan.indirect)
    loops = {node.condition for node in walk(plan.graph) if isinstance(node, WhileNode)}
    for node in walk(plan.graph):
        if not isinstance(node, KernelNode) or node in kernels:
            continue
        indirect = frozenset[Buffer]() if node in top else by_table
        if (node.kernel, bool(indirect)) not in written:
            found = kernel_text(node.kernel, plan.offsets, loops, indirect)
            written[node.kernel, bool(indirect)] = found
        text, code = written[node.kernel, bool(indirect)]
        if text not in names:
            prefix = f"{plan.name}_"  # cannot collide with functions of C++
            name = prefix + node.kernel.name.removeprefix(prefix)
            names[text] = _identifier(name, taken=names.values())
            functions.append(text.replace(NAME, names[text]))
        kernels[node] = replace(code, name=names[text])
    return Unit("\n".join([preamble(), *functions]), kernels)


FEW_BLOCKS = 16
"""Blocks up to which a kernel triggers programmatic dependent launch at its begin.

A chain of kernels of 8 blocks takes 0.67 us each with the trigger and 0.72 without (H200). In
larger grids each block pays for the trigger, and the dependent kernel occupies their slots.
"""

NAME = "KERNEL_NAME"
"""Placeholder for the function's name, so that texts can be compared."""


def kernel_text(
    kernel: Kernel,
    offsets: Mapping[Buffer, int],
    loops: Set[int],
    indirect: Set[Buffer] = frozenset(),
) -> tuple[str, KernelCode]:
    """The function of a kernel, called `NAME`, and how it is launched.

    `offsets` places scratch buffers. A buffer that is only read gets `__restrict__` unless it
    overlaps one that is written. `loops` are the conditions of while nodes. The addresses of
    `indirect` buffers are read from the pointer table.
    """
    nests = tuple(coarsened(canonical(nest)) for nest in kernel.nests)
    cluster = max(map(cluster_of, nests), default=1)
    if cluster > 1:  # clustered nests first, so that each begins at a cluster
        nests = tuple(sorted(nests, key=lambda nest: cluster_of(nest) == 1))
    threads = block_threads(nests)
    geometries = [nest_geometry(n, threads, cluster if cluster_of(n) > 1 else 1) for n in nests]
    read, written = _buffers(nests)
    buffers = tuple(dict.fromkeys([*read, *written]))
    others = tuple(dict.fromkeys(p for nest in nests for p in _parameters(nest, loops)))
    workspace = sum(
        round_up(s.workspace_bytes, ALIGNMENT) for s in geometries if isinstance(s, _WithWorkspace)
    )
    sharing = [
        s
        for s in geometries
        if isinstance(s, (TileGeometry, RowGeometry, ScanGeometry, ScatterGeometry, PrintGeometry))
    ]
    shared = max((s.shared_bytes for s in sharing), default=0)

    pointers = {buffer: f"p{i}" for i, buffer in enumerate(buffers)}
    names = _named(others)
    writer = SourceWriter(pointers, names, loops)
    writer.line("const int thread = int(threadIdx.x);")
    declared: list[str] = []
    parameters: list[Parameter] = []
    for buffer, name in pointers.items():
        pointer = _pointer(buffer, name, written, offsets)
        if buffer in indirect:
            writer.line(f"{pointer} = ({c_type(buffer.type.dtype)}*)*t{name};")
            declared.append(f"const tg_u64* t{name}")
            parameters.append(TableEntry(buffer))
        else:
            declared.append(pointer)
            parameters.append(buffer)
    if shared:
        writer.line("extern __shared__ __align__(16) unsigned char shared[];")
    blocks = _write_nests(writer, nests, geometries, cluster)

    declared += [f"{_SPELLING[type(parameter)][0]} {names[parameter]}" for parameter in others]
    parameters += others
    if workspace:
        declared.append("unsigned char* workspace")
        parameters.append(Workspace(workspace))
    resident = resident_blocks(nests, threads, cluster)
    match geometries:
        case [TileGeometry(transpose=only)]:
            resident = only.resident
    bounds = f"__launch_bounds__({threads}{f', {resident}' if resident > 1 else ''})"
    attribute = f"TG_CLUSTER({cluster}) " if cluster > 1 else ""
    head = f'extern "C" __global__ void {attribute}{bounds}'
    begin = "  tg_wait_for_primaries();\n"
    if blocks <= FEW_BLOCKS:
        begin += "  tg_launch_dependents();\n"
    text = f"{head}\n{NAME}({', '.join(declared)}) {{\n{begin}{writer.text}}}\n"
    grid, block = (max(blocks, 1), 1, 1), (threads, 1, 1)  # an empty grid cannot be launched
    return text, KernelCode(NAME, tuple(parameters), grid, block, shared, cluster)


_WithWorkspace = (RowGeometry, ScanGeometry)
"""Geometries that may need a workspace."""


def _write_nests(
    writer: SourceWriter,
    nests: tuple[CanonicalNest, ...],
    geometries: list[LaunchGeometry],
    cluster: int,
) -> int:
    """Write each nest for its range of blocks. Returns the blocks of all, in whole clusters."""
    busy = [
        (nest, geometry)
        for nest, geometry in zip(nests, geometries, strict=True)
        if geometry.blocks
    ]
    start = used = 0
    for position, (nest, geometry) in enumerate(busy):
        stop = start + geometry.blocks
        workspace = f"workspace + {used}" if used else "workspace"
        if isinstance(geometry, _WithWorkspace):
            used += round_up(geometry.workspace_bytes, ALIGNMENT)
        if len(busy) == 1:
            writer.line("const int block = int(blockIdx.x);")
            _write_nest(writer, nest, geometry, workspace)
        else:
            last = position == len(busy) - 1 and stop % cluster == 0
            test = "else" if last else f"if (blockIdx.x < {stop}u)"
            with writer.block(test if position == 0 or last else f"else {test}"):
                writer.line(f"const int block = int(blockIdx.x) - {start};")
                _write_nest(writer, nest, geometry, workspace)
        start = stop
    return round_up(start, cluster)


def _write_nest(
    writer: SourceWriter, nest: CanonicalNest, geometry: LaunchGeometry, workspace: str
) -> None:
    if nest.predicates:
        # | and not ||: no load waits for another. All threads of a block take the same branch.
        tests = (
            f"(*{writer.pointers[p.flag]} != {constant(const(p.value, p.flag.type.dtype))})"
            for p in nest.predicates
        )
        writer.line(f"if ({' | '.join(tests)}) return;")
    match nest, geometry:
        case MapNest(), MapGeometry():
            write_map(writer, nest, geometry)
        case MapNest(), TileGeometry():
            write_tiles(writer, nest, geometry)
        case ScatterNest(), ScatterGeometry():
            write_scatter(writer, nest, geometry)
        case RowNest(passes=(_,)), RowGeometry():
            write_reduction(writer, nest, geometry, f"({workspace})")
        case RowNest(), RowGeometry():
            write_rows(writer, nest, geometry)
        case ScanNest(), ScanGeometry():
            write_scan(writer, nest, geometry, f"({workspace})")
        case PrintNest(), PrintGeometry():
            write_print(writer, nest, geometry)


def _parameters(nest: CanonicalNest, loops: Set[int]) -> Iterator[Parameter]:
    """The parameters of a nest besides buffers and workspace."""
    yield from signal_parameters(nest_signals(nest), loops)
    if isinstance(nest, PrintNest):
        yield PrintRing()
        yield print_site(nest)


def _buffers(nests: tuple[CanonicalNest, ...]) -> tuple[list[Buffer], list[Buffer]]:
    """The buffers that a kernel reads, and those that it writes, in order of first use."""
    read: dict[Buffer, None] = {}
    written: dict[Buffer, None] = {}
    for nest in nests:
        read.update((predicate.flag, None) for predicate in nest.predicates)
        read.update((load.buffer, None) for load in nest_loads(nest))
        written.update((store.buffer, None) for store in nest_stores(nest))
    return list(read), list(written)


_SPELLING: Mapping[type, tuple[str, str]] = {
    ConditionHandle: ("tg_u64", "condition"),
    StopFlag: ("const volatile tg_u32*", "stop"),
    FailureWord: ("volatile tg_u64*", "failure"),
    StepCount: ("volatile tg_i64*", "steps"),
    PrintRing: ("volatile tg_ring*", "ring"),
    PrintSite: ("tg_u64", "site"),
}
"""The C++ type of each kind of parameter, and the prefix of its names."""


def _named(parameters: tuple[Parameter, ...]) -> dict[Parameter, str]:
    """The C++ names of parameters that are not buffers, numbered within their kind."""
    names: dict[Parameter, str] = {}
    for parameter in parameters:
        number = sum(type(other) is type(parameter) for other in names)
        names[parameter] = f"{_SPELLING[type(parameter)][1]}{number}"
    return names


def _pointer(
    buffer: Buffer, name: str, written: list[Buffer], offsets: Mapping[Buffer, int]
) -> str:
    """The declaration of a pointer. Loads through `const __restrict__` use the read-only cache."""
    kind = c_type(buffer.type.dtype)
    if buffer in written:
        return f"{kind}* {name}"
    if any(overlap(buffer, other, offsets) for other in written):
        return f"const {kind}* {name}"
    return f"const {kind}* __restrict__ {name}"


def _identifier(text: str, taken: Collection[str]) -> str:
    """A C++ identifier that resembles a text and is not in use."""
    base = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    base = base if base and not base[0].isdigit() else f"k{base}"
    names = itertools.chain([base], (f"{base}_{n}" for n in itertools.count(2)))
    return next(name for name in names if name not in taken)
