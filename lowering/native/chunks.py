"""Chunks of large nests, which threads share: part of a nest's schedule.

A chunk is a range of steps of one loop over points, or of blocks of a fold. Its size follows from
the nest alone and not from the number of threads, so that neither do the bits of results: the parts
of a fold are combined in one order. A sum is the same as without chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lowering.native.nests.lanes import blocks_of
from lowering.native.schedule import (
    COLUMNS,
    TILES,
    Chunks,
    NestLoop,
    NestSchedule,
    schedule_of,
)
from lowering.plan.nests.analysis import nest_accumulators, nest_expressions, nest_stores
from lowering.plan.nests.kernel import Nest, ReduceNest, RowNest, ScatterNest
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar_values import Apply, AsIndex, Load

LEAST_TIME = 20_000
"""Nanoseconds from which on a nest has chunks: to wake a thread takes some 5,000."""

CHUNK_TIME = 10_000
"""Nanoseconds of a chunk, at least: to take one costs some 100."""

MOST_CHUNKS = 512

LONG_CHUNK = 1_000_000
"""Nanoseconds of a chunk from which on there may be more chunks: nobody can stop one."""

MOST_PARTS = 1 << 12
"""Chunks of a fold at one point: each has words on the stack of the caller."""

LINE = 64
"""Steps of an innermost loop that a chunk is a multiple of: threads share no line of the cache."""

RUN = 256
"""The same for a reduction of many points at once, which reads a run of elements at each step:
memory is read ahead along it.
"""

ENOUGH_CHUNKS = 16
"""Chunks of an outer loop, from which on inner ones are left whole."""

EXPENSIVE = 8
"""The cost of an op, in units of `Elementwise.cost`, from which on it is a function."""

FUNCTION_TIME, ARITHMETIC_TIME, ACCESS_TIME, INDIRECT_TIME = 0.5, 0.04, 0.05, 0.5
"""Nanoseconds of an element, in vectors: of a function such as exp, of an addition, of a load, a
store or a fold, and of an index that is read from memory.
"""


def chunked_schedule_of(nest: Nest) -> NestSchedule:
    """The schedule of a nest, with its chunks if it is large."""
    schedule = schedule_of(nest)
    return replace(schedule, chunks=_chunks_of(nest, schedule))


def _chunks_of(nest: Nest, schedule: NestSchedule) -> Chunks | None:
    time = time_of(nest)
    if time < LEAST_TIME:
        return None
    most = max(MOST_CHUNKS, int(time / LONG_CHUNK))
    count = min(max(int(time / CHUNK_TIME), 2), most)
    found = _of_points(nest, schedule, count, time)
    if found is not None and found.count >= min(count, ENOUGH_CHUNKS):
        return found
    points = prod([loop.extent for loop in schedule.points])
    blocks = None
    if isinstance(nest, ReduceNest | RowNest) and time / points >= LEAST_TIME:
        blocks = _of_blocks(schedule, time / points)
    return blocks or found


def time_of(nest: Nest) -> float:
    """An estimate of the time of a nest on one thread, in nanoseconds."""
    step = ACCESS_TIME * (len(nest_stores(nest)) + len(nest_accumulators(nest)))
    for expr in nest_expressions(nest):
        if isinstance(expr, Load):
            step += ACCESS_TIME
        elif isinstance(expr, AsIndex):
            step += INDIRECT_TIME
        elif isinstance(expr, Apply) and isinstance(expr.op.form, Elementwise):
            cost = expr.op.form.cost
            step += FUNCTION_TIME if cost >= EXPENSIVE else cost * ARITHMETIC_TIME
    steps = prod(nest.space) * prod(nest.loop if isinstance(nest, ReduceNest | RowNest) else ())
    return steps * step


def _of_points(nest: Nest, schedule: NestSchedule, count: int, time: float) -> Chunks | None:
    """Chunks of the outermost loop that has enough steps; else of the one that has most."""
    best: Chunks | None = None
    for number, loop in enumerate(schedule.points):
        if isinstance(nest, ScatterNest) and not loop.independent:
            continue  # its points may have one target
        found = _of_loop(nest, number, schedule, count, time)
        if found is not None and (best is None or found.count > best.count):
            best = found
        if best is not None and best.count >= min(count, ENOUGH_CHUNKS):
            break
    return best


def _of_loop(
    nest: Nest, number: int, schedule: NestSchedule, count: int, time: float
) -> Chunks | None:
    loop = schedule.points[number]
    is_last = number == len(schedule.points) - 1
    unit = 1
    if loop.tile:
        if is_last:
            return None
        unit = loop.tile * TILES
    elif is_last and (schedule.fold != "rows"):
        unit = RUN if schedule.fold == "columns" and isinstance(nest, ReduceNest) else LINE
    size = _multiple(-(-loop.extent // count), unit)
    if is_last and schedule.fold == "columns" and size > COLUMNS:
        size = _multiple(size, COLUMNS)
    chunks = -(-loop.extent // size)
    return Chunks(number, size, chunks, time) if chunks > 1 else None


def _multiple(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _of_blocks(schedule: NestSchedule, time: float) -> Chunks | None:
    """Chunks of the blocks of a fold, which are a power of two: whole parts of the tree."""
    if schedule.fold != "rows" or not schedule.steps:
        return None
    most = min(max(MOST_CHUNKS, int(time / LONG_CHUNK)), MOST_PARTS)
    count = min(max(int(time / CHUNK_TIME), 2), most)
    blocks = blocks_in(schedule.steps)
    size = 1
    while size * count < blocks:
        size *= 2
    chunks = -(-blocks // size)
    return Chunks(None, size, chunks, time) if chunks > 1 else None


def blocks_in(steps: Sequence[NestLoop]) -> int:
    """The blocks of a fold over these loops."""
    extents = [loop.extent for loop in steps]
    split, size, _ = blocks_of(extents)
    return prod(extents[:split]) * -(-extents[split] // size)
