"""Launch geometry: the blocks and threads of each nest, and the work of each thread.

All sizes are static, so geometry is decided before any text is written. Thresholds without a figure
follow from the hardware limit that they name; no benchmark has varied them alone.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from lowering.codegen import geometry_records as records
from lowering.codegen.geometry_records import (
    FULL_DEVICE,
    LaunchGeometry,
    MapGeometry,
    PrintGeometry,
    ScanGeometry,
    ScatterGeometry,
    TileGeometry,
)
from lowering.codegen.maps.guarded_groups import can_be_grouped
from lowering.codegen.maps.transpose_tiles import Transpose, find_transpose
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.products.product_geometry import THREADS as PRODUCT_THREADS
from lowering.codegen.products.product_geometry import product_geometry
from lowering.codegen.rows.accumulator_layout import (
    TICKET_SHARED_BYTES,
    accumulator_bytes,
    partial_offsets,
)
from lowering.codegen.rows.cluster_geometry import (
    cluster_of,
    cluster_threads,
    max_row_threads,
)
from lowering.codegen.rows.row_geometry import MIN_STEPS, row_geometry, steps_kept
from lowering.plan.nests.access_patterns import loop_is_contiguous
from lowering.plan.nests.analysis import loads, nest_accumulators
from lowering.plan.nests.kernel import (
    Accumulator,
    MapNest,
    PrintNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)
from lowering.plan.nests.rounding import ceil_div, power_of_two, round_up
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.target.hardware import (
    MAX_BLOCK_THREADS,
    SHARED_BYTES,
    VECTOR_BYTES,
    WARP,
    WORD_BYTES,
)
from tracegraph.dtypes import is_half
from tracegraph.ir.combiners import ADD, MULTIPLY
from tracegraph.ir.scalar_values import Load

MAX_THREADS = 256
"""Threads of a block: eight such blocks fill a multiprocessor, so the tail of a grid is short."""

VECTORS_PER_THREAD = 2
"""Independent loads of each thread. Large maps reach 96 to 100 % of a copy with two (H200)."""

FEW_WIDE = 8
"""Points for each resident thread, below which elements of eight bytes are not vectorised: sines of
2**20 float64 take 4.4 us then, and 5.0 with vectors (H200)."""

LONG_SCATTER = 64
"""Sequential updates from which several threads share a point, each with its own targets."""

MIN_UPDATES = 8
"""Updates of each thread that shares a point: fewer would not amortise the indices of all."""

MAX_OWNERS = 4096
"""Threads that share the updates of all points: each evaluates every target's index."""

MAX_SWAPS = 256
"""Updates of each element, on average, that compare-and-swap makes: at one address, one succeeds in
each round trip to the L2 cache, so more would take longer than updates in order."""

MAX_FOLDED = 2048
"""Elements of a target up to which blocks fold updates in shared memory, 32 KiB of complex128. By
atomics in global memory alone, 1 M float64 take 470 us to 8 places and 18 to 100,000 (H100)."""

FOLDED_UPDATES = 16
"""Updates that a block folds for each of its threads, and for each element that it adds at the end.
"""

MIN_FOLDING_BLOCKS = 64
"""Blocks that fold sums, at least: fewer would leave half of the multiprocessors idle."""

LONG_LINE = 256
"""Steps of a scan from which a block has work for each of its threads."""

MIN_SPLIT = 4096
"""Steps of a scan for each block that shares a line: it reads them twice."""

MAX_SPLITS = 2048
"""Blocks that share the lines of a scan. Each polls the partials of all before it."""

MAX_LONG_LINES = 2048
"""Lines of a scan up to which each gets a block; with more, a thread for each fills the device."""


