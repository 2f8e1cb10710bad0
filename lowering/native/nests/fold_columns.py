"""Folds at many points at once: the accumulators of up to 512 points along an axis are arrays."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.native.nests.columns import Columns
from lowering.native.nests.fold_blocks import ordered
from lowering.native.nests.folds import Folded, FoldWriter
from lowering.native.nests.points import NativeNestWriter, stored_roots
from lowering.native.schedule import NestLoop
from lowering.native.types import element_type
from lowering.plan.nests.analysis import as_rows, nest_accumulators
from lowering.plan.nests.kernel import Pass, ReduceNest, RowNest


def fold_columns(
    nest: NativeNestWriter,
    reduction: ReduceNest | RowNest,
    point: NestLoop,
    steps: Sequence[NestLoop],
) -> None:
    """Write the folds of a nest at all points of its innermost loop over points."""
    folds, writer = FoldWriter(nest), nest.writer
    columns, rows = Columns(nest, point), as_rows(reduction)
    accumulators = nest_accumulators(rows)
    folded = [Folded(n, each, private=False) for n, each in enumerate(accumulators)]

    def place(those: Sequence[Folded], number_: str) -> None:
        for each in those:
            type_ = element_type(each.dtype)
            array = columns.array(type_, each.number)
            each.variable = writer.element(type_, array, number_)
            if each.accumulator.arg:
                array = columns.array("i64", len(folded) + each.number)
                each.position = writer.element("i64", array, number_)

    def write_pass(low: str, count: int, each: Pass, first: int) -> None:
        earlier, own = folded[:first], folded[first : first + len(each.accumulators)]
        roots = [a.value for a in each.accumulators] + stored_roots(each.stores)

        def begin(number_: str) -> None:
            place(own, number_)
            folds.begin(own)

        def step(number_: str) -> None:
            place(earlier, number_)
            folds.end(earlier)
            place(own, number_)
            folds.step(own, steps)
            nest.store(each.stores)

        def one_step() -> None:
            nest.hoist(roots)
            columns.at_points(low, count, step)

        columns.at_points(low, count, begin)
        nest.loops([ordered(loop) for loop in steps], one_step, roots)

    def finish(number_: str) -> None:
        place(folded, number_)
        folds.end(folded)
        nest.store(rows.stores, rows.signals)

    def block(low: str, count: int) -> None:
        first = 0
        for each in rows.passes:
            write_pass(low, count, each, first)
            first += len(each.accumulators)
        columns.at_points(low, count, finish)

    columns.blocks(block)
