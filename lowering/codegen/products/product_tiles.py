"""The text of a product by tiles.

A block keeps tiles of both factors in shared memory, `depth` products of each sum deep, and loads
the next ones to registers while it multiplies. A thread multiplies what it reads of a row by what
it reads of a column, each with several outputs, so that it multiplies more often than it reads.

Where several blocks share the sums of a tile, the last one to finish adds the partial sums of all
in their order. So the order of a sum depends on shapes only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from lowering.codegen.expressions import compute, index, index_type, stored, value
from lowering.codegen.flatten import Flattener, linear_axis
from lowering.codegen.geometry_records import ProductGeometry
from lowering.codegen.maps.stores import declare_results, store_results, write_item
from lowering.codegen.maps.vector_accesses import declare_aligned, load_text, vectors_of
from lowering.codegen.preamble import c_type
from lowering.codegen.products.product_geometry import padded, partials_offset
from lowering.codegen.products.separated import Separated, separated
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import RowNest, Store
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nests.strides import offset_in
from lowering.plan.nests.tiled_products import Axes, tiled_product
from lowering.plan.target.hardware import VECTOR_BYTES
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, Expr, affine
from tracegraph.ir.scalar_values import Accumulated, Load

LOADED = 32
"""Partial sums that a thread loads before it adds the first."""

BATCH, ROW, COLUMN, SUMMED = -3, -4, -5, -6
"""Axis numbers of the linear indices of a product."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One factor: its expression over linear indices, the index of its own outputs, and its tile.

    `each` of the `threads` along it has that many outputs, of which a `vector` are neighbours. Rows
    of the tile are a `stride` apart. With `steps_first`, neighbouring threads load neighbouring
    steps of the sums, and else neighbouring outputs: as vectors, if several are `loaded` together.
    """

    name: str
    factor: Separated
    own: Axis
    threads: int
    each: int
    vector: int
    stride: int
    steps_first: bool
    batch: Axis
    by_warps: bool
    loaded: int

    @property
    def side(self) -> int:
        """Outputs of a tile."""
        return self.threads * self.each

    @property
    def is_whole(self) -> bool:
        """Whether all tiles are full."""
        return self.own.extent % self.side == 0

    @property
    def index_type(self) -> str:
        """The type of the index of an output."""
        return index_type(self.own.extent + self.side)

    def output(self, counter: str) -> str:
        """The text of the index of a thread's output: groups of neighbours, so that threads access
        neighbouring vectors.
        """
        if self.by_warps and self.name == "left":
            matrix = f"thread_left / 8 * {self.each // 2} + {counter} / 2"
            return f"start_left + ({matrix}) * 16 + {counter} % 2 * 8 + thread_left % 8"
        if self.by_warps:
            matrix = f"thread_right / 4 * {self.each // 2} + {counter} / 2"
            return f"start_right + ({matrix}) * 8 + thread_right % 4 * 2 + {counter} % 2"
        width = self.vector
        group = f"{counter} / {width} * {self.threads} + thread_{self.name}"
        return f"start_{self.name} + ({group}) * {width} + {counter} % {width}"


def write_product(
    writer: SourceWriter,
    nest: RowNest,
    geometry: ProductGeometry,
    workspace: str,
) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    product = tiled_product(nest)
    assert product is not None
    product = replace(
        product,
        rows=_by_strides(product.rows, loads([product.left])),
        columns=_by_strides(product.columns, nest.stores),
        summed=_by_strides(product.summed, loads([product.left, product.right])),
    )
    kinds = {
        BATCH: product.batch,
        ROW: product.rows,
        COLUMN: product.columns,
        SUMMED: product.summed,
    }
    flat = Flattener({kind: list(axes) for kind, axes in kinds.items()})
    batch, row, column, step = (
        linear_axis(kind, tuple([n for _, n in axes])) for kind, axes in kinds.items()
    )
    dtype, g = product.left.dtype, geometry
    kind, most = c_type(dtype), VECTOR_BYTES // dtype.itemsize

    def side(name: str, factor: Expr, own: Axis, axes: Axes, threads: int, each: int) -> _Side:
        steps_first = _is_along(factor, product.summed, axes)
        whole = flat(factor)
        return _Side(
            name,
            separated(whole, step, -10 if name == "left" else -1010),
            own,
            threads,
            each,
            vector=gcd(each, most),
            stride=padded(threads * each, dtype, g.by_warps),
            steps_first=steps_first,
            batch=batch,
            by_warps=g.by_warps,
            loaded=_loaded(whole, step if steps_first else own, most),
        )

    left = side("left", product.left, row, product.rows, g.rows, g.row_outputs)
    right = side("right", product.right, column, product.columns, g.columns, g.column_outputs)
    sides = left, right
    _declare(writer, geometry, step.extent)
    offset = 0
    for each in sides:
        place = f"reinterpret_cast<{kind}*>(shared + {offset})"
        writer.line(f"{kind}* const {each.name}_tile = {place};")
        offset += g.groups * g.depth * each.stride * dtype.itemsize
        count = _parts(each, geometry) * each.loaded
        writer.line(f"{kind} {each.name}_next[{count}];")
    writer.line(f"{kind} total[{g.row_outputs}][{g.column_outputs}] = {{}};")
    vectors = [each.factor.factor for each in sides if each.loaded > 1]
    accesses = [load for load in vectors if isinstance(load, Load)]
    aligned = declare_aligned(writer, accesses, most) if accesses else {}
    for each in sides:
        _declare_own(writer, each, geometry)
        _load(writer, each, step, geometry, "begin", aligned)
    with writer.block(f"for (int base = begin; base < end; base += {g.depth})"):
        for each in sides:
            _keep(writer, each, geometry)
        writer.line("__syncthreads();")
        with writer.block(f"if (base + {g.depth} < end)"):
            for each in sides:
                _load(writer, each, step, geometry, f"base + {g.depth}", aligned)
        (_multiply_matrices if g.by_warps else _multiply)(writer, sides, geometry, kind)
        writer.line("__syncthreads();")
    if g.splits > 1:
        _add_partials(writer, geometry, kind, workspace, offset)
    tests = ["last"] if g.splits > 1 else []
    tests += [f"batch < {g.batch}"] if g.batch % g.groups else []
    with writer.block(f"if ({' && '.join(tests)})" if tests else ""):
        writer.bind(batch, "batch")
        _store(writer, nest, flat, sides, geometry)


def _by_strides(axes: Axes, accesses: Sequence[Load | Store]) -> Axes:
    """Axes in the order of the largest array that is accessed along them, its neighbours last."""
    for access in sorted(accesses, key=lambda access: -access.buffer.type.size):
        found = affine(offset_in(access.buffer.type.shape, access.indices))
        if found is not None and any(axis in found[0] for axis, _ in axes):
            return tuple(sorted(axes, key=lambda each: -abs(found[0].get(each[0], 0))))
    return axes


def _is_along(factor: Expr, summed: Axes, outputs: Axes) -> bool:
    """Whether elements of a factor are nearer to each other along its sums than along outputs."""
    for load in sorted(loads([factor]), key=lambda load: -load.buffer.type.size):
        found = affine(offset_in(load.buffer.type.shape, load.indices))
        if found is None:
            continue
        strides, _ = found
        across, along = (abs(strides.get(axes[-1][0], 0)) for axes in (outputs, summed))
        if along and across:
            return along < across
    return False


def _loaded(factor: Expr, axis: Axis, most: int) -> int:
    """How many neighbours along an axis are one access, if the factor is in memory as it is."""
    width = most if isinstance(factor, Load) and factor.guard is None else 1
    while width > 1 and (
        axis.extent % width or not vectors_of([], width, [factor], axis.number).loads
    ):
        width //= 2
    return width


def _declare(writer: SourceWriter, g: ProductGeometry, summed: int) -> None:
    tile = "block" if g.splits == 1 else f"block / {g.splits}"
    writer.line(f"const int tile = {tile};")
    writer.line(f"const int start_right = tile % {g.column_tiles} * {g.width};")
    rows = f"tile / {g.column_tiles}"
    writer.line(f"const int start_left = {rows} % {g.row_tiles} * {g.height};")
    writer.line(f"const int start_batch = tile / {g.column_tiles * g.row_tiles} * {g.groups};")
    each = g.rows * g.columns
    writer.line(f"const int group = thread / {each}, batch = start_batch + group;")
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


def _parts(side: _Side, g: ProductGeometry) -> int:
    return ceil_div(g.groups * side.side * g.depth, g.threads * side.loaded)


def _declare_own(writer: SourceWriter, side: _Side, g: ProductGeometry) -> None:
    """Compute what the indices of a thread's elements have in common at all steps."""
    parts = _parts(side, g)
    for number, (axis, _) in enumerate(side.factor.own):
        writer.line(f"{index_type(axis.extent)} {side.name}_own{number}[{parts}];")
    if not side.factor.own:
        return
    with writer.unrolled(f"for (int part = 0; part < {parts}; ++part)"):
        _bind_own(writer, side, g)
        compute(writer, [expr for _, expr in side.factor.own])
        for number, (_, expr) in enumerate(side.factor.own):
            writer.line(f"{side.name}_own{number}[part] = {index(writer, expr)};")


