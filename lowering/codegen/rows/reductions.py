"""The text of a RowNest of one pass: lanes share the loop of a row, blocks may share it further."""

from __future__ import annotations

from math import prod

from lowering.codegen.expressions import index_type
from lowering.codegen.flatten import POINT, STEP, linear_axis
from lowering.codegen.geometry_records import ReduceShape
from lowering.codegen.rows.accumulator_layout import PLACE_BYTES, told_offsets
from lowering.codegen.rows.accumulators import Fold, folds_of
from lowering.codegen.rows.block_partials import declare_told, hear, share_ticket, take_ticket, tell
from lowering.codegen.rows.flat_passes import FlatPass, flattener_of
from lowering.codegen.rows.lane_reduction import fold_to_first
from lowering.codegen.rows.lanes import place_thread, share_cells, walk
from lowering.codegen.rows.vector_groups import usable
from lowering.codegen.signals import write_results, write_stop_check
from lowering.codegen.source_writer import Body
from lowering.plan.kernel import RowNest


def write_reduction(body: Body, nest: RowNest, shape: ReduceShape, workspace: str) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    (only,) = nest.passes
    flat = flattener_of(nest)
    folds = folds_of(only.accumulators)
    flat_pass = FlatPass.of(only, folds, flat)
    shape = usable(shape, [flat_pass])
    write_stop_check(body, nest.signals)
    place_thread(body, shape, prod(nest.space))
    share_cells(body, folds, shape)
    if shape.splits > 1:
        take_ticket(body, workspace, "tile")
    for fold in folds:
        fold.declare(body, "total")
    with body.block("if (live)"):
        body.bind(linear_axis(POINT, nest.space), "point")
        walk(body, flat_pass, linear_axis(STEP, nest.loop), shape)
    fold_to_first(body, folds, shape)
    finishing = "live" if shape.lanes == 1 else "live && lane == 0"
    if shape.splits > 1:
        _fold_splits(body, nest, folds, shape, workspace)
        finishing += " && last"
    if not nest.stores and not nest.signals:
        return
    with body.block(f"if ({finishing})"):
        body.bind(linear_axis(POINT, nest.space), "point")
        for fold in folds:
            body.bind(*fold.result("total"))
        write_results(body, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def _fold_splits(
    body: Body, nest: RowNest, folds: list[Fold], shape: ReduceShape, workspace: str
) -> None:
    """Let the block that began last of a tile fold the results of all, in their order."""
    points = prod(nest.space)
    share_ticket(body, shape.splits, shape.shared_bytes - PLACE_BYTES)
    body.line(f"const bool last = place == {shape.splits - 1};")
    offsets = told_offsets(nest.passes[0].accumulators, points * shape.splits, shape.tiles)
    declare_told(body, folds, workspace, offsets)
    kind = index_type(points * shape.splits)
    with body.block("if (live && lane == 0)"):
        tell(body, folds, f"({kind}(split) * {points} + point)")
    with body.block("if (last)"):
        body.line("__syncthreads();")  # its own lanes need not listen before it has told
        for fold in folds:
            fold.reset(body, "total")
        with body.block("if (live)"):
            slot = f"({kind}(other) * {points} + point)"
            hear(body, folds, shape, ("0", str(shape.splits)), slot)
        fold_to_first(body, folds, shape)
