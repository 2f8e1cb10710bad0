"""Launch geometry: how many blocks a nest gets, and what each of their threads does.

All sizes are static, so geometry is decided here, before any text is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lowering.codegen.flatten import offset_in
from lowering.kernel import (
    Accumulator,
    Kernel,
    MapNest,
    Nest,
    PrintNest,
    ReduceNest,
    ScanNest,
    ScatterNest,
)
from lowering.preamble import is_half
from tracegraph.scalar import INDEX, Load, affine, subexpressions

MOST_THREADS = 256
FEWEST_THREADS = 32
FULL_DEVICE = 512  # blocks that keep a large GPU busy
LARGE_MAP = 1 << 20  # points from which a thread takes several, to have more loads in flight
POINTS_PER_THREAD = 4
STEPS_PER_LANE = 16  # loop steps below which a further split costs more than it saves
SHARED_LIMIT = 48 << 10
ITEMS_PER_THREAD = 4
LONG_WALK = 64
MOST_WALKERS = 4096
LONG_LINE = 1024
MOST_LONG_LINES = 2048


@dataclass(frozen=True, slots=True)
class MapShape:
    """`blocks` blocks of threads with `points` points each; a block's points are contiguous."""

    threads: int
    points: int
    blocks: int


@dataclass(frozen=True, slots=True)
class ReduceShape:
    """A block is `outputs` × `lanes` threads; the lanes share the loop of one output.

    With `adjacent`, lanes of one output are neighbours, else outputs are. `splits` blocks share the
    loops of one tile of outputs.
    """

    outputs: int
    lanes: int
    adjacent: bool
    tiles: int
    splits: int
    shared_bytes: int
    workspace_bytes: int

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.tiles * self.splits


@dataclass(frozen=True, slots=True)
class ScanShape:
    """One thread a line; or, with `together`, one block a line."""

    threads: int
    together: bool
    blocks: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class ScatterShape:
    """`owners` threads for each independent point: they all walk the updates in order, and each
    makes those to the targets that it owns. A power of two.
    """

    threads: int
    owners: int
    blocks: int


@dataclass(frozen=True, slots=True)
class PrintShape:
    """One block, which shares the place of its record in the print ring."""

    threads: int
    blocks: int = 1
    shared_bytes: int = 16


Shape = MapShape | ReduceShape | ScanShape | ScatterShape | PrintShape


def block_threads(kernel: Kernel) -> int:
    """Threads in each block of a kernel: a power of two, as few as its nests can use."""
    wanted = max((_demand(nest) for nest in kernel.nests), default=1)
    threads = min(max(_power_of_two(wanted), FEWEST_THREADS), MOST_THREADS)
    folds = [nest.accumulators for nest in kernel.nests if isinstance(nest, ReduceNest)]
    widest = max((cell_bytes(accumulators) for accumulators in folds), default=1)
    while threads * widest > SHARED_LIMIT and threads > 1:
        threads //= 2
    return threads


def nest_shape(nest: Nest, threads: int) -> Shape:
    """The geometry of one nest in blocks of `threads` threads."""
    match nest:
        case MapNest(space=space):
            return map_shape(prod(space), threads)
        case ReduceNest():
            return reduce_shape(nest, threads)
        case ScanNest():
            return scan_shape(nest, threads)
        case ScatterNest(space=space, repeats=repeats):
            return scatter_shape(prod(space[:repeats]), prod(space[repeats:]), threads)
        case PrintNest():
            return PrintShape(threads)


def map_shape(points: int, threads: int) -> MapShape:
    """Geometry of independent points: the one place that decides what a thread takes on."""
    each = POINTS_PER_THREAD if points >= LARGE_MAP else 1
    return MapShape(threads, each, _ceil(points, threads * each))


def reduce_shape(nest: ReduceNest, threads: int) -> ReduceShape:
    """Geometry of a reduction, from which of its indices runs through memory contiguously."""
    points, steps = prod(nest.space), prod(nest.loop)
    adjacent = _loop_is_contiguous(nest)
    if adjacent:
        lanes = min(threads, _power_of_two(_ceil(steps, 4)))
    else:
        lanes = min(threads // min(32, _power_of_two(points)), _power_of_two(_ceil(steps, 8)))
    outputs = threads // lanes
    tiles = _ceil(points, outputs)
    splits = 1
    if 0 < tiles < FULL_DEVICE:
        splits = max(1, min(FULL_DEVICE // tiles, steps // (lanes * STEPS_PER_LANE)))
    workspace = 0
    if splits > 1:
        workspace = partial_offsets(nest.accumulators, points, tiles, splits)[-1]
    shared = threads * cell_bytes(nest.accumulators) if lanes > 1 else 0
    return ReduceShape(
        outputs, lanes, adjacent, tiles, splits, max(shared, 16 * (splits > 1)), workspace
    )


def scan_shape(nest: ScanNest, threads: int) -> ScanShape:
    """Geometry of a running fold.

    float16 and bfloat16 are always folded in order, for they are rounded at each step.
    """
    length, dtype = nest.space[nest.axis], nest.store.value.dtype
    lines = prod(n for axis, n in enumerate(nest.space) if axis != nest.axis) if length else 0
    together = length >= LONG_LINE and lines <= MOST_LONG_LINES and not is_half(dtype)
    if together:
        return ScanShape(threads, True, lines, threads * dtype.itemsize)
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


def cells(accumulator: Accumulator) -> tuple[np.dtype[Any], ...]:
    """The dtypes of what an accumulator holds: a value, and with `arg` its position."""
    dtype = accumulator.value.dtype
    value = np.dtype(np.float32) if is_half(dtype) else dtype
    return (value, INDEX) if accumulator.arg else (value,)


def cell_bytes(accumulators: tuple[Accumulator, ...]) -> int:
    """Bytes that all accumulators of a reduction hold, in each thread."""
    return sum(cell.itemsize for a in accumulators for cell in cells(a))


def partial_offsets(
    accumulators: tuple[Accumulator, ...], points: int, tiles: int, splits: int
) -> list[int]:
    """Where each cell's partial results start in the workspace, after the counters; and its end."""
    offsets = [_aligned(tiles * 4)]
    for accumulator in accumulators:
        for cell in cells(accumulator):
            offsets.append(_aligned(offsets[-1] + points * splits * cell.itemsize))
    return offsets


def _demand(nest: Nest) -> int:
    match nest:
        case ReduceNest(space=space, loop=loop):
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


def _loop_is_contiguous(nest: ReduceNest) -> bool:
    """Whether neighbouring steps of the loop read neighbouring elements of the largest buffer.

    Where neither the steps nor the outputs do, the steps are given to neighbouring threads.
    """
    outputs = [a for a, n in enumerate(nest.space) if n > 1]
    steps = [a for a, n in enumerate(nest.loop, len(nest.space)) if n > 1]
    loads = [
        expr
        for expr in subexpressions(tuple(a.value for a in nest.accumulators))
        if isinstance(expr, Load)
    ]
    for load in sorted(loads, key=lambda load: -load.buffer.type.size):
        found = affine(offset_in(load.buffer.type.shape, load.indices))
        if found is None:
            continue
        strides, _ = found
        if steps and abs(strides.get(steps[-1], 0)) == 1:
            return True
        if outputs and abs(strides.get(outputs[-1], 0)) == 1:
            return False
    return True


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _aligned(offset: int) -> int:
    return _ceil(offset, 16) * 16


def _power_of_two(number: int) -> int:
    """The least power of two that is not below the number."""
    return 1 << max(number - 1, 0).bit_length()
