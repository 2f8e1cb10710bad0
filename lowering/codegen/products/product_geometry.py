"""TiledProduct geometry: the tile of each block, and how many blocks share the sums of a tile."""

from __future__ import annotations

from math import ceil

import numpy as np

from lowering.codegen.geometry_records import ProductGeometry
from lowering.codegen.rows.accumulator_layout import TICKET_BYTES, TICKET_SHARED_BYTES
from lowering.plan.nests.rounding import ceil_div, round_up
from lowering.plan.nests.tiled_products import TiledProduct, extent
from lowering.plan.target.hardware import (
    MULTIPROCESSORS,
    SHARED_BYTES,
    VECTOR_BYTES,
    WORD_BYTES,
)
from tracegraph.ir.scalar_values import Load

THREADS = 256

Shape = tuple[int, int, int, int]

SHAPES = (
    (16, 16, 8, 8),
    (16, 16, 8, 4),
    (16, 16, 4, 8),
    (16, 16, 4, 4),
    (32, 8, 4, 4),
    (8, 32, 4, 4),
    (32, 8, 2, 2),
    (8, 32, 2, 2),
    (16, 16, 2, 2),
)
"""Threads along rows and columns, and outputs of each thread along both."""

SLICED_SHAPES = (
    (8, 8, 8, 8),
    (8, 8, 8, 4),
    (8, 8, 4, 8),
    (8, 8, 4, 4),
    (16, 4, 4, 4),
    (4, 16, 4, 4),
    (8, 4, 8, 4),
    (4, 8, 4, 8),
    (8, 4, 4, 4),
    (4, 8, 4, 4),
    (4, 4, 4, 4),
)
"""The same for few outputs of long sums, whose products the threads of a block share in slices."""

SLICE_DEPTH = 8
"""Products of each sum that a slice has of a tile."""

MIN_SLICED = 1 << 12
"""Products of each sum that slices share, at least: fewer are few turns of a block."""

SMALL_SHAPES = (
    *[(side, side, each, each) for side in (2, 4, 8, 16) for each in (2, 3, 4)],
    (8, 4, 4, 4),
    (4, 8, 4, 4),
    (8, 2, 4, 2),
    (2, 8, 2, 4),
)
"""The same for batches of small matrices, of which a block has several."""

WARP_SHAPES = (
    (32, 8, 4, 16),
    (32, 8, 4, 8),
    (32, 8, 2, 8),
    (64, 4, 2, 8),
    (16, 16, 4, 8),
    (16, 16, 2, 4),
)
"""The same where warps of 8 × 4 threads multiply matrices: tiles of 128² to 32 × 64."""

WARP_SPEED = 4
"""How many times as fast tensor cores multiply: estimated from what warps read of tiles."""

LOAD = 2
"""What reading an element of a tile from shared memory takes, in multiplications: estimated from
the width of both units."""

GATHER = 8
"""What loading an element of a factor, and writing it to a tile, takes: estimated from what a
thread computes for its place."""

BANKS_OF_ROW = 8
"""Banks that a warp reads of each of four rows."""

FEW_WORDS, SOME_WORDS, SMALL_OUTPUTS = 32, 48, 16
"""Words of the outputs and next elements of a thread with which four and three blocks are resident,
the latter with few outputs."""

LATENCY = 400
"""What a load from memory takes, in multiplications of a thread of each warp: 0.5 µs. Another block
of the multiprocessor works meanwhile, if there is one: with two, derivatives by kernels of
convolutions took 0.5 to 0.9 of the time on an H100, and sums of rows by group 0.6."""

SMALL_TILE = 64 * 64
"""Outputs of a tile up to which it is twice as deep."""

PARTIAL = 8
"""What adding a partial sum of another block takes: estimated from what a multiprocessor loads."""

MIN_SHARE = 64
"""Products of a sum for each block that shares it, at least."""

MOST_OUTPUT_BYTES = 256
"""Bytes of a thread's outputs: 64 registers."""


def product_geometry(product: TiledProduct, dtype: np.dtype[np.generic]) -> ProductGeometry:
    """The geometry that takes the least time by estimate."""
    shapes = [s for s in SHAPES if s[2] * s[3] * dtype.itemsize <= MOST_OUTPUT_BYTES]
    if extent(product.batch) > 1:
        shapes += SMALL_SHAPES
    elif extent(product.summed) >= MIN_SLICED:
        shapes += [s for s in SLICED_SHAPES if s[2] * s[3] * dtype.itemsize <= MOST_OUTPUT_BYTES]
    by_warps = product.rounded and dtype == np.float32 and extent(product.batch) == 1
    if by_warps:
        shapes = [*WARP_SHAPES]
    found = [
        _geometry(product, dtype, shape, splits, by_warps)
        for shape in shapes
        for splits in _splits(product, shape)
    ]
    return min((g for g in found if g.shared_bytes <= SHARED_BYTES), key=_time)