def _bind_own(writer: SourceWriter, side: _Side, g: ProductGeometry) -> None:
    """Bind the output and the matrix of a part; beyond the last one, to the last one."""
    _, own = _place(side, g)
    last = side.own.extent - (1 if side.steps_first else side.loaded)
    writer.line(f"const {side.index_type} place = start_{side.name} + {own};")
    limit = "" if side.is_whole else f" < {last} ? place : {last}"
    writer.line(f"const {side.index_type} own = place{limit};")
    writer.bind(side.own, "own")
    group = f"start_batch + {_group(side, g)}"
    if g.batch % g.groups or not _is_even(side, g):
        group = f"({group} < {g.batch} ? {group} : {g.batch - 1})"
    writer.line(f"const int own_batch = {group};")
    writer.bind(side.batch, "own_batch")


def _load(
    writer: SourceWriter,
    side: _Side,
    step: Axis,
    g: ProductGeometry,
    begin: str,
    aligned: Mapping[Buffer, str],
) -> None:
    """Load a thread's elements of the next tile to registers; 0 beyond the end of the sum.

    There are no branches, so that all loads are in flight together.
    """
    steps, _ = _place(side, g)
    once = "part" not in steps
    rest = bool(step.extent % g.depth)

    def bind_step() -> None:
        writer.line(f"const int next = {begin} + {steps};")
        writer.line(f"const int step = {'next < end ? next : end - 1' if rest else 'next'};")
        writer.bind(step, "step")
        compute(writer, [expr for _, expr in side.factor.steps])
        for axis, expr in side.factor.steps:
            writer.bind(axis, index(writer, expr))

    with writer.block(""):
        if once:
            bind_step()
        with writer.unrolled(f"for (int part = 0; part < {_parts(side, g)}; ++part)"):
            if not once:
                bind_step()
            _bind_own(writer, side, g)
            for number, (axis, _) in enumerate(side.factor.own):
                writer.bind(axis, f"{side.name}_own{number}[part]")
            if side.loaded > 1:
                _load_vector(writer, side, rest, aligned)
            else:
                _load_element(writer, side, rest)


