"""How the loops of reductions run through memory."""

from __future__ import annotations

from lowering.facts import loads, nest_accumulators
from lowering.kernel import RowNest, Store
from lowering.strides import offset_in
from tracegraph.scalar import Load, affine

VECTOR_BYTES = 16
"""The most that one access moves."""

WORD_BYTES = 4
"""What one register holds, and what an access is to move at least."""


def row_accesses(nest: RowNest) -> list[Load | Store]:
    """The accesses of all passes."""
    stores = [store for row_pass in nest.passes for store in row_pass.stores]
    values = [a.value for a in nest_accumulators(nest)]
    values += [store.value for store in stores]
    return [*loads(values), *stores]


def loop_is_contiguous(nest: RowNest) -> bool:
    """Whether neighbouring steps of the loop touch neighbouring elements of the largest buffer, or
    neighbouring outputs neighbouring vectors.

    Where neither the steps nor the outputs do, the steps are given to neighbouring threads.
    """
    outputs = [a for a, n in enumerate(nest.space) if n > 1]
    steps = [a for a, n in enumerate(nest.loop, len(nest.space)) if n > 1]
    for access in sorted(row_accesses(nest), key=lambda access: -access.buffer.type.size):
        found = affine(offset_in(access.buffer.type.shape, access.indices))
        if found is None:
            continue
        strides, _ = found
        if steps and abs(strides.get(steps[-1], 0)) == 1:
            return True
        nbytes = (
            abs(strides.get(outputs[-1], 0)) * access.buffer.type.dtype.itemsize if outputs else 0
        )
        if 0 < nbytes <= VECTOR_BYTES:
            return False
    return True
