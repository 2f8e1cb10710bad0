"""Nests as loops: one writer for each kind, which follows the nest's schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowering.native.folds import Folded, FoldWriter
from lowering.native.operations import fold_dtype
from lowering.native.points import NativeNestWriter, stored_roots
from lowering.native.schedule import NestSchedule, schedule_of
from lowering.native.types import element_type, number
from lowering.plan.nests.analysis import nest_accumulators, nest_roots
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
)


def write_nest(writer: NativeNestWriter, nest: Nest) -> None:
    """Write a nest that has points."""
    NEST_WRITERS[type(nest)](writer, nest, schedule_of(nest))


def _write_map(writer: NativeNestWriter, nest: MapNest, schedule: NestSchedule) -> None:
    roots = stored_roots(nest.stores, nest.signals)
    writer.loops(schedule.points, lambda: writer.store(nest.stores, nest.signals), roots)


def _write_reduction(writer: NativeNestWriter, nest: ReduceNest, schedule: NestSchedule) -> None:
    folds, roots = FoldWriter(writer), list(nest_roots(nest))
    if schedule.fold == "columns":
        *outer, last = schedule.points
        writer.loops(outer, lambda: folds.columns(nest, last, schedule.steps), roots)
        return
    folded = [Folded(n, each) for n, each in enumerate(nest.accumulators)]

    def point() -> None:
        if schedule.fold == "unrolled":
            folds.unrolled(folded, schedule.steps)
        else:
            folds.in_blocks(folded, schedule.steps)
        writer.store(nest.stores, nest.signals)

    writer.loops(schedule.points, point, roots)


def _write_rows(writer: NativeNestWriter, nest: RowNest, schedule: NestSchedule) -> None:
    folds, roots = FoldWriter(writer), list(nest_roots(nest))
    numbered = [Folded(n, each) for n, each in enumerate(nest_accumulators(nest))]

    def point() -> None:
        first = 0
        for each in nest.passes:
            folded = numbered[first : first + len(each.accumulators)]
            first += len(each.accumulators)
            if schedule.fold == "unrolled":
                folds.unrolled(folded, schedule.steps, each.stores)
            else:
                folds.in_blocks(folded, schedule.steps, each.stores)
        writer.store(nest.stores, nest.signals)

    writer.loops(schedule.points, point, roots)


def _write_scan(writer: NativeNestWriter, nest: ScanNest, schedule: NestSchedule) -> None:
    store, how = nest.store, nest.combiner
    dtype, run = store.value.dtype, writer.run
    wide = fold_dtype(dtype)
    variable = writer.writer.variable(element_type(wide))
    roots = stored_roots([store])

    def step() -> None:
        value = writer.operations.convert(dtype, wide, run.value(store.value))
        old = writer.operations.load_parts(wide, variable, private=True)
        new = writer.operations.combine(how, wide, old, value)
        writer.operations.store_parts(wide, new, variable, private=True)
        writer.store([store], running=writer.operations.convert(wide, dtype, new))

    def point() -> None:
        # the first result is the first element: a zero keeps its sign
        rounds = how.name == "add" and wide.kind in "fc"
        identity = number(how.identity(wide), wide)
        first = tuple("-0.0" for _ in identity) if rounds else identity
        writer.operations.store_parts(wide, first, variable, private=True)
        writer.loops(schedule.steps, step, roots)

    writer.loops(schedule.points, point, roots)


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
