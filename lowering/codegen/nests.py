"""Nests of any kind: their buffers, their parameters, and their text for one block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from lowering.codegen.constants import constant
from lowering.codegen.effects.call_nests import call_parameters, write_call
from lowering.codegen.effects.print_nests import print_site, write_print
from lowering.codegen.effects.signals import signal_parameters
from lowering.codegen.geometry_records import (
    LaunchGeometry,
    MapGeometry,
    PrintGeometry,
    ProductGeometry,
    RowGeometry,
    ScanGeometry,
    ScatterGeometry,
    TileGeometry,
    workspace_bytes,
)
from lowering.codegen.kernel_parameters import Parameter, PrintRingAddress
from lowering.codegen.maps.maps import write_map
from lowering.codegen.maps.tiles import write_tiles
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.products.product_tiles import write_product
from lowering.codegen.rows.register_caching import write_rows
from lowering.codegen.rows.split_reductions import write_reduction
from lowering.codegen.scans.scan_nests import write_scan
from lowering.codegen.scatters import write_scatter
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.analysis import nest_loads, nest_signals, stored_buffers
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import CallNest, MapNest, PrintNest, RowNest, ScanNest, ScatterNest
from lowering.plan.nests.rounding import round_up
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.ir.scalar import const


def write_nest(
    writer: SourceWriter,
    nest: CanonicalNest,
    geometry: LaunchGeometry,
    workspace: str,
    leave: str = "return",
) -> None:
    """Write a nest; `block` and `thread` are declared, and the block is the nest's own.

    A block that has nothing to do leaves by the statement `leave`.
    """
    if nest.predicates:
        # | and not ||: no load waits for another. All threads of a block take the same branch.
        tests = (
            f"(*{writer.pointers[p.flag]} != {constant(const(p.value, p.flag.type.dtype))})"
            for p in nest.predicates
        )
        writer.line(f"if ({' | '.join(tests)}) {leave};")
    match nest, geometry:
        case MapNest(), MapGeometry():
            write_map(writer, nest, geometry)
        case MapNest(), TileGeometry():
            write_tiles(writer, nest, geometry)
        case ScatterNest(), ScatterGeometry():
            write_scatter(writer, nest, geometry)
        case RowNest(), ProductGeometry():
            write_product(writer, nest, geometry, f"({workspace})")
        case RowNest(passes=(_,)), RowGeometry():
            write_reduction(writer, nest, geometry, f"({workspace})")
        case RowNest(), RowGeometry():
            write_rows(writer, nest, geometry)
        case ScanNest(), ScanGeometry():
            write_scan(writer, nest, geometry, f"({workspace})")
        case CallNest(), PrintGeometry():
            write_call(writer, nest, geometry)
        case PrintNest(), PrintGeometry():
            write_print(writer, nest, geometry)


def write_nests(
    writer: SourceWriter,
    nests: Sequence[CanonicalNest],
    geometries: Sequence[LaunchGeometry],
    cluster: int = 1,
    before: int = 0,
) -> int:
    """Write each nest for its range of blocks, behind a number of others. Returns the blocks of
    all, in whole clusters.
    """
    busy = [
        (nest, geometry)
        for nest, geometry in zip(nests, geometries, strict=True)
        if geometry.blocks
    ]
    start, used = before, 0
    for position, (nest, geometry) in enumerate(busy):
        stop = start + geometry.blocks
        workspace = f"workspace + {used}" if used else "workspace"
        used += round_up(workspace_bytes(geometry), ALIGNMENT)
        if len(busy) == 1:
            first = f" - {start}" if start else ""
            writer.line(f"const int block = int(blockIdx.x){first};")
            write_nest(writer, nest, geometry, workspace)
        else:
            last = position == len(busy) - 1 and stop % cluster == 0
            test = "else" if last else f"if (blockIdx.x < {stop}u)"
            with writer.block(test if position == 0 or last else f"else {test}"):
                writer.line(f"const int block = int(blockIdx.x) - {start};")
                write_nest(writer, nest, geometry, workspace)
        start = stop
    return round_up(start, cluster) - before


def nest_parameters(
    nest: CanonicalNest, loops: Set[int], words: Set[int] = frozenset()
) -> Iterator[Parameter]:
    """The parameters of a nest besides buffers and workspace."""
    yield from signal_parameters(nest_signals(nest), loops, words)
    if isinstance(nest, CallNest):
        yield from call_parameters(nest)
    elif isinstance(nest, PrintNest):
        yield PrintRingAddress()
        yield print_site(nest)


def buffers_of(nests: Iterable[CanonicalNest]) -> tuple[list[Buffer], list[Buffer]]:
    """The buffers that a kernel reads, and those that it writes, in order of first use."""
    read: dict[Buffer, None] = {}
    written: dict[Buffer, None] = {}
    for nest in nests:
        read.update((predicate.flag, None) for predicate in nest.predicates)
        read.update((load.buffer, None) for load in nest_loads(nest))
        written.update((buffer, None) for buffer in stored_buffers(nest))
    return list(read), list(written)
