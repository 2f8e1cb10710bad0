"""Nests as loops: one writer for each kind, which follows the nest's schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lowering.native.chunks import blocks_in, chunked_schedule_of
from lowering.native.nests.block_folds import BlockFoldWriter
from lowering.native.nests.chunked_folds import fold_in_chunks
from lowering.native.nests.columns import Columns
from lowering.native.nests.fold_columns import fold_columns
from lowering.native.nests.folds import Folded
from lowering.native.nests.kept_values import KeptValues
from lowering.native.nests.operations import fold_dtype
from lowering.native.nests.points import NativeNestWriter, stored_roots
from lowering.native.schedule import NestSchedule
from lowering.native.types import element_type, number
from lowering.plan.nests.analysis import nest_accumulators, nest_roots
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)


def write_nest(writer: NativeNestWriter, nest: Nest) -> None:
    """Write a nest that has points."""
    schedule, write = chunked_schedule_of(nest), NEST_WRITERS[type(nest)]
    if schedule.chunks is None or schedule.chunks.loop is None:
        write(writer, nest, schedule)
    else:
        points, chunks = schedule.points, schedule.chunks
        writer.chunked_points(points, chunks, lambda inner: write(inner, nest, schedule))


def _write_map(writer: NativeNestWriter, nest: MapNest, schedule: NestSchedule) -> None:
    roots = stored_roots(nest.stores, nest.signals)
    writer.loops(schedule.points, lambda: writer.store(nest.stores, nest.signals), roots)


def _write_reduction(writer: NativeNestWriter, nest: ReduceNest, schedule: NestSchedule) -> None:
    roots = list(nest_roots(nest))
    if schedule.fold == "columns":
        *outer, last = schedule.points
        writer.loops(outer, lambda: fold_columns(writer, nest, last, schedule.steps), roots)
        return
    folds = BlockFoldWriter(writer)
    folded = [Folded(n, each) for n, each in enumerate(nest.accumulators)]

    def point() -> None:
        if schedule.fold == "unrolled":
            folds.unrolled(folded, schedule.steps)
        else:
            _fold_blocks(folds, folded, schedule)
        writer.store(nest.stores, nest.signals)

    writer.loops(schedule.points, point, roots)


def _fold_blocks(
    folds: BlockFoldWriter,
    folded: Sequence[Folded],
    schedule: NestSchedule,
    stores: Sequence[Store] = (),
) -> None:
    """The folds of one pass at a point, in chunks if those of the nest are of blocks."""
    chunks, steps = schedule.chunks, schedule.steps
    if chunks is not None and chunks.loop is None:
        fold_in_chunks(folds, folded, steps, stores, chunks, blocks_in(steps))
    else:
        folds.in_blocks(folded, steps, stores)


def _write_rows(writer: NativeNestWriter, nest: RowNest, schedule: NestSchedule) -> None:
    roots = list(nest_roots(nest))
    if schedule.fold == "columns":
        *outer, last = schedule.points
        writer.loops(outer, lambda: fold_columns(writer, nest, last, schedule.steps), roots)
        return
    numbered = [Folded(n, each) for n, each in enumerate(nest_accumulators(nest))]
    kept = KeptValues(writer, nest, schedule.steps)
    folds = BlockFoldWriter(writer, kept=None if schedule.fold == "unrolled" else kept)

    def point() -> None:
        first = 0
        kept.begin_row()
        for each in nest.passes:
            folded = numbered[first : first + len(each.accumulators)]
            first += len(each.accumulators)
            if schedule.fold == "unrolled":
                folds.unrolled(folded, schedule.steps, each.stores)
            else:
                _fold_blocks(folds, folded, schedule, each.stores)
            kept.end_pass()
        writer.store(nest.stores, nest.signals)

    writer.loops(schedule.points, point, roots)


def _write_scan(writer: NativeNestWriter, nest: ScanNest, schedule: NestSchedule) -> None:
    store, how, operations = nest.store, nest.combiner, writer.operations
    dtype = store.value.dtype
    wide = fold_dtype(dtype)
    roots = stored_roots([store])
    # the first result is the first element: a zero keeps its sign
    identity = number(how.identity(wide), wide)
    if how.name == "add" and wide.kind in "fc":
        identity = tuple("-0.0" for _ in identity)

    def step(variable: str, private: bool) -> None:
        value = operations.convert(dtype, wide, writer.run.value(store.value))
        old = operations.load_parts(wide, variable, private)
        new = operations.combine(how, wide, old, value)
        operations.store_parts(wide, new, variable, private)
        writer.store([store], running=operations.convert(wide, dtype, new))

    def point(variable: str) -> None:
        operations.store_parts(wide, identity, variable, private=True)
        writer.loops(schedule.steps, lambda: step(variable, True), roots)

    def scan_columns(columns: Columns) -> None:
        type_ = element_type(wide)

        def at(number_: str) -> str:
            return writer.writer.element(type_, columns.array(type_, 0), number_)

        def block(low: str, count: int) -> None:
            columns.at_points(low, count, lambda n: operations.store_parts(wide, identity, at(n)))

            def one_step() -> None:
                writer.hoist(roots)
                columns.at_points(low, count, lambda n: step(at(n), False))

            writer.loops(schedule.steps, one_step, roots)

        columns.blocks(block)

    if schedule.fold == "columns":
        *outer, last = schedule.points
        writer.loops(outer, lambda: scan_columns(Columns(writer, last)), roots)
    else:
        variable = writer.writer.variable(element_type(wide))
        writer.loops(schedule.points, lambda: point(variable), roots)


def _write_scatter(writer: NativeNestWriter, nest: ScatterNest, schedule: NestSchedule) -> None:
    writer.loops(
        schedule.points,
        lambda: writer.store([nest.store], combiner=nest.combiner),
        stored_roots([nest.store]),
    )


NEST_WRITERS: dict[type[Nest], Callable[[NativeNestWriter, Any, NestSchedule], None]] = {
    MapNest: _write_map,
    ReduceNest: _write_reduction,
    RowNest: _write_rows,
    ScanNest: _write_scan,
    ScatterNest: _write_scatter,
}
"""What writes each class of nests; others are calls of the host."""
