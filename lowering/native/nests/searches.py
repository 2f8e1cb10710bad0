"""Positions of extremes in blocks: the extreme of each block, then its position in the best block.

To fold a block can be vectorised, and so can the search in one.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.native.nests.extremes import is_better, is_same
from lowering.native.nests.fold_blocks import FoldBlock, FoldBlocks
from lowering.native.nests.folds import Folded, FoldWriter
from lowering.native.nests.loops import position_of, step_strides
from lowering.native.schedule import NestLoop
from lowering.native.types import element_type
from lowering.plan.nests.kernel import Accumulator

NOWHERE = (1 << 63) - 1
"""Behind all positions."""


def search_best_block(
    folds: FoldWriter, each: Folded, loops: Sequence[NestLoop], given: tuple[str, str] | None
) -> str:
    """Fold the extreme of all blocks, or of the given ones; the position where the first block
    that has it begins.
    """
    writer, run, operations = folds.writer, folds.run, folds.operations
    blocks = FoldBlocks(folds.nest, loops, [each.accumulator.value], given)
    folds.begin([each])
    block_extreme = writer.variable(element_type(each.dtype))
    first = writer.variable("i64")
    writer.line(f"store i64 0, ptr {first}")
    value_of = Accumulator(each.accumulator.combiner, each.accumulator.value)
    part = Folded(each.number, value_of, block_extreme)

    def one(block: FoldBlock) -> None:
        folds.begin([part])
        blocks.steps(block, lambda: folds.step([part], loops))
        found = operations.load_parts(each.dtype, block_extreme, private=True)
        best = operations.load_parts(each.dtype, each.variable, private=True)

        def keep() -> None:
            operations.store_parts(each.dtype, found, each.variable, private=True)
            with run.scope():
                for loop in blocks.within:
                    run.bind(loop.axis, "0", 0, 0)
                run.bind(blocks.loop.axis, block.low, *block.limits)
                start = run.index(position_of(loops))
            writer.line(f"store i64 {start}, ptr {first}")

        writer.if_(is_better(writer, each.dtype, each.greatest, found, best), keep)

    blocks.write(one)
    return writer.assign(f"load i64, ptr {first}")


def find_in_block(folds: FoldWriter, each: Folded, loops: Sequence[NestLoop], start: str) -> None:
    """The first position that has the extreme, in the block that begins at a position."""
    writer, run, nest = folds.writer, folds.run, folds.nest
    blocks = FoldBlocks(nest, loops, [each.accumulator.value])
    best = folds.operations.load_parts(each.dtype, each.variable, private=True)
    found = writer.variable("i64")
    writer.line(f"store i64 {NOWHERE}, ptr {found}")

    def step() -> None:
        value = run.value(each.accumulator.value)
        value = folds.operations.convert(each.accumulator.value.dtype, each.dtype, value)
        position = run.index(position_of(loops))
        same = is_same(writer, each.dtype, value, best)
        candidate = writer.assign(f"select i1 {same}, i64 {position}, i64 {NOWHERE}")
        before = writer.assign(f"load i64, ptr {found}")
        least = writer.call("i64", "llvm.smin.i64", f"i64 {before}", f"i64 {candidate}")
        writer.line(f"store i64 {least}, ptr {found}")

    with run.scope():
        for loop, stride in step_strides(loops)[: len(blocks.outer) + 1]:
            quotient = writer.assign(f"udiv i64 {start}, {stride}")
            place = writer.assign(f"urem i64 {quotient}, {loop.extent}")
            if loop is blocks.loop:
                end = blocks.end_of(place)
                nest.hoist([each.accumulator.value])
                blocks.steps(FoldBlock(place, end, (0, loop.extent - 1), 0), step)
            else:
                nest.bind(loop, place, 0, loop.extent - 1)
    folds.set_result(each, (writer.assign(f"load i64, ptr {found}"),))
