"""L2 prefetch: each block requests the rows of a later block.

A block of several passes loads its rows, folds them, and stores. While the resident blocks fold,
memory is idle; one bulk prefetch of each block keeps it busy. Softmax over rows of 4096 float32
rises from 96.1 to 99.1 % of a copy, over 16384 float16 from 92.7 to 98.4 (H200).
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.expressions import cast, index_type
from lowering.codegen.flatten import POINT, STEP
from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.target.hardware import VECTOR_BYTES
from tracegraph.ir.scalar import affine

DISTANCE_BYTES = 3 << 20
"""Prefetch distance. At 8 MiB, lines are evicted before use: a third slower (H200)."""

MIN_ARRAY_BYTES = 64 << 20
"""Bytes of an array. The L2 cache may hold a smaller one: arrays of 32 MB lost by it (H200)."""

MIN_ROW_BYTES = 16_000
"""Bytes of a block's rows. With half as much, softmax of float32 is up to 7 % slower; that of
16-bit floats, which are accessed by vectors, is 1 to 4 % faster."""


def prefetch_rows(
    writer: SourceWriter, passes: Sequence[FlatPass], geometry: RowGeometry, points: int, steps: int
) -> None:
    """Let the first thread prefetch the rows of a later block, if rows are contiguous."""
    elements = geometry.outputs * steps
    found = _row_major_arrays(passes, steps)
    sizes = [elements * buffer.type.dtype.itemsize for buffer in found]
    least = MIN_ROW_BYTES if geometry.width == 1 else MIN_ROW_BYTES // 2
    if min(sizes, default=0) < least:
        return
    ahead = ceil_div(DISTANCE_BYTES, sum(sizes))
    kind = index_type(points * steps)
    with writer.block(f"if (thread == 0 && block + {ahead} < {points // geometry.outputs})"):
        writer.line(f"const {kind} ahead = {cast(kind, f'block + {ahead}')} * {elements};")
        for buffer, nbytes in zip(found, sizes, strict=True):
            whole = nbytes - nbytes % VECTOR_BYTES
            writer.line(f"tg_prefetch_l2({writer.pointers[buffer]} + ahead, {whole});")


def _row_major_arrays(passes: Sequence[FlatPass], steps: int) -> list[Buffer]:
    """The large arrays that are read row-major."""
    roots = [root for flat in passes for root in flat.roots]
    order = ({POINT: steps, STEP: 1}, 0)
    return [
        load.buffer
        for load in loads(roots)
        if affine(load.indices[0]) == order
        and load.guard is None
        and load.buffer.type.nbytes >= MIN_ARRAY_BYTES
    ]
