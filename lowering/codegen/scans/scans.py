"""The text of a ScanNest: a thread a line, or a block, or several, where lines are few and long.

Several blocks first fold their shares of the line. Each then folds what the shares before its own
gave, in an order that depends on the shapes only, and goes through its share again. Shares are
given out in the order in which blocks begin: who waits, waits for blocks that run already.
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
from lowering.codegen.geometry_records import MapShape, ReduceShape, ScanShape
from lowering.codegen.maps.maps import each_point
from lowering.codegen.maps.vectors import declare_aligned, vectors_of
from lowering.codegen.preamble import c_type
from lowering.codegen.rows.accumulator_layout import told_offsets
from lowering.codegen.rows.accumulators import folds_of
from lowering.codegen.rows.block_partials import declare_told, hear, share_ticket, take_ticket, tell
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.rows.lane_reduction import fold_to_all, fold_to_first
from lowering.codegen.rows.lanes import share_cells, walk
from lowering.codegen.scans.scan_tiles import ScanTile, fold_threads, load_items, store_items
from lowering.codegen.source_writer import Body
from lowering.plan.kernel import Accumulator, ScanNest, Store
from lowering.plan.rounding import share_of
from tracegraph.ir.scalar import Axis, const


def write_scan(body: Body, nest: ScanNest, shape: ScanShape, workspace: str) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    others = [(axis, n) for axis, n in enumerate(nest.space) if axis != nest.axis]
    length = nest.space[nest.axis]
    flat = Flattener({POINT: others, STEP: [(nest.axis, length)]})
    store = flat.store(nest.store)
    extents = tuple(n for _, n in others)
    step = linear_axis(STEP, (length,))
    if shape.together:
        if shape.splits == 1:
            body.line("const int point = block;")
        else:
            _take_share(body, shape, workspace)
        body.bind(linear_axis(POINT, extents), "point")
        _together(body, nest, store, step, shape, workspace)
        return
    with each_point(body, prod(extents), MapShape(shape.threads, 1, shape.blocks)):
        body.bind(linear_axis(POINT, extents), "point")
        _alone(body, nest, store, step)


def _alone(body: Body, nest: ScanNest, store: Store, step: Axis) -> None:
    """One thread folds one line in order, rounding at each step."""
    dtype = store.value.dtype
    hoist(body, stored([store]), step)
    body.line(f"{c_type(dtype)} running;")
    kind = index_type(step.extent + 1)  # it ends at the extent
    with body.block(f"for ({kind} step = 0; step < {step.extent}; ++step)"):
        body.bind(step, "step")
        compute(body, stored([store]))
        folded = combine(nest.combiner, dtype, widen(dtype, "running"), operand(body, store.value))
        body.line(f"running = step == 0 ? {value(body, store.value)} : {round_to(dtype, folded)};")
        write_store(body, store, "running")


def _take_share(body: Body, shape: ScanShape, workspace: str) -> None:
    """Declare the block's `point` and `split`, by the number of blocks that began before it."""
    take_ticket(body, workspace, "0")
    share_ticket(body, shape.blocks, 0)
    body.line(f"const int point = place / {shape.splits}, split = place % {shape.splits};")
    body.line("__syncthreads();")  # all have read the ticket, which the folds' cells replace


def _fold_shares(
    body: Body, nest: ScanNest, store: Store, step: Axis, shape: ScanShape, workspace: str
) -> None:
    """Fold the shares before the block's own into `carried`, telling others its own result."""
    accumulators = (Accumulator(nest.combiner, store.value),)
    folds = folds_of(accumulators)
    lanes = ReduceShape(1, shape.threads, True, shape.blocks // shape.splits, shape.splits, 0, 0)
    body.line("const int lane = thread;")
    share_cells(body, folds, lanes)
    declare_told(body, folds, workspace, told_offsets(accumulators, shape.blocks, 1))
    for fold in folds:
        fold.declare(body, "total")
    with body.block(""):
        walk(body, FlatPass(folds, [store.value], []), step, lanes)
    fold_to_first(body, folds, lanes)
    with body.block("if (thread == 0)"):
        tell(body, folds, "place")
    for fold in folds:
        fold.reset(body, "total")
    body.line("__syncthreads();")  # all have read what the next totals replace
    hear(body, folds, lanes, ("place - split", "place"))
    fold_to_all(body, folds, lanes)
    body.line("carried = total0;")
    body.line("__syncthreads();")


def _together(
    body: Body, nest: ScanNest, store: Store, step: Axis, shape: ScanShape, workspace: str
) -> None:
    """One block folds one line or its share, tile by tile."""
    dtype, length = store.value.dtype, step.extent
    tile = ScanTile(nest.combiner, store, step, shape.threads)
    hoist(body, stored([store]), step)
    body.line(f"{tile.kind}* const totals = reinterpret_cast<{tile.kind}*>(shared);")
    body.line(f"{tile.kind} carried = {constant(const(nest.combiner.identity(dtype), dtype))};")
    share = share_of(length, shape.splits, shape.threads)
    number = index_type(share * shape.splits + tile.size)
    begin, end = "0", str(length)
    if shape.splits > 1:
        _fold_shares(body, nest, store, step, shape, workspace)
        begin, end = f"{number}(split) * {share}", "end"
        body.line(
            f"const {number} end = {begin} + {share} < {length} ? {begin} + {share} : {length};"
        )
    vectors = vectors_of([store], tile.width, (), STEP)
    aligned = declare_aligned(body, vectors.accesses, tile.width)
    with body.block(f"for ({number} base = {begin}; base < {end}; base += {tile.size})"):
        body.line(f"const bool whole = base + {tile.size} <= {end};")
        load_items(body, tile, vectors, aligned, number, end)
        fold_threads(body, tile)
        store_items(body, tile, vectors, aligned, number, end)
        body.line("__syncthreads();")
