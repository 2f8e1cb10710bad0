"""Sums of a tile: what threads or warps multiply, and partial sums of blocks that share them."""

from __future__ import annotations

from lowering.codegen.geometry_records import ProductGeometry
from lowering.codegen.products.product_geometry import partials_offset
from lowering.codegen.products.tile_sides import Side
from lowering.codegen.source_writer import SourceWriter

LOADED = 32
"""Partial sums that a thread loads before it adds the first."""


def multiply(writer: SourceWriter, sides: tuple[Side, Side], g: ProductGeometry, kind: str) -> None:
    """Multiply what the tiles have of each row and column, and add it to the totals."""
    first = f"slice * {g.depth // g.slices}" if g.slices > 1 else f"group * {g.depth}"
    with writer.unrolled(f"for (int depth = 0; depth < {g.depth // g.slices}; ++depth)"):
        for side in sides:
            groups, pack = side.each // side.vector, f"tg_pack<{kind}, {side.vector}>"
            writer.line(f"{pack} {side.name}[{groups}];")
            with writer.unrolled(f"for (int part = 0; part < {groups}; ++part)"):
                place = f"(part * {side.threads} + thread_{side.name}) * {side.vector}"
                row = f"({first} + depth)"
                source = f"{side.name}_tile + {row} * {side.stride} + {place}"
                writer.line(f"{side.name}[part] = *reinterpret_cast<const {pack}*>({source});")
        left, right = (side.vector for side in sides)
        with (
            writer.unrolled(f"for (int i = 0; i < {g.row_outputs}; ++i)"),
            writer.unrolled(f"for (int j = 0; j < {g.column_outputs}; ++j)"),
        ):
            first = f"left[i / {left}].items[i % {left}]"
            second = f"right[j / {right}].items[j % {right}]"
            writer.line(f"total[i][j] = fma({first}, {second}, total[i][j]);")


def multiply_matrices(
    writer: SourceWriter, sides: tuple[Side, Side], g: ProductGeometry, kind: str
) -> None:
    """Let each warp multiply matrices of 16 × 8 and 8 × 8 elements of the tiles."""
    left, right = sides
    rows, columns = left.each // 2, right.each // 2
    with writer.unrolled(f"for (int depth = 0; depth < {g.depth}; depth += 8)"):
        writer.line(f"tg_u32 left[{rows}][4], right[{columns}][2];")
        place = f"(depth + lane % 4 + part / 2 * 4) * {left.stride}"
        with (
            writer.unrolled(f"for (int i = 0; i < {rows}; ++i)"),
            writer.unrolled("for (int part = 0; part < 4; ++part)"),
        ):
            row = f"(thread_left / 8 * {rows} + i) * 16 + part % 2 * 8 + lane / 4"
            source = f"left_tile + {place} + {row}"
            writer.line(f"left[i][part] = *reinterpret_cast<const tg_u32*>({source});")
        place = f"(depth + lane % 4 + part * 4) * {right.stride}"
        with (
            writer.unrolled(f"for (int j = 0; j < {columns}; ++j)"),
            writer.unrolled("for (int part = 0; part < 2; ++part)"),
        ):
            column = f"(thread_right / 4 * {columns} + j) * 8 + lane / 4"
            source = f"right_tile + {place} + {column}"
            writer.line(f"right[j][part] = *reinterpret_cast<const tg_u32*>({source});")
        with (
            writer.unrolled(f"for (int i = 0; i < {rows}; ++i)"),
            writer.unrolled(f"for (int j = 0; j < {columns}; ++j)"),
        ):
            totals = ", ".join(
                f"total[i * 2 + {a}][j * 2 + {b}]" for a in range(2) for b in range(2)
            )
            writer.line(f"tg_multiply_tf32({totals}, left[i], right[j], lane);")


def add_slices(writer: SourceWriter, g: ProductGeometry, kind: str) -> None:
    """Add the sums of all slices, in their order, to `total` of the first one."""
    outputs, each = g.row_outputs * g.column_outputs, g.rows * g.columns
    total = f"total[part / {g.column_outputs}][part % {g.column_outputs}]"
    parts = f"for (int part = 0; part < {outputs}; ++part)"
    with writer.block(""):
        writer.line(f"{kind}* const sums = reinterpret_cast<{kind}*>(shared);")
        with writer.block("if (slice > 0)"), writer.unrolled(parts):
            place = f"((slice - 1) * {outputs} + part) * {each} + member"
            writer.line(f"sums[{place}] = {total};")
        writer.line("__syncthreads();")
        others = f"for (int other = 0; other < {g.slices - 1}; ++other)"
        with writer.block("if (slice == 0)"), writer.unrolled(others), writer.unrolled(parts):
            place = f"(other * {outputs} + part) * {each} + member"
            writer.line(f"{total} += sums[{place}];")
        writer.line("__syncthreads();")


def add_partials(
    writer: SourceWriter, g: ProductGeometry, kind: str, workspace: str, offset: int
) -> None:
    """Store the partial sums; let the last block of a tile add those of all to `total`."""
    outputs = g.row_outputs * g.column_outputs
    threads, thread = g.threads // g.slices, "member" if g.slices > 1 else "thread"
    writer.line(f"{kind}* const partials = ({kind}*)({workspace} + {partials_offset(g.tiles)});")
    each = f"for (int part = 0; part < {outputs}; ++part)"
    total = f"total[part / {g.column_outputs}][part % {g.column_outputs}]"
    with writer.block("if (slice == 0)" if g.slices > 1 else ""), writer.unrolled(each):
        place = f"((tg_i64(block) * {outputs}) + part) * {threads} + {thread}"
        writer.line(f"partials[{place}] = {total};")
    writer.line("__threadfence();")
    writer.line("__syncthreads();")
    writer.line(f"int* const shared_last = reinterpret_cast<int*>(shared + {offset});")
    tickets = f"reinterpret_cast<tg_u64*>({workspace})"
    with writer.block("if (thread == 0)"):
        writer.line(f"const tg_u64 ticket = atomicAdd({tickets} + tile, 1ull);")
        writer.line(f"*shared_last = ticket % {g.splits}ull == {g.splits - 1}ull;")
        writer.line("__threadfence();")
    writer.line("__syncthreads();")
    writer.line("const bool last = *shared_last;")
    first, step = ("slice", g.slices) if g.slices > 1 else ("0", 1)
    with writer.block("if (last)"):
        with writer.unrolled(each):
            writer.line(f"{total} = 0;")
        writer.line(f"#pragma unroll {max(1, LOADED // outputs)}")
        with writer.block(f"for (int split = {first}; split < {g.splits}; split += {step})"):
            found = f"tg_i64(tile * {g.splits} + split) * {outputs}"
            writer.line(f"const {kind}* const other = partials + ({found}) * {threads};")
            with writer.unrolled(each):
                writer.line(f"{total} += __ldcg(other + part * {threads} + {thread});")
        if g.slices > 1:
            add_slices(writer, g, kind)
