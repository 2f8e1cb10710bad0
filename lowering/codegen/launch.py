"""Launch geometry: how many blocks a nest gets, and what each of their threads does.

All sizes are static, so geometry is decided here, before any text is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from lowering.codegen.crossings import Crossing, crossing
from lowering.codegen.offsets import offsets_of
from lowering.codegen.plain import PlainNest
from lowering.codegen.shapes import (
    MapShape,
    PrintShape,
    ReduceShape,
    ScanShape,
    ScatterShape,
    Shape,
    TileShape,
)
from lowering.contiguity import VECTOR_BYTES, loop_is_contiguous, row_accesses
from lowering.kernel import (
    Accumulator,
    MapNest,
    PrintNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)
from lowering.preamble import is_half
from lowering.rows import KEPT_ROW, MOST_CLUSTER, most_shares
from tracegraph.scalar import INDEX, Load
from tracegraph.subexpressions import subexpressions

MOST_THREADS = 256
FEWEST_THREADS = 32
FULL_DEVICE = 512  # blocks that keep a large GPU busy
LARGE_MAP = 1 << 20  # points from which a thread takes several, to have more loads in flight
VECTORS_PER_THREAD = 2
WORD = 4  # bytes that an access is to move at least
STEPS_PER_LANE = 16  # loop steps below which a further split costs more than it saves
FEWEST_STEPS_PER_LANE = 4  # the same where there are less than SMALL_DEVICE blocks
SMALL_DEVICE = 64
STEPS_KEPT = 16  # loop steps of which a lane may keep values in registers from pass to pass
STEP_BYTES = 64  # of one value of all these steps, at most: registers for more leave few threads
MOST_ROW_THREADS = 1024
CLUSTER_THREADS = 256  # of a block of a cluster; twice as many where they would keep too much
CLUSTER_STEPS = KEPT_ROW // (MOST_CLUSTER * CLUSTER_THREADS)  # that a lane may keep values of
MULTIPROCESSOR_THREADS = 1024  # of clusters, that share its registers
CLUSTER_WORDS = 50  # of values that each of them can keep beside what it computes with
MOST_CLUSTER_WORDS = 56  # the same where a block less runs at a time
SHARED_LIMIT = 48 << 10
TICKET_BYTES = 8  # of what numbers the blocks that share a loop
PLACE_BYTES = 16  # of shared memory, from which all threads of a block learn its ticket
LONG_WALK = 64
MOST_WALKERS = 4096
LONG_LINE = 1024
LEAST_SHARE = 4096
MOST_SHARES = 2048
MOST_LONG_LINES = 2048


def block_threads(nests: tuple[PlainNest, ...]) -> int:
    """Threads in each block of a kernel of nests: a power of two, as few as these can use."""
    wanted = max((_demand(nest) for nest in nests), default=1)
    rows = [nest for nest in nests if isinstance(nest, RowNest)]
    most = max((_most_row_threads(nest) for nest in rows), default=MOST_THREADS)
    threads = min(max(_power_of_two(wanted), FEWEST_THREADS), most)
    widest = max((cell_bytes(accumulators_of(nest)) for nest in rows), default=1)
    while threads * widest > SHARED_LIMIT - PLACE_BYTES and threads > 1:
        threads //= 2
    return threads


def cluster_of(nest: PlainNest) -> int:
    """The blocks that are to share each row.

    They are several where passes over contiguous rows need more than one block can keep.
    """
    if not isinstance(nest, RowNest) or len(nest.passes) == 1 or not loop_is_contiguous(nest):
        return 1
    points, steps = prod(nest.space), prod(nest.loop)
    if not points or steps <= MOST_ROW_THREADS * steps_kept(nest):
        return 1
    busy = _power_of_two(min(_ceil(FULL_DEVICE, points), most_shares(steps)))
    cluster, threads = max(busy, 2), _cluster_threads(nest)
    while cluster < MOST_CLUSTER and _words_of_lane(nest, cluster * threads) > CLUSTER_WORDS:
        cluster *= 2
    return cluster


def _cluster_threads(nest: RowNest) -> int:
    """The threads of a block of a cluster."""
    words = _words_of_lane(nest, MOST_CLUSTER * CLUSTER_THREADS)
    return CLUSTER_THREADS if words <= MOST_CLUSTER_WORDS else 2 * CLUSTER_THREADS


def _words_of_lane(nest: RowNest, lanes: int) -> int:
    """The registers that hold one value of each of a lane's elements."""
    width = row_width(nest)
    items = _ceil(prod(nest.loop), lanes * width) * width
    return items * max(_widest(nest) // WORD, 1)


def resident_blocks(nests: Sequence[PlainNest], threads: int, cluster: int) -> int:
    """The blocks that each multiprocessor should run at a time, for which the compiler has to save
    registers: while some wait for the others of their cluster, the rest go on. 1 if any will do.
    """
    rows = [nest for nest in nests if isinstance(nest, RowNest) and cluster_of(nest) > 1]
    words = max((_words_of_lane(nest, cluster * threads) for nest in rows), default=0)
    if not rows or words > MOST_CLUSTER_WORDS:
        return 1
    blocks = MULTIPROCESSOR_THREADS // threads
    return blocks if words <= CLUSTER_WORDS else blocks - 1


def nest_shape(nest: PlainNest, threads: int, cluster: int = 1) -> Shape:
    """The geometry of one nest in blocks of `threads` threads; of rows, in clusters of blocks."""
    match nest:
        case MapNest():
            found = crossing(nest)
            return map_shape(nest, threads) if found is None else tile_shape(nest, found, threads)
        case RowNest():
            return reduce_shape(nest, threads, cluster)
        case ScanNest():
            return scan_shape(nest, threads)
        case ScatterNest(space=space, repeats=repeats):
            return scatter_shape(prod(space[:repeats]), prod(space[repeats:]), threads)
        case PrintNest():
            return PrintShape(threads)


def map_shape(nest: MapNest, threads: int) -> MapShape:
    """Geometry of independent points: the one place that decides what a thread takes on."""
    points = prod(nest.space)
    if points < LARGE_MAP:
        return MapShape(threads, 1, _ceil(points, threads))
    roots = tuple(store.value for store in nest.stores)
    loads = [expr for expr in subexpressions(roots) if isinstance(expr, Load)]
    accesses: list[Load | Store] = [*nest.stores, *loads]
    widest = max(access.buffer.type.dtype.itemsize for access in accesses)
    width = max(VECTOR_BYTES // widest, 1)
    each = width * VECTORS_PER_THREAD
    if any(store.buffer.space == "input" for store in nest.stores):
        points += width - 1  # the first group may begin before the first point
    return MapShape(threads, each, _ceil(points, threads * each), width)


def tile_shape(nest: MapNest, found: Crossing, threads: int) -> TileShape:
    """Geometry of a map with a crossing."""
    crossed = found.stored, found.loaded
    tiles = prod(found.tiles(axis, nest.space) for axis in crossed)
    others = prod(extent for axis, extent in enumerate(nest.space) if axis not in crossed)
    return TileShape(threads, found, tiles * others, found.offsets()[-1])


def reduce_shape(nest: RowNest, threads: int, cluster: int = 1) -> ReduceShape:
    """Geometry of rows, from which of their indices runs through memory contiguously."""
    points, steps = prod(nest.space), prod(nest.loop)
    accumulators, once = accumulators_of(nest), len(nest.passes) == 1
    adjacent = loop_is_contiguous(nest)
    width = row_width(nest) if adjacent else 1
    if adjacent:
        each = max(4, width) if once else _steps_of_lane(nest, width)
        lanes = min(threads, _power_of_two(_ceil(steps, each)))
    else:
        lanes = min(threads // min(32, _power_of_two(points)), _power_of_two(_ceil(steps, 8)))
    if cluster > 1:
        lanes = threads
    outputs = threads // lanes
    tiles = _ceil(points, outputs)
    splits = 1
    if once and 0 < tiles < FULL_DEVICE:
        splits = _splits(steps, lanes, tiles)
    workspace = 0
    if splits > 1:
        workspace = told_offsets(accumulators, points * splits, tiles)[-1]
    shape = ReduceShape(
        outputs, lanes * cluster, adjacent, tiles, splits, 0, workspace, width, cluster
    )
    shared = shape.shared_offsets(cells_of(accumulators))[-1]
    return replace(shape, shared_bytes=shared + PLACE_BYTES * (splits > 1))


def _splits(steps: int, lanes: int, tiles: int) -> int:
    """The blocks that share the loop of each tile of outputs."""
    splits = steps // (lanes * STEPS_PER_LANE)
    if 1 < splits * tiles < SMALL_DEVICE:  # they are few, and have told each other soon
        splits = min(steps // (lanes * FEWEST_STEPS_PER_LANE), _ceil(SMALL_DEVICE, tiles))
    return max(1, min(splits, FULL_DEVICE // tiles))


def steps_kept(nest: RowNest) -> int:
    """The loop steps of which a lane may keep values."""
    return min(STEPS_KEPT, STEP_BYTES // _widest(nest))


def _steps_of_lane(nest: RowNest, width: int) -> int:
    """The steps that a lane should have at least of a row of several passes: two vectors, or, where
    narrow elements are taken one by one, as many as two vectors have; for folding lanes costs, too.
    """
    large = prod(nest.space) * prod(nest.loop) >= LARGE_MAP
    together = VECTOR_BYTES // _widest(nest) if large else width
    return max(8, min(2 * max(width, together), steps_kept(nest)))


def _widest(nest: RowNest) -> int:
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
    if prod(nest.space) * steps < LARGE_MAP or (several and min(sizes, default=4) >= 4):
        return 1
    width = max(VECTOR_BYTES // max(sizes), 1)
    while (prod(nest.space) > 1 or several) and steps % width:
        width //= 2
    return width


def scan_shape(nest: ScanNest, threads: int) -> ScanShape:
    """Geometry of a running fold.

    float16 and bfloat16 are always folded in order, for they are rounded at each step.
    """
    length, dtype = nest.space[nest.axis], nest.store.value.dtype
    lines = prod(n for axis, n in enumerate(nest.space) if axis != nest.axis) if length else 0
    together = length >= LONG_LINE and lines <= MOST_LONG_LINES and not is_half(dtype)
    if together:
        splits = 1
        if 0 < lines < FULL_DEVICE:
            splits = max(1, min(MOST_SHARES // lines, length // LEAST_SHARE))
        shape = ScanShape(threads, True, lines * splits, threads * max(dtype.itemsize, 8), splits)
        if splits > 1:
            nbytes = told_offsets((Accumulator(nest.combiner, nest.store.value),), shape.blocks, 1)
            shape = replace(shape, workspace_bytes=nbytes[-1])
        return shape
    return ScanShape(threads, False, _ceil(lines, threads), 0)


def scatter_shape(steps: int, points: int, threads: int) -> ScatterShape:
    """Geometry of updates: `steps` of them in order, at each of `points` independent points.

    Walking costs little beside updating, which waits for memory; so a long walk with few points is
    made by many threads, each of which updates little.
    """
    owners = 1
    if steps >= LONG_WALK and points:
        owners = max(1, min(_power_of_two(steps) // 8, MOST_WALKERS // _power_of_two(points)))
    return ScatterShape(threads, owners, _ceil(points * owners, threads) if steps else 0)


def accumulators_of(nest: RowNest) -> tuple[Accumulator, ...]:
    """The accumulators of all passes, as they are numbered."""
    return tuple(a for row_pass in nest.passes for a in row_pass.accumulators)


def cells(accumulator: Accumulator) -> tuple[np.dtype[Any], ...]:
    """The dtypes of what an accumulator holds: a value, and with `arg` its position."""
    dtype = accumulator.value.dtype
    value = np.dtype(np.float32) if is_half(dtype) else dtype
    return (value, INDEX) if accumulator.arg else (value,)


def cells_of(accumulators: Sequence[Accumulator]) -> list[np.dtype[Any]]:
    """The dtypes of what several accumulators hold."""
    return [cell for accumulator in accumulators for cell in cells(accumulator)]


def cell_bytes(accumulators: Sequence[Accumulator]) -> int:
    """Bytes that all accumulators of a reduction hold, in each thread."""
    return sum(cell.itemsize for cell in cells_of(accumulators))


def told_bytes(nbytes: int) -> int:
    """The bytes of a value of so many with its round, or, of 16, of two halves with a round each.

    >>> [told_bytes(nbytes) for nbytes in (2, 4, 8, 16)]
    [8, 8, 16, 32]
    """
    return max(2 * nbytes, 8)


def told_offsets(accumulators: Sequence[Accumulator], slots: int, tickets: int) -> list[int]:
    """Where in a workspace each cell's results begin, after the tickets, and where the last end."""
    told = [slots * told_bytes(cell.itemsize) for cell in cells_of(accumulators)]
    return offsets_of([tickets * TICKET_BYTES, *told])[1:]


def _demand(nest: PlainNest) -> int:
    match nest:
        case RowNest(space=space, loop=loop):
            return prod(space) * _ceil(prod(loop), 4)
        case ScanNest(space=space, axis=axis):
            return MOST_THREADS if space[axis] >= LONG_LINE else prod(space)
        case ScatterNest(space=space, repeats=repeats):
            steps, points = prod(space[:repeats]), prod(space[repeats:])
            return points * scatter_shape(steps, points, MOST_THREADS).owners
        case PrintNest(arguments=arguments):
            return max((prod(a.shape) for a in arguments), default=1)
        case MapNest(space=space):
            return prod(space)


def _most_row_threads(nest: RowNest) -> int:
    """The threads that a block may have: several passes are made by as many as keep the row."""
    if len(nest.passes) == 1:
        return MOST_THREADS
    if cluster_of(nest) > 1:
        return _cluster_threads(nest)
    lanes = _power_of_two(_ceil(prod(nest.loop), steps_kept(nest)))
    neighbours = 1 if loop_is_contiguous(nest) else min(32, _power_of_two(prod(nest.space)))
    return min(max(lanes * neighbours, MOST_THREADS), MOST_ROW_THREADS)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _power_of_two(number: int) -> int:
    """The least power of two that is not below the number."""
    return 1 << max(number - 1, 0).bit_length()