def _load_element(writer: SourceWriter, side: _Side, rest: bool) -> None:
    """Load an element, and compute what the factor is of it."""
    compute(writer, [side.factor.factor])
    found = value(writer, side.factor.factor)
    found = f"tg_rounded_tf32({found})" if side.by_warps else found
    found = f"next < end ? {found} : 0" if rest else found
    writer.line(f"{side.name}_next[part] = {found};")


def _load_vector(
    writer: SourceWriter, side: _Side, rest: bool, aligned: Mapping[Buffer, str]
) -> None:
    """Load neighbouring elements as one vector."""
    load, width = side.factor.factor, side.loaded
    assert isinstance(load, Load)
    compute(writer, load.indices)
    writer.line(f"const auto loaded = {load_text(writer, load, width, aligned)};")
    with writer.unrolled(f"for (int item = 0; item < {width}; ++item)"):
        found = "loaded.items[item]"
        found = f"tg_rounded_tf32({found})" if side.by_warps else found
        found = f"next < end ? {found} : 0" if rest else found
        writer.line(f"{side.name}_next[part * {width} + item] = {found};")


def _keep(writer: SourceWriter, side: _Side, g: ProductGeometry) -> None:
    """Write the elements in registers to the tiles in shared memory."""
    size, width = g.groups * side.side * g.depth, side.loaded
    step, own = _place(side, g)
    step, own = (f"{step} + item", own) if side.steps_first else (step, f"{own} + item")
    row = f"{_group(side, g)} * {g.depth} + {step}"
    target = f"{side.name}_tile[({row}) * {side.stride} + {own}]"
    test = f"if ((thread + part * {g.threads}) * {width} < {size}) "
    with (
        writer.unrolled(f"for (int part = 0; part < {_parts(side, g)}; ++part)"),
        writer.unrolled(f"for (int item = 0; item < {width}; ++item)"),
    ):
        source = f"{side.name}_next[part * {width} + item]"
        writer.line(f"{'' if _is_even(side, g) else test}{target} = {source};")