def block_threads(nests: tuple[CanonicalNest, ...]) -> int:
    """Threads of each block of a kernel: a power of two, no more than its nests can use."""
    wanted = max((_demand(nest) for nest in nests), default=1)
    rows = [nest for nest in nests if isinstance(nest, RowNest)]
    most = max((_max_row_threads(nest) for nest in rows), default=MAX_THREADS)
    threads = min(max(power_of_two(wanted), WARP), most)
    widest = max((accumulator_bytes(nest_accumulators(nest)) for nest in rows), default=1)
    while threads * widest > SHARED_BYTES - TICKET_SHARED_BYTES and threads > 1:
        threads //= 2
    return threads


def nest_geometry(nest: CanonicalNest, threads: int, cluster: int = 1) -> LaunchGeometry:
    """The geometry of one nest, in blocks of `threads` threads and clusters of `cluster` blocks."""
    match nest:
        case MapNest():
            found = find_transpose(nest)
            return (
                map_geometry(nest, threads)
                if found is None
                else tile_geometry(nest, found, threads)
            )
        case RowNest():
            product = tiled_product(nest) if threads == PRODUCT_THREADS else None
            if product is not None:
                return product_geometry(product, product.left.dtype)
            return row_geometry(nest, threads, cluster)
        case ScanNest():
            return scan_geometry(nest, threads)
        case ScatterNest():
            return scatter_geometry(nest, threads)
        case PrintNest():
            return PrintGeometry(threads)


