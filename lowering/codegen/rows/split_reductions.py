"""Split reduction: the text of a RowNest of one pass.

Lanes share the loop of a row; where rows are few, blocks split it further.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.effects.signals import write_results, write_stop_check
from lowering.codegen.expressions import index_type
from lowering.codegen.flatten import POINT, STEP, linear_axis
from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.rows.accumulator_layout import TICKET_SHARED_BYTES, partial_offsets
from lowering.codegen.rows.accumulators import NumberedAccumulator, folds_of
from lowering.codegen.rows.block_partials import (
    broadcast_ticket,
    declare_partials,
    poll,
    publish,
    take_ticket,
)
from lowering.codegen.rows.flat_passes import FlatPass, flattener_of
from lowering.codegen.rows.lane_loops import declare_lane, declare_shared, write_loop
from lowering.codegen.rows.lane_reduction import reduce_to_first_lane
from lowering.codegen.rows.vector_groups import usable
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import RowNest


def write_reduction(
    writer: SourceWriter, nest: RowNest, geometry: RowGeometry, workspace: str
) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    (only,) = nest.passes
    flat = flattener_of(nest)
    folds = folds_of(only.accumulators)
    flat_pass = FlatPass.of(only, folds, flat)
    geometry = usable(geometry, [flat_pass])
    write_stop_check(writer, map(flat.signal, nest.signals), nest.stores)
    declare_lane(writer, geometry, prod(nest.space))
    declare_shared(writer, folds, geometry)
    if geometry.splits > 1:
        take_ticket(writer, workspace, "tile")
    for fold in folds:
        fold.declare(writer, "total")
    with writer.block("if (live)"):
        writer.bind(linear_axis(POINT, nest.space), "point")
        write_loop(writer, flat_pass, linear_axis(STEP, nest.loop), geometry)
    reduce_to_first_lane(writer, folds, geometry)
    finishing = "live" if geometry.lanes == 1 else "live && lane == 0"
    if geometry.splits > 1:
        _reduce_splits(writer, nest, folds, geometry, workspace)
        finishing += " && last"
    if not nest.stores and not nest.signals:
        return
    with writer.block(f"if ({finishing})"):
        writer.bind(linear_axis(POINT, nest.space), "point")
        for fold in folds:
            writer.bind(*fold.result("total"))
        write_results(writer, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def _reduce_splits(
    writer: SourceWriter,
    nest: RowNest,
    folds: list[NumberedAccumulator],
    geometry: RowGeometry,
    workspace: str,
) -> None:
    """Let the block of a tile that began last fold the partials of all, in their order."""
    points = prod(nest.space)
    broadcast_ticket(writer, geometry.splits, geometry.shared_bytes - TICKET_SHARED_BYTES)
    writer.line(f"const bool last = arrival == {geometry.splits - 1};")
    offsets = partial_offsets(nest.passes[0].accumulators, points * geometry.splits, geometry.tiles)
    declare_partials(writer, folds, workspace, offsets)
    kind = index_type(points * geometry.splits)
    with writer.block("if (live && lane == 0)"):
        publish(writer, folds, f"({kind}(split) * {points} + point)")
    with writer.block("if (last)"):
        writer.line("__syncthreads();")  # all lanes have published before the block polls
        for fold in folds:
            fold.reset(writer, "total")
        with writer.block("if (live)"):
            slot = f"({kind}(other) * {points} + point)"
            poll(writer, folds, geometry, ("0", str(geometry.splits)), slot)
        reduce_to_first_lane(writer, folds, geometry)
