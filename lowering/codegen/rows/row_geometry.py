"""The shape of rows: how many lanes share one, their steps, and how wide accesses are."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lowering.codegen import geometry_records as records
from lowering.codegen.geometry_records import FULL_DEVICE, RowGeometry
from lowering.codegen.rows.accumulator_layout import (
    TICKET_SHARED_BYTES,
    component_dtypes_of,
    partial_offsets,
)
from lowering.fusion.access_patterns import loop_is_contiguous, row_accesses
from lowering.hardware import VECTOR_BYTES, WORD_BYTES
from lowering.plan.kernel import RowNest
from lowering.plan.nest_analysis import nest_accumulators
from lowering.plan.rounding import ceil_div, power_of_two

STEPS_PER_LANE = 16  # loop steps below which a further split costs more than it saves
FEWEST_STEPS_PER_LANE = 4  # the same where there are less than SMALL_DEVICE blocks
SMALL_DEVICE = 64
STEPS_KEPT = 16  # loop steps of which a lane may keep values in registers from pass to pass
STEP_BYTES = 128  # of one value of all these steps, at most: registers for more leave few threads
LONG_WIDE = 512  # steps of rows of which a lane takes as many as it may keep, if they are wide


def row_geometry(nest: RowNest, threads: int, cluster: int = 1) -> RowGeometry:
    """Geometry of rows, from which of their indices runs through memory contiguously."""
    points, steps = prod(nest.space), prod(nest.loop)
    accumulators, once = nest_accumulators(nest), len(nest.passes) == 1
    adjacent = loop_is_contiguous(nest)
    width = row_width(nest) if adjacent else 1
    if adjacent:
        each = max(4, width) if once else steps_of_lane(nest, width)
        lanes = min(threads, power_of_two(ceil_div(steps, each)))
    else:
        neighbours = min(32, power_of_two(points), threads)
        lanes = min(threads // neighbours, power_of_two(ceil_div(steps, 8)))
    if cluster > 1:
        lanes = threads
    outputs = threads // lanes
    tiles = ceil_div(points, outputs)
    splits = 1
    if once and 0 < tiles < FULL_DEVICE:
        splits = _splits(steps, lanes, tiles, bool(nest.passes[0].stores))
    workspace = 0
    if splits > 1:
        workspace = partial_offsets(accumulators, points * splits, tiles)[-1]
    geometry = RowGeometry(
        outputs, lanes * cluster, adjacent, tiles, splits, 0, workspace, width, cluster
    )
    shared = geometry.shared_offsets(component_dtypes_of(accumulators))[-1]
    return replace(geometry, shared_bytes=shared + TICKET_SHARED_BYTES * (splits > 1))


def _splits(steps: int, lanes: int, tiles: int, stores: bool) -> int:
    """The blocks that share the loop of each tile of outputs.

    Where steps store, one block waits for memory at each: no load may pass the store before it.
    """
    splits = steps // (lanes * STEPS_PER_LANE)
    if not stores and splits <= 1:
        return 1
    if splits * tiles < SMALL_DEVICE:  # they are few, and have told each other soon
        splits = min(steps // (lanes * FEWEST_STEPS_PER_LANE), ceil_div(SMALL_DEVICE, tiles))
    return max(1, min(splits, FULL_DEVICE // tiles))


def steps_kept(nest: RowNest) -> int:
    """The loop steps of which a lane may keep values."""
    return min(STEPS_KEPT, STEP_BYTES // widest(nest))


def steps_of_lane(nest: RowNest, width: int) -> int:
    """The steps that a lane should have at least of a row of several passes: two vectors, or, where
    narrow elements are taken one by one, as many as two vectors have; for folding lanes costs, too.
    """
    size, steps = prod(nest.space) * prod(nest.loop), prod(nest.loop)
    if widest(nest) > WORD_BYTES and steps >= LONG_WIDE and size >= 4 * records.LARGE_ROWS:
        return steps_kept(nest)
    large = size >= records.LARGE_ROWS
    together = VECTOR_BYTES // widest(nest) if large else width
    return max(8, min(2 * max(width, together), steps_kept(nest)))


def widest(nest: RowNest) -> int:
    """The bytes of the widest element that is loaded or stored."""
    return max((access.buffer.type.dtype.itemsize for access in row_accesses(nest)), default=1)


def row_width(nest: RowNest) -> int:
    """The steps of contiguous rows that are accessed as one.

    Several passes move elements of four bytes and more one by one at the pace of memory. Each row
    begins at a multiple of the width.
    """
    steps = prod(nest.loop)
    sizes = [access.buffer.type.dtype.itemsize for access in row_accesses(nest)]
    several = len(nest.passes) > 1
    if prod(nest.space) * steps < records.LARGE_ROWS or (several and min(sizes, default=4) >= 4):
        return 1
    width = max(VECTOR_BYTES // max(sizes), 1)
    while (prod(nest.space) > 1 or several) and steps % width:
        width //= 2
    return width
