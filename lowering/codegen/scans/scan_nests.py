"""The text of a ScanNest: a thread for each line, or a block, or several with look-back.

Several blocks share a line that is long if lines are few. Each reduces its split of the line and
publishes the total, polls the totals of the splits before its own, folds them in an order that
depends on shapes only, and scans its split. Splits are assigned in the order in which blocks begin,
so a block waits only for blocks that run already.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.constants import constant
from lowering.codegen.expressions import (
    combine,
    compute,
    hoist,
    index_type,
    operand,
    round_to,
    stored,
    value,
    widen,
    write_store,
)
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.geometry_records import MapGeometry, RowGeometry, ScanGeometry
from lowering.codegen.maps.maps import each_point
from lowering.codegen.maps.vector_accesses import declare_aligned, vectors_of
from lowering.codegen.preamble import c_type
from lowering.codegen.rows.accumulator_layout import partial_offsets
from lowering.codegen.rows.accumulators import folds_of
from lowering.codegen.rows.block_partials import (
    broadcast_ticket,
    declare_partials,
    poll,
    publish,
    take_ticket,
)
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.rows.lane_loops import declare_shared, write_loop
from lowering.codegen.rows.lane_reduction import reduce_to_all_lanes, reduce_to_first_lane
from lowering.codegen.scans.scan_tiles import ScanTile, fold_threads, load_items, store_items
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import Accumulator, ScanNest, Store
from lowering.plan.nests.rounding import share_of
from tracegraph.ir.scalar import Axis, const


def write_scan(
    writer: SourceWriter, nest: ScanNest, geometry: ScanGeometry, workspace: str
) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    others = [(axis, n) for axis, n in enumerate(nest.space) if axis != nest.axis]
    length = nest.space[nest.axis]
    flat = Flattener({POINT: others, STEP: [(nest.axis, length)]})
    store = flat.store(nest.store)
    extents = tuple(n for _, n in others)
    step = linear_axis(STEP, (length,))
    if geometry.by_block:
        if geometry.splits == 1:
            writer.line("const int point = block;")
        else:
            _take_split(writer, geometry, workspace)
        writer.bind(linear_axis(POINT, extents), "point")
        _block_scan(writer, nest, store, step, geometry, workspace)
        return
    with each_point(writer, prod(extents), MapGeometry(geometry.threads, 1, geometry.blocks)):
        writer.bind(linear_axis(POINT, extents), "point")
        _thread_scan(writer, nest, store, step)


def _thread_scan(writer: SourceWriter, nest: ScanNest, store: Store, step: Axis) -> None:
    """Scan a line in one thread, in order, rounding at each step."""
    dtype = store.value.dtype
    hoist(writer, stored([store]), step)
    writer.variable(c_type(dtype), "running")
    kind = index_type(step.extent + 1)  # it ends at the extent
    with writer.block(f"for ({kind} step = 0; step < {step.extent}; ++step)"):
        writer.bind(step, "step")
        compute(writer, stored([store]))
        folded = combine(
            nest.combiner, dtype, widen(dtype, "running"), operand(writer, store.value)
        )
        writer.line(
            f"running = step == 0 ? {value(writer, store.value)} : {round_to(dtype, folded)};"
        )
        write_store(writer, store, "running")


def _take_split(writer: SourceWriter, geometry: ScanGeometry, workspace: str) -> None:
    """Declare the block's `point` and `split`, by the order in which blocks begin."""
    take_ticket(writer, workspace, "0")
    broadcast_ticket(writer, geometry.blocks, 0)
    writer.line(
        f"const int point = arrival / {geometry.splits}, split = arrival % {geometry.splits};"
    )
    writer.line("__syncthreads();")  # all have read the ticket, which is overwritten next


def _look_back(
    writer: SourceWriter,
    nest: ScanNest,
    store: Store,
    step: Axis,
    geometry: ScanGeometry,
    workspace: str,
) -> None:
    """Publish the total of the block's split, and fold those of earlier splits into `carried`."""
    accumulators = (Accumulator(nest.combiner, store.value),)
    folds = folds_of(accumulators)
    lanes = RowGeometry(
        1, geometry.threads, True, geometry.blocks // geometry.splits, geometry.splits, 0, 0
    )
    writer.line("const int lane = thread;")
    declare_shared(writer, folds, lanes)
    declare_partials(writer, folds, workspace, partial_offsets(accumulators, geometry.blocks, 1))
    for fold in folds:
        fold.declare(writer, "total")
    with writer.block(""):
        write_loop(writer, FlatPass(folds, [store.value], []), step, lanes)
    reduce_to_first_lane(writer, folds, lanes)
    with writer.block("if (thread == 0)"):
        publish(writer, folds, "arrival")
    for fold in folds:
        fold.reset(writer, "total")
    writer.line("__syncthreads();")  # all have read what the next totals overwrite
    poll(writer, folds, lanes, ("arrival - split", "arrival"))
    reduce_to_all_lanes(writer, folds, lanes)
    writer.line("carried = total0;")
    writer.line("__syncthreads();")


def _block_scan(
    writer: SourceWriter,
    nest: ScanNest,
    store: Store,
    step: Axis,
    geometry: ScanGeometry,
    workspace: str,
) -> None:
    """Scan a line, or a split of one, in one block, tile by tile."""
    dtype, length = store.value.dtype, step.extent
    tile = ScanTile(nest.combiner, store, step, geometry.threads)
    hoist(writer, stored([store]), step)
    writer.line(f"{tile.kind}* const totals = reinterpret_cast<{tile.kind}*>(shared);")
    writer.line(f"{tile.kind} carried = {constant(const(nest.combiner.identity(dtype), dtype))};")
    share = share_of(length, geometry.splits, geometry.threads)
    number = index_type(share * geometry.splits + tile.size)
    begin, end = "0", str(length)
    if geometry.splits > 1:
        _look_back(writer, nest, store, step, geometry, workspace)
        begin, end = f"{number}(split) * {share}", "end"
        writer.line(
            f"const {number} end = {begin} + {share} < {length} ? {begin} + {share} : {length};"
        )
    vectors = vectors_of([store], tile.width, (), STEP)
    aligned = declare_aligned(writer, vectors.accesses, tile.width)
    with writer.block(f"for ({number} base = {begin}; base < {end}; base += {tile.size})"):
        writer.line(f"const bool whole = base + {tile.size} <= {end};")
        load_items(writer, tile, vectors, aligned, number, end)
        fold_threads(writer, tile)
        store_items(writer, tile, vectors, aligned, number, end)
        writer.line("__syncthreads();")
