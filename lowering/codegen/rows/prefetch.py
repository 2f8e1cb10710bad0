"""Rows that are asked for ahead of time, so that they are in the L2 cache when their block begins.

A block that makes several passes loads its rows, folds them, and stores: while all that run at a
time fold, memory has little to do. One instruction of each block keeps it busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.expressions import cast, index_type
from lowering.codegen.flatten import POINT, STEP
from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.source_writer import SourceWriter
from lowering.hardware import VECTOR_BYTES
from lowering.plan.buffer import Buffer
from lowering.plan.nest_analysis import loads
from lowering.plan.rounding import ceil_div
from tracegraph.ir.scalar import affine

AHEAD_BYTES = 3 << 20
"""How far ahead: 8 MiB and more drive out of the cache what blocks are about to read."""

LEAST_BYTES = 64 << 20
"""Of an array: the L2 cache holds a smaller one, as far as it was used before."""

LEAST_TILE = 16_000
"""Bytes of the rows of a block. With half as much, softmax of float32 is up to 7 % slower; that of
16-bit floats, which are accessed by vectors, 1 to 4 % faster."""


def prefetch_rows(
    writer: SourceWriter, passes: Sequence[FlatPass], geometry: RowGeometry, points: int, steps: int
) -> None:
    """Let the first thread ask for the rows of a later block, where they follow one another."""
    elements = geometry.outputs * steps
    found = _in_order(passes, steps)
    sizes = [elements * buffer.type.dtype.itemsize for buffer in found]
    least = LEAST_TILE if geometry.width == 1 else LEAST_TILE // 2
    if min(sizes, default=0) < least:
        return
    ahead = ceil_div(AHEAD_BYTES, sum(sizes))
    kind = index_type(points * steps)
    with writer.block(f"if (thread == 0 && block + {ahead} < {points // geometry.outputs})"):
        writer.line(f"const {kind} ahead = {cast(kind, f'block + {ahead}')} * {elements};")
        for buffer, nbytes in zip(found, sizes, strict=True):
            whole = nbytes - nbytes % VECTOR_BYTES
            writer.line(f"tg_prefetch_l2({writer.pointers[buffer]} + ahead, {whole});")


def _in_order(passes: Sequence[FlatPass], steps: int) -> list[Buffer]:
    """The large arrays that are read in the order of the rows."""
    roots = [root for flat in passes for root in flat.roots]
    order = ({POINT: steps, STEP: 1}, 0)
    return [
        load.buffer
        for load in loads(roots)
        if affine(load.indices[0]) == order
        and load.guard is None
        and load.buffer.type.nbytes >= LEAST_BYTES
    ]