def _splits(product: TiledProduct, shape: Shape) -> list[int]:
    """The numbers of blocks that may share the sums of a tile."""
    most = min(2 * MULTIPROCESSORS // _tiles(product, shape), extent(product.summed) // MIN_SHARE)
    return [1, *(n for k in range(8) for n in (2 << k, 3 << k) if n <= most)]


def _tiles(product: TiledProduct, shape: Shape) -> int:
    rows, columns, row_outputs, column_outputs = shape
    groups = 1 if extent(product.batch) == 1 else THREADS // (rows * columns)
    groups = ceil_div(extent(product.batch), groups)
    row_tiles = ceil_div(extent(product.rows), rows * row_outputs)
    return groups * row_tiles * ceil_div(extent(product.columns), columns * column_outputs)


def _geometry(
    product: TiledProduct,
    dtype: np.dtype[np.generic],
    shape: Shape,
    splits: int,
    by_warps: bool = False,
) -> ProductGeometry:
    rows, columns, row_outputs, column_outputs = shape
    together = THREADS // (rows * columns)
    batch, summed = extent(product.batch), extent(product.summed)
    groups, slices = (together, 1) if batch > 1 else (1, together)
    depth = 16 if dtype.itemsize <= WORD_BYTES else 8
    height, width = rows * row_outputs, columns * column_outputs
    if slices > 1:
        depth = slices * SLICE_DEPTH
    elif groups == 1 and height * width <= SMALL_TILE and summed > 2 * depth:
        depth *= 2  # fewer loads, each with as much to wait for
    row_tiles = ceil_div(extent(product.rows), height)
    column_tiles = ceil_div(extent(product.columns), width)
    tiles = _tiles(product, shape)
    share = round_up(ceil_div(summed, splits), depth)
    splits = ceil_div(summed, share)
    strides = padded(height, dtype, by_warps) + padded(width, dtype, by_warps)
    shared = groups * depth * strides * dtype.itemsize
    outputs = rows * columns * row_outputs * column_outputs
    if slices > 1:  # tiles of both factors, and then the sums of slices
        shared = max(shared, round_up((slices - 1) * outputs * dtype.itemsize, VECTOR_BYTES))
    workspace = 0
    if splits > 1:
        shared += TICKET_SHARED_BYTES
        workspace = partials_offset(tiles) + tiles * splits * groups * outputs * dtype.itemsize
    loaded = groups * (height + width) * depth // THREADS
    return ProductGeometry(
        *shape,
        groups=groups,
        slices=slices,
        depth=depth,
        batch=batch,
        row_tiles=row_tiles,
        column_tiles=column_tiles,
        splits=splits,
        share=share,
        shared_bytes=shared,
        workspace_bytes=workspace,
        resident=_resident(product, row_outputs * column_outputs, loaded, dtype.itemsize),
        by_warps=by_warps,
    )


def _resident(product: TiledProduct, outputs: int, loaded: int, itemsize: int) -> int:
    """The blocks that registers are left for: as many as fit without spilling, by trial; two of
    factors that are more than loads.
    """
    words = (outputs + loaded) * itemsize // WORD_BYTES
    if not all(isinstance(factor, Load) for factor in (product.left, product.right)):
        return 2
    return 4 if words <= FEW_WORDS else 3 if words <= SOME_WORDS and outputs <= SMALL_OUTPUTS else 2


def _time(geometry: ProductGeometry) -> float:
    """The time of a geometry, in multiplications of a thread."""
    m, n = geometry.row_outputs, geometry.column_outputs
    resident = geometry.resident
    waves = ceil(geometry.blocks / (resident * MULTIPROCESSORS))
    together = min(resident, ceil_div(geometry.blocks, MULTIPROCESSORS))
    turns = ceil_div(geometry.share, geometry.depth) + 4  # to begin, and to store
    loaded = geometry.groups * (geometry.height + geometry.width) / geometry.threads
    multiplied = (m * n + LOAD * (m + n)) / (WARP_SPEED if geometry.by_warps else geometry.slices)
    step = multiplied + GATHER * loaded
    each = turns * max(geometry.depth * step * together, geometry.depth * step + LATENCY)
    partials = geometry.splits / geometry.slices if geometry.splits > 1 else 0
    return waves * each + PARTIAL * partials * m * n


def padded(side: int, dtype: np.dtype[np.generic], by_warps: bool = False) -> int:
    """Elements from one row of a tile in shared memory to the next: those of vectors are aligned,
    and what a warp reads of four rows is in different banks.
    """
    return side + (BANKS_OF_ROW if by_warps else VECTOR_BYTES // dtype.itemsize)


def partials_offset(tiles: int) -> int:
    """Where partial sums begin in the workspace, behind a counter for each tile."""
    return round_up(tiles * TICKET_BYTES, VECTOR_BYTES)