def map_geometry(nest: MapNest, threads: int) -> MapGeometry:
    """Geometry of independent points.

    A thread has one point, or one vector, until there are more threads than are resident.
    """
    points = prod(nest.space)
    if points < records.MANY_THREADS:
        return MapGeometry(threads, 1, ceil_div(points, threads))
    accesses: list[Load | Store] = [*nest.stores, *loads([store.value for store in nest.stores])]
    arrays = [access for access in accesses if access.buffer.type.size > 1] or accesses
    widest = max(access.buffer.type.dtype.itemsize for access in arrays)
    width = max(VECTOR_BYTES // widest, 1)
    few_wide = widest > WORD_BYTES and points < FEW_WIDE * records.MANY_THREADS
    if few_wide or not can_be_grouped(nest, width):
        width = 1
    each = width if points < width * records.MANY_THREADS else width * VECTORS_PER_THREAD
    if any(store.buffer.space == "input" for store in nest.stores):
        points += width - 1  # the first group may begin before the first point
    return MapGeometry(threads, each, ceil_div(points, threads * each), width)


def tile_geometry(nest: MapNest, found: Transpose, threads: int) -> TileGeometry:
    """Geometry of a map that goes through shared memory: one tile for each block."""
    transposed = found.stored, found.loaded
    tiles = prod(found.tiles(axis, nest.space) for axis in transposed)
    others = prod(extent for axis, extent in enumerate(nest.space) if axis not in transposed)
    return TileGeometry(threads, found, tiles * others, found.offsets()[-1])


def scan_geometry(nest: ScanNest, threads: int) -> ScanGeometry:
    """Geometry of a scan.

    A thread for each line folds float16 and bfloat16, which are rounded at each step, and nests in
    kernels whose blocks are smaller than a warp.
    """
    length, dtype = nest.space[nest.axis], nest.store.value.dtype
    lines = prod(n for axis, n in enumerate(nest.space) if axis != nest.axis) if length else 0
    by_block = length >= LONG_LINE and lines <= MAX_LONG_LINES and not is_half(dtype)
    by_block = by_block and threads >= WARP
    if by_block:
        splits = 1
        if 0 < lines < FULL_DEVICE:
            splits = max(1, min(MAX_SPLITS // lines, length // MIN_SPLIT))
        geometry = ScanGeometry(
            threads, True, lines * splits, threads * max(dtype.itemsize, 8), splits
        )
        if splits > 1:
            nbytes = partial_offsets(
                (Accumulator(nest.combiner, nest.store.value),), geometry.blocks, 1
            )
            geometry = replace(geometry, workspace_bytes=nbytes[-1])
        return geometry
    return ScanGeometry(threads, False, ceil_div(lines, threads), 0)


def scatter_geometry(nest: ScatterNest, threads: int) -> ScatterGeometry:
    """Geometry of updates: all in parallel, by atomics or in groups, or the first axes in order at
    each point.

    In order, an index costs little beside an update, which waits for memory. Several threads
    evaluate all indices of a point, and each updates the targets that it owns.
    """
    if nest.any_order:
        contended = _contended(nest)
        folding = _folding_geometry(nest, threads, 1 if contended else MIN_FOLDING_BLOCKS)
        if folding is not None:
            return folding
        if not contended:
            return ScatterGeometry(threads, 1, ceil_div(prod(nest.space), threads), atomic=True)
    if nest.grouped:
        return ScatterGeometry(threads, 1, ceil_div(prod(nest.space), threads), grouped=True)
    steps, points = prod(nest.space[: nest.repeats]), prod(nest.space[nest.repeats :])
    owners = 1
    if steps >= LONG_SCATTER and points:
        owners = max(1, min(power_of_two(steps) // MIN_UPDATES, MAX_OWNERS // power_of_two(points)))
    return ScatterGeometry(threads, owners, ceil_div(points * owners, threads) if steps else 0)


def _folding_geometry(nest: ScatterNest, threads: int, least_blocks: int) -> ScatterGeometry | None:
    """Geometry of updates that each block folds in shared memory; None if that would not pay."""
    dtype, places = nest.store.value.dtype, prod(nest.store.buffer.type.shape)
    if is_half(dtype) or places > MAX_FOLDED:
        return None
    updates = prod(nest.space)
    blocks = min(FULL_DEVICE, updates // (FOLDED_UPDATES * max(threads, places)))
    if blocks < least_blocks:
        return None
    each = ceil_div(updates, blocks * threads)
    return ScatterGeometry(
        threads, 1, blocks, True, each, round_up(places * dtype.itemsize, WORD_BYTES)
    )


def _contended(nest: ScatterNest) -> bool:
    """Whether updates by compare-and-swap would mostly fail, since all change few elements.

    Extremes and bools change an element rarely. Sums are single instructions, but for integers of
    less than a word, and bfloat16 on devices before sm_90.
    """
    dtype = nest.store.value.dtype
    narrow = dtype.itemsize < WORD_BYTES and dtype != np.float16
    swapped = nest.combiner is MULTIPLY or (nest.combiner is ADD and narrow)
    if not swapped or dtype.kind == "b":
        return False
    return prod(nest.space) > MAX_SWAPS * prod(nest.store.buffer.type.shape)


def _demand(nest: CanonicalNest) -> int:
    match nest:
        case RowNest(space=space, loop=loop):
            return prod(space) * ceil_div(prod(loop), MIN_STEPS)
        case ScanNest(space=space, axis=axis):
            return MAX_THREADS if space[axis] >= LONG_LINE else prod(space)
        case ScatterNest():
            geometry = scatter_geometry(nest, MAX_THREADS)
            is_parallel = geometry.atomic or geometry.grouped
            points = prod(nest.space[0 if is_parallel else nest.repeats :])
            return points * geometry.owners
        case PrintNest(arguments=arguments):
            return max((prod(a.shape) for a in arguments), default=1)
        case MapNest(space=space):
            return prod(space)


def _max_row_threads(nest: RowNest) -> int:
    """The most threads of a block: for several passes, as many as keep the row in registers."""
    if len(nest.passes) == 1:
        return MAX_THREADS
    if cluster_of(nest) > 1:
        return cluster_threads(nest)
    lanes = power_of_two(ceil_div(prod(nest.loop), steps_kept(nest)))
    if loop_is_contiguous(nest):
        return min(max(lanes, MAX_THREADS), max_row_threads(nest))
    neighbours = min(WARP, power_of_two(prod(nest.space)))
    return min(max(lanes * neighbours, MAX_THREADS), MAX_BLOCK_THREADS)