def _is_even(side: _Side, g: ProductGeometry) -> bool:
    """Whether all threads load as many elements."""
    return g.groups * side.side * g.depth % (g.threads * side.loaded) == 0


def _place(side: _Side, g: ProductGeometry) -> tuple[str, str]:
    """The step and the output of a part that a thread loads, in the tile."""
    inner, outer = (g.depth, side.side) if side.steps_first else (side.side, g.depth)
    count = inner // side.loaded
    place = "thread" if g.threads % count == 0 else f"(thread + part * {g.threads})"
    near = f"{place} % {count}" + (f" * {side.loaded}" if side.loaded > 1 else "")
    far = f"(thread + part * {g.threads}) / {count} % {outer}"
    return (near, far) if side.steps_first else (far, near)


def _group(side: _Side, g: ProductGeometry) -> str:
    """The matrix of a part, among those of a block."""
    parts = side.side * g.depth // side.loaded
    return "0" if g.groups == 1 else f"(thread + part * {g.threads}) / {parts}"


def _multiply(
    writer: SourceWriter, sides: tuple[_Side, _Side], g: ProductGeometry, kind: str
) -> None:
    """Multiply what the tiles have of each row and column, and add it to the totals."""
    with writer.unrolled(f"for (int depth = 0; depth < {g.depth}; ++depth)"):
        for side in sides:
            groups, pack = side.each // side.vector, f"tg_pack<{kind}, {side.vector}>"
            writer.line(f"{pack} {side.name}[{groups}];")
            with writer.unrolled(f"for (int part = 0; part < {groups}; ++part)"):
                place = f"(part * {side.threads} + thread_{side.name}) * {side.vector}"
                row = f"(group * {g.depth} + depth)"
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


def _multiply_matrices(
    writer: SourceWriter, sides: tuple[_Side, _Side], g: ProductGeometry, kind: str
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


def _add_partials(
    writer: SourceWriter, g: ProductGeometry, kind: str, workspace: str, offset: int
) -> None:
    """Store the partial sums; let the last block of a tile add those of all to `total`."""
    outputs = g.row_outputs * g.column_outputs
    writer.line(f"{kind}* const partials = ({kind}*)({workspace} + {partials_offset(g.tiles)});")
    each = f"for (int part = 0; part < {outputs}; ++part)"
    total = f"total[part / {g.column_outputs}][part % {g.column_outputs}]"
    with writer.unrolled(each):
        place = f"((tg_i64(block) * {outputs}) + part) * {g.threads} + thread"
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
    with writer.block("if (last)"):
        with writer.unrolled(each):
            writer.line(f"{total} = 0;")
        writer.line(f"#pragma unroll {max(1, LOADED // outputs)}")
        with writer.block(f"for (int split = 0; split < {g.splits}; ++split)"):
            first = f"tg_i64(tile * {g.splits} + split) * {outputs}"
            writer.line(f"const {kind}* const other = partials + ({first}) * {g.threads};")
            with writer.unrolled(each):
                writer.line(f"{total} += __ldcg(other + part * {g.threads} + thread);")


def _store(
    writer: SourceWriter,
    nest: RowNest,
    flat: Flattener,
    sides: tuple[_Side, _Side],
    g: ProductGeometry,
) -> None:
    """Compute and store what follows from each total; neighbouring columns as vectors."""
    stores = list(map(flat.store, nest.stores))
    total = Accumulated.make(0, nest.passes[0].accumulators[0].value.dtype)
    left, right = sides
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


def _bind_output(writer: SourceWriter, side: _Side, name: str, counter: str) -> None:
    writer.line(f"const {side.index_type} {name} = {side.output(counter)};")
    if not side.is_whole:
        writer.line(f"if ({name} >= {side.own.extent}) continue;")
    writer.bind(side.own, name)
