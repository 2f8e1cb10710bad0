"""Block scan: one tile, folded within threads, then warps, then the block.

Each thread has consecutive items. The totals of a warp's threads are scanned by doubling distances
(Hillis and Steele, 1986), those of the warps sequentially. The total of earlier tiles is carried.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowering.codegen.constants import constant
from lowering.codegen.expressions import cast, combine, compute, value, write_store
from lowering.codegen.maps.vector_accesses import (
    Vectors,
    compute_uniform,
    load_text,
    pack,
    store_line,
)
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Store
from lowering.plan.target.hardware import SECTOR_BYTES, VECTOR_BYTES, WARP
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import Axis, Expr, const
from tracegraph.ir.scalar_values import Load

MIN_ITEMS, MAX_ITEMS = 4, 16
"""Items of a thread: a sector of them, within what registers hold and what amortises a barrier."""


@dataclass(frozen=True, slots=True)
class ScanTile:
    """The part of a line that one block scans at a time; `store` stores each step."""

    combiner: Combiner
    store: Store
    step: Axis
    threads: int

    @property
    def kind(self) -> str:
        """The C++ type of an item."""
        return c_type(self.store.value.dtype)

    @property
    def items(self) -> int:
        """Consecutive items of each thread."""
        wanted = SECTOR_BYTES // self.store.value.dtype.itemsize
        return max(MIN_ITEMS, min(MAX_ITEMS, wanted))

    @property
    def size(self) -> int:
        """Items of all threads."""
        return self.threads * self.items

    @property
    def width(self) -> int:
        """Items of a vector access."""
        accesses: list[Load | Store] = [self.store, *loads([self.store.value])]
        sizes: list[int] = [access.buffer.type.dtype.itemsize for access in accesses]
        return min(self.items, VECTOR_BYTES // max(sizes))

    def folded(self, left: str, right: str) -> str:
        """The fold of two values."""
        dtype = self.store.value.dtype
        return cast(self.kind, combine(self.combiner, dtype, left, right))


def load_items(
    writer: SourceWriter,
    tile: ScanTile,
    vectors: Vectors,
    aligned: Mapping[Buffer, str],
    number: str,
    end: str,
) -> None:
    """Declare the thread's `items` and compute them; those from `end` on are the identity."""
    dtype = tile.store.value.dtype
    identity = constant(const(tile.combiner.identity(dtype), dtype))
    writer.line(f"{tile.kind} items[{tile.items}];")
    groups = tile.items // tile.width
    if vectors.loads:
        with writer.block("if (whole)"):
            loaded = {load: writer.fresh() for load in vectors.loads}
            for load, name in loaded.items():
                writer.line(f"{pack(load, tile.width)} {name}[{groups}];")
            with writer.unrolled(f"for (int group = 0; group < {groups}; ++group)"):
                _place_group(writer, tile, number)
                compute(writer, [load.indices[0] for load in loaded])
                for load, name in loaded.items():
                    text = load_text(writer, load, tile.width, aligned)
                    writer.line(f"{name}[group] = {text};")
            with writer.unrolled(f"for (int group = 0; group < {groups}; ++group)"):
                _place_group(writer, tile, number)
                compute_uniform(writer, vectors, tile.step, "first")
                with writer.unrolled(f"for (int item = 0; item < {tile.width}; ++item)"):
                    writer.line(f"const {number} step = first + item;")
                    writer.bind(tile.step, "step")
                    for load, name in loaded.items():
                        writer.bind(load, f"{name}[group].items[item]")
                    compute(writer, [tile.store.value])
                    place = f"items[group * {tile.width} + item]"
                    writer.line(f"{place} = {value(writer, tile.store.value)};")
    each_item = f"for (int item = 0; item < {tile.items}; ++item)"
    with writer.block("else" if vectors.loads else ""), writer.unrolled(each_item):
        writer.line(f"const {number} step = base + thread * {tile.items} + item;")
        writer.line(f"items[item] = {identity};")
        with writer.block(f"if (step < {end})"):
            writer.bind(tile.step, "step")
            compute(writer, [tile.store.value])
            writer.line(f"items[item] = {value(writer, tile.store.value)};")


def fold_threads(writer: SourceWriter, tile: ScanTile) -> None:
    """Scan each thread's items, fold what precedes them into `before`, and the tile into `carried`.

    Nothing is carried into the first tile of a line, not even the identity: 0 + -0 is 0.
    """
    with writer.unrolled(f"for (int item = 1; item < {tile.items}; ++item)"):
        writer.line(f"items[item] = {tile.folded('items[item - 1]', 'items[item]')};")
    writer.line(f"totals[thread] = items[{tile.items - 1}];")
    writer.line("__syncwarp();")
    with writer.block(f"for (int distance = 1; distance < {WARP}; distance *= 2)"):
        writer.line(f"{tile.kind} total = totals[thread];")
        left = tile.folded("totals[thread - distance]", "total")
        writer.line(f"if (thread % {WARP} >= distance) total = {left};")
        writer.line("__syncwarp();")
        writer.line("totals[thread] = total;")
        writer.line("__syncwarp();")
    writer.line("__syncthreads();")
    writer.line(f"{tile.kind} before = carried;")
    with writer.block(f"for (int warp = 0; warp < {tile.threads // WARP}; ++warp)"):
        writer.line(f"const {tile.kind} total = totals[warp * {WARP} + {WARP - 1}];")
        writer.line(f"if (warp == thread / {WARP}) before = carried;")
        writer.line(
            f"carried = base == 0 && warp == 0 ? total : {tile.folded('carried', 'total')};"
        )
    with writer.block(f"if (thread % {WARP} > 0)"):
        writer.line(f"const {tile.kind} total = totals[thread - 1];")
        first = f"base == 0 && thread < {WARP}"
        writer.line(f"before = {first} ? total : {tile.folded('before', 'total')};")


def store_items(
    writer: SourceWriter,
    tile: ScanTile,
    vectors: Vectors,
    aligned: Mapping[Buffer, str],
    number: str,
    end: str,
) -> None:
    """Store the running fold at each of the thread's items."""
    store, first = tile.store, "base + thread == 0"
    if vectors.stores:
        each_group = f"for (int group = 0; group < {tile.items // tile.width}; ++group)"
        with writer.block("if (whole)"), writer.unrolled(each_group):
            _place_group(writer, tile, number)
            name, place = writer.fresh(), f"items[group * {tile.width} + item]"
            writer.line(f"{pack(store, tile.width)} {name};")
            with writer.unrolled(f"for (int item = 0; item < {tile.width}; ++item)"):
                text = f"{first} ? {place} : {tile.folded('before', place)}"
                writer.line(f"{name}.items[item] = {text};")
            compute(writer, store.indices)
            writer.line(store_line(writer, store, tile.width, name, aligned))
    each_item = f"for (int item = 0; item < {tile.items}; ++item)"
    with writer.block("else" if vectors.stores else ""), writer.unrolled(each_item):
        writer.line(f"const {number} step = base + thread * {tile.items} + item;")
        with writer.block(f"if (step < {end})"):
            writer.bind(tile.step, "step")
            roots: list[Expr] = [*store.indices, *([] if store.guard is None else [store.guard])]
            compute(writer, roots)
            write_store(
                writer, store, f"{first} ? items[item] : {tile.folded('before', 'items[item]')}"
            )


def _place_group(writer: SourceWriter, tile: ScanTile, number: str) -> None:
    place = f"base + thread * {tile.items} + group * {tile.width}"
    writer.line(f"const {number} first = {place};")
    writer.bind(tile.step, "first")
