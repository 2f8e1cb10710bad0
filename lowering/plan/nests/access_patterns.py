"""Coalescing analysis: how the loops of reductions access memory."""

from __future__ import annotations

from math import prod

from lowering.plan.nests.analysis import loads, nest_accumulators
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import RowNest, Store
from lowering.plan.nests.strides import offset_in
from lowering.plan.target.hardware import SECTOR_BYTES, VECTOR_BYTES
from tracegraph.ir.scalar import affine
from tracegraph.ir.scalar_values import Load

MANY_ROWS = 1 << 16
"""Rows from which a thread for each occupies a device."""

MAX_SHARED = 1 << 16
"""Bytes of the arrays that all rows read, at most: they stay in a near cache."""

MIN_FAR = 1 << 20
"""Bytes of such arrays that no multiprocessor keeps."""

MIN_TILE_RUN = 16
"""Elements along an axis from which a map keeps tiles in shared memory: two sectors of four-byte
elements."""


def row_accesses(nest: RowNest) -> list[Load | Store]:
    """The accesses of all passes."""
    stores = [store for row_pass in nest.passes for store in row_pass.stores]
    values = [a.value for a in nest_accumulators(nest)]
    values += [store.value for store in stores]
    return [*loads(values), *stores]


def loop_is_contiguous(nest: RowNest) -> bool:
    """Whether neighbouring steps of the loop access neighbouring elements of the largest buffer, or
    neighbouring outputs access it further apart than a vector. What no step accesses anew does not
    count.

    If so, neighbouring threads take neighbouring steps; else they take neighbouring outputs.
    """
    if steps_are_shared(nest):
        return False
    outputs = [a for a, n in enumerate(nest.space) if n > 1]
    steps = [a for a, n in enumerate(nest.loop, len(nest.space)) if n > 1]
    for access in sorted(row_accesses(nest), key=lambda access: -access.buffer.type.size):
        found = affine(offset_in(access.buffer.type.shape, access.indices))
        if found is None:
            continue
        strides, _ = found
        if steps and abs(strides.get(steps[-1], 0)) == 1:
            return True
        if steps and strides.keys().isdisjoint(steps):
            continue  # once for each output, however long the loop is
        nbytes = (
            abs(strides.get(outputs[-1], 0)) * access.buffer.type.dtype.itemsize if outputs else 0
        )
        if 0 < nbytes <= VECTOR_BYTES:
            return False
    return True


def steps_are_shared(nest: RowNest) -> bool:
    """Whether all rows read the same elements of small arrays at a step, and there are enough rows
    for a thread each: a warp reads an element once for all of its rows.

    Only in one pass: of several, lanes keep what they compute of a row from pass to pass.
    """
    several = len(nest.passes) > 1 or any(row_pass.stores for row_pass in nest.passes)
    if several or prod(nest.space) < MANY_ROWS:
        return False
    return 0 < _shared_bytes(nest) <= MAX_SHARED


def rows_are_far(nest: RowNest) -> bool:
    """Whether all of several rows read the same elements at a step, of arrays that are in no near
    cache: a thread that reads an element should fold it for many rows.
    """
    if any(row_pass.stores for row_pass in nest.passes):
        return False
    return prod(nest.space) > 1 and _shared_bytes(nest) >= MIN_FAR


def _shared_bytes(nest: RowNest) -> int:
    """The bytes of what the steps access, if all rows access the same, and else 0."""
    steps = [a for a, n in enumerate(nest.loop, len(nest.space)) if n > 1]
    shared: set[Buffer] = set()
    for access in row_accesses(nest):
        found = affine(offset_in(access.buffer.type.shape, access.indices))
        if found is None:
            return 0
        strides, _ = found
        if strides.keys().isdisjoint(steps):
            continue
        if not strides.keys() <= set(steps):
            return 0
        shared.add(access.buffer)
    return sum([buffer.type.nbytes for buffer in shared])


def uncoalesced_accesses(nest: RowNest) -> dict[Load | Store, int]:
    """The accesses in which neighbouring threads use different sectors, although the elements are
    contiguous along another axis; and the bytes of these elements.
    """
    extents, rank = (*nest.space, *nest.loop), len(nest.space)
    axes = range(rank, len(extents)) if loop_is_contiguous(nest) else range(rank)
    across = max((axis for axis in axes if extents[axis] > 1), default=None)
    found: dict[Load | Store, int] = {}
    if across is None or extents[across] < MIN_TILE_RUN:
        return found
    for access in row_accesses(nest):
        position = affine(offset_in(access.buffer.type.shape, access.indices))
        if position is None:
            continue
        strides, _ = position
        size = access.buffer.type.dtype.itemsize
        runs = [a for a, step in strides.items() if abs(step) == 1 and extents[a] >= MIN_TILE_RUN]
        far = abs(strides.get(across, 0)) * size >= SECTOR_BYTES
        if far and runs:
            found[access] = size * prod(extents[axis] for axis in strides)
    return found
