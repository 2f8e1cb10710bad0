"""The text of a product by tiles.

A block keeps tiles of both factors in shared memory, `depth` products of each sum deep, and loads
the next ones to registers while it multiplies. A thread multiplies what it reads of a row by what
it reads of a column, each with several outputs, so that it multiplies more often than it reads.

Slices of a block that share the sums of a tile add them through shared memory. Where several blocks
do, the last one to finish adds the partial sums of all. So the order of a sum depends on shapes
only.
"""

from __future__ import annotations

from lowering.codegen.expressions import compute, stored
from lowering.codegen.geometry_records import ProductGeometry
from lowering.codegen.maps.stores import declare_results, store_results, write_item
from lowering.codegen.maps.vector_accesses import declare_aligned, vectors_of
from lowering.codegen.preamble import c_type
from lowering.codegen.products.tile_loads import declare_next, declare_own, keep_next, load_next
from lowering.codegen.products.tile_sides import COLUMN, FlatProduct, Side, flattened
from lowering.codegen.products.tile_sums import (
    add_partials,
    add_slices,
    multiply,
    multiply_matrices,
)
from lowering.codegen.rows.accumulator_layout import TICKET_SHARED_BYTES
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import RowNest
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.target.hardware import VECTOR_BYTES
from tracegraph.ir.scalar_values import Accumulated, Load


def write_product(
    writer: SourceWriter, nest: RowNest, geometry: ProductGeometry, workspace: str
) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    product = tiled_product(nest)
    assert product is not None
    dtype, g = product.left.dtype, geometry
    kind = c_type(dtype)
    found = flattened(product, nest.stores, geometry)
    sides, step = found.sides, found.step
    _declare(writer, geometry, step.extent)
    offset = 0
    for side in sides:
        place = f"reinterpret_cast<{kind}*>(shared + {offset})"
        writer.line(f"{kind}* const {side.name}_tile = {place};")
        offset += g.groups * g.depth * side.stride * dtype.itemsize
        declare_next(writer, side, g, kind)
    writer.line(f"{kind} total[{g.row_outputs}][{g.column_outputs}] = {{}};")
    vectors = [side.factor.factor for side in sides if side.loaded > 1]
    accesses = [load for load in vectors if isinstance(load, Load)]
    most = VECTOR_BYTES // dtype.itemsize
    aligned = declare_aligned(writer, accesses, most) if accesses else {}
    for side in sides:
        declare_own(writer, side, g)
    with writer.block(f"for (int base = begin - {g.depth}; base < end; base += {g.depth})"):
        writer.line(f"const int ahead = base + {g.depth};")
        with writer.block("if (ahead < end)"):
            for side in sides:
                load_next(writer, side, step, g, "ahead", aligned)
        with writer.block("if (base >= begin)"):
            (multiply_matrices if g.by_warps else multiply)(writer, sides, g, kind)
        writer.line("__syncthreads();")
        with writer.block("if (ahead < end)"):
            for side in sides:
                keep_next(writer, side, step, g, "ahead")
        writer.line("__syncthreads();")
    if g.slices > 1:
        add_slices(writer, g, kind)
    if g.splits > 1:
        add_partials(writer, g, kind, workspace, g.shared_bytes - TICKET_SHARED_BYTES)
    tests = ["last"] if g.splits > 1 else []
    tests += ["slice == 0"] if g.slices > 1 else []
    tests += [f"batch < {g.batch}"] if g.batch % g.groups else []
    with writer.block(f"if ({' && '.join(tests)})" if tests else ""):
        writer.bind(found.batch, "batch")
        _store(writer, nest, found, g)


def _declare(writer: SourceWriter, g: ProductGeometry, summed: int) -> None:
    tile = "block" if g.splits == 1 else f"block / {g.splits}"
    writer.line(f"const int tile = {tile};")
    writer.line(f"const int start_right = tile % {g.column_tiles} * {g.width};")
    rows = f"tile / {g.column_tiles}"
    writer.line(f"const int start_left = {rows} % {g.row_tiles} * {g.height};")
    writer.line(f"const int start_batch = tile / {g.column_tiles * g.row_tiles} * {g.groups};")
    each = g.rows * g.columns
    group = "0" if g.slices > 1 else f"thread / {each}"
    writer.line(f"const int group = {group}, batch = start_batch + group;")
    if g.slices > 1:
        writer.line(f"const int slice = thread / {each}, member = thread % {each};")
    begin = "0" if g.splits == 1 else f"block % {g.splits} * {g.share}"
    writer.line(f"const int begin = {begin};")
    end = f"begin + {g.share} < {summed} ? begin + {g.share} : {summed}"
    writer.line(f"const int end = {end if g.splits > 1 else summed};")
    if g.by_warps:
        across = g.columns // 4
        writer.line("const int lane = thread % 32, warp = thread / 32;")
        writer.line(f"const int thread_left = warp / {across} * 8 + lane / 4;")
        writer.line(f"const int thread_right = warp % {across} * 4 + lane % 4;")
        return
    writer.line(f"const int thread_left = thread % {each} / {g.columns};")
    writer.line(f"const int thread_right = thread % {g.columns};")


def _store(
    writer: SourceWriter,
    nest: RowNest,
    found: FlatProduct,
    g: ProductGeometry,
) -> None:
    """Compute and store what follows from each total; neighbouring columns as vectors."""
    stores = list(map(found.flat.store, nest.stores))
    total = Accumulated.make(0, nest.passes[0].accumulators[0].value.dtype)
    left, right = found.sides
    width = 2 if right.by_warps else right.vector
    vectors = vectors_of(stores, width, axis=COLUMN)
    if right.own.extent % width or not vectors.stores:
        width, vectors = 1, vectors_of([], 1)
    aligned = declare_aligned(writer, vectors.stores, width) if vectors.stores else {}
    with writer.unrolled(f"for (int i = 0; i < {g.row_outputs}; ++i)"):
        _bind_output(writer, left, "row", "i")
        with writer.unrolled(f"for (int j = 0; j < {g.column_outputs}; j += {width})"):
            _bind_output(writer, right, "column", "j")
            results = declare_results(writer, vectors.stores, width)
            with writer.unrolled(f"for (int item = 0; item < {width}; ++item)"):
                writer.bind(right.own, "(column + item)")
                writer.bind(total, "total[i][j + item]")
                compute(writer, stored(stores))
                write_item(writer, stores, results)
            store_results(writer, results, width, COLUMN, aligned, None)


def _bind_output(writer: SourceWriter, side: Side, name: str, counter: str) -> None:
    writer.line(f"const {side.index_type} {name} = {side.output(counter)};")
    if not side.is_whole:
        writer.line(f"if ({name} >= {side.own.extent}) continue;")
    writer.bind(side.own, name)
