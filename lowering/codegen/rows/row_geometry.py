"""Row geometry: the lanes that share a row, the steps of each, and the width of accesses."""

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
from lowering.plan.nests.access_patterns import (
    loop_is_contiguous,
    row_accesses,
    steps_are_shared,
)
from lowering.plan.nests.analysis import nest_accumulators
from lowering.plan.nests.kernel import RowNest
from lowering.plan.nests.rounding import ceil_div, power_of_two
from lowering.plan.target.hardware import VECTOR_BYTES, WARP, WORD_BYTES

STEPS_PER_LANE = 16
"""Steps of a lane below which the loop of a row is not split further: partials cost more."""

SMALL_DEVICE, MIN_STEPS_PER_LANE = 64, 4
"""Blocks below which lanes may have fewer steps. Sums of 2**16 take two thirds of the time with it
(H200); 16 to 1056 blocks of 128 to 1024 threads were tried, and none are better."""

MIN_STEPS, MIN_STEPS_OF_COLUMN, MIN_STEPS_OF_PASSES = 4, 8, 8
"""Steps of a lane at least, in one pass over rows, one over columns, and several over rows: they
amortise the reduction of the lanes, which costs more by a tree, and once a pass. Set so, and not
varied in a benchmark since."""

STEPS_KEPT = 16
"""Steps of which a lane may keep values in registers from pass to pass."""

STEP_BYTES = 128
"""Bytes of one value of all these steps: 32 registers, an eighth of what a thread can have."""

LONG_WIDE = 512
"""Steps of rows from which lanes keep as much as they may of elements of more than a word: softmax
over rows of 4096 float64 reaches 96 % of a copy instead of 88 (H200)."""


def row_geometry(nest: RowNest, threads: int, cluster: int = 1) -> RowGeometry:
    """Geometry of rows: neighbouring threads access neighbouring steps, or neighbouring outputs."""
    points, steps = prod(nest.space), prod(nest.loop)
    accumulators, once = nest_accumulators(nest), len(nest.passes) == 1
    adjacent = loop_is_contiguous(nest)
    width = row_width(nest) if adjacent else 1
    if adjacent:
        each = max(MIN_STEPS, width) if once else steps_of_lane(nest, width)
        lanes = min(threads, power_of_two(ceil_div(steps, each)))
    elif steps_are_shared(nest):
        lanes = 1
    else:
        neighbours = min(WARP, power_of_two(points), threads)
        lanes = min(threads // neighbours, power_of_two(ceil_div(steps, MIN_STEPS_OF_COLUMN)))
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

    Steps that store are split sooner: a load may not pass the store before it, so a lane waits for
    memory at each step.
    """
    splits = steps // (lanes * STEPS_PER_LANE)
    if not stores and splits <= 1:
        return 1
    if splits * tiles < SMALL_DEVICE:  # polling few partials is short
        splits = min(steps // (lanes * MIN_STEPS_PER_LANE), ceil_div(SMALL_DEVICE, tiles))
    return max(1, min(splits, FULL_DEVICE // tiles))


def steps_kept(nest: RowNest) -> int:
    """The steps of which a lane may keep values in registers."""
    return min(STEPS_KEPT, STEP_BYTES // widest(nest))


def steps_of_lane(nest: RowNest, width: int) -> int:
    """The least steps of a lane in a row of several passes: as many as two vectors have, since
    reducing more lanes has a cost as well.
    """
    size, steps = prod(nest.space) * prod(nest.loop), prod(nest.loop)
    if widest(nest) > WORD_BYTES and steps >= LONG_WIDE and size >= 4 * records.LARGE_ROWS:
        return steps_kept(nest)
    large = size >= records.LARGE_ROWS
    together = VECTOR_BYTES // widest(nest) if large else width
    return max(MIN_STEPS_OF_PASSES, min(2 * max(width, together), steps_kept(nest)))


def widest(nest: RowNest) -> int:
    """Bytes of the widest element that is accessed."""
    return max((access.buffer.type.dtype.itemsize for access in row_accesses(nest)), default=1)


def row_width(nest: RowNest) -> int:
    """The steps of contiguous rows in one vector access; each row begins at a multiple of them.

    It is 1 for several passes over elements of a word or more: they reach 97 to 100 % of a copy
    without vectors (H200).
    """
    steps = prod(nest.loop)
    sizes = [access.buffer.type.dtype.itemsize for access in row_accesses(nest)]
    several = len(nest.passes) > 1
    if prod(nest.space) * steps < records.LARGE_ROWS or (
        several and min(sizes, default=WORD_BYTES) >= WORD_BYTES
    ):
        return 1
    width = max(VECTOR_BYTES // max(sizes), 1)
    while (prod(nest.space) > 1 or several) and steps % width:
        width //= 2
    return width
