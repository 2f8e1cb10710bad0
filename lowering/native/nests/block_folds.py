"""Folds in blocks: sums in lanes, searches of positions, and all else in the order of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lowering.native.nests.fold_blocks import FoldBlock, FoldBlocks, ordered
from lowering.native.nests.folds import Folded, FoldWriter
from lowering.native.nests.kept_values import KeptValues
from lowering.native.nests.lanes import BLOCK, LaneFold, load_vector
from lowering.native.nests.loops import position_of
from lowering.native.nests.operations import direct_instruction
from lowering.native.nests.points import NativeNestWriter, stored_roots
from lowering.native.nests.searches import find_in_block, search_best_block
from lowering.native.nests.vectors import StepVectors
from lowering.native.schedule import NestLoop, is_folded_in_lanes, is_searched
from lowering.native.types import element_type, memory_parts
from lowering.plan.nests.kernel import Store
from tracegraph.ir.scalar import Expr


class BlockFoldWriter(FoldWriter):
    """Writes folds in blocks.

    With `given`, only blocks from the first register to below the second one are folded, and the
    result of a search is the position where the best of them begins. `kept` are values that passes
    over a row share.
    """

    def __init__(
        self,
        nest: NativeNestWriter,
        given: tuple[str, str] | None = None,
        kept: KeptValues | None = None,
    ) -> None:
        super().__init__(nest)
        self._given, self._kept = given, kept
        self._buffers: dict[tuple[int, int], str] = {}
        self._lanes: dict[tuple[int, int], LaneFold] = {}

    def in_blocks(
        self, folded: Sequence[Folded], loops: Sequence[NestLoop], stores: Sequence[Store] = ()
    ) -> None:
        """Fold over nested loops, with stores at each step."""
        in_lanes = [each for each in folded if is_folded_in_lanes(each.accumulator)]
        searched = [each for each in folded if loops and is_searched(each.accumulator)]
        plain = [each for each in folded if each not in in_lanes and each not in searched]
        for each in searched:
            self._search(each, loops)
        self.begin(plain)
        if not loops:
            self._one_step(plain, in_lanes, stores)
            return
        if searched and not plain and not in_lanes and not stores:
            return
        roots = [each.accumulator.value for each in folded] + stored_roots(stores)
        if not in_lanes:
            self._plain_loops(plain, loops, stores, roots)
            self.end(plain)
            return
        blocks = FoldBlocks(self.nest, loops, roots, self._given)
        for each in in_lanes:
            for lane in self.lane_folds(each):
                if not blocks.are_one:
                    lane.begin_blocks()
        results: list[list[str]] = []

        def one(block: FoldBlock) -> None:
            if plain:
                blocks.steps(block, lambda: self.step(plain, loops))
            sums = self._sums_of_block(in_lanes, stores, blocks, block)
            if blocks.are_one:
                results.extend(sums)
                return
            for each, parts in zip(in_lanes, sums, strict=True):
                for lane, value in zip(self.lane_folds(each), parts, strict=True):
                    lane.push(value)

        blocks.write(one)
        if not blocks.are_one:
            results = [[lane.total() for lane in self.lane_folds(each)] for each in in_lanes]
        for each, parts in zip(in_lanes, results, strict=True):
            self.set_result(each, tuple(parts))
        self.end(plain)

    def _search(self, each: Folded, loops: Sequence[NestLoop]) -> None:
        start = search_best_block(self, each, loops, self._given)
        if self._given is None:
            find_in_block(self, each, loops, start)
        else:
            self.set_result(each, (start,))

    def _one_step(
        self, plain: Sequence[Folded], in_lanes: Sequence[Folded], stores: Sequence[Store]
    ) -> None:
        """A fold over one step."""
        operations = self.operations
        with self.run.scope():
            self.step(plain, ())
            for each in in_lanes:
                value = self.run.value(each.accumulator.value)
                value = operations.convert(each.accumulator.value.dtype, each.dtype, value)
                how = each.accumulator.combiner
                found = operations.combine(how, each.dtype, each.identity, value)
                if not each.variable:
                    each.variable = self.writer.variable(element_type(each.dtype))
                operations.store_parts(each.dtype, found, each.variable, each.private)
            self.nest.store(stores)
        self.end(in_lanes)
        self.end(plain)

    def _plain_loops(
        self,
        folded: Sequence[Folded],
        loops: Sequence[NestLoop],
        stores: Sequence[Store],
        roots: Sequence[Expr],
    ) -> None:
        """All steps in loops: of a pass that stores without a fold, in any order."""

        def step() -> None:
            if self._kept is not None:
                self._kept.load()
            self.step(folded, loops)
            self.nest.store(stores)
            if self._kept is not None:
                self._kept.store()

        if self._given is not None:
            blocks = FoldBlocks(self.nest, loops, roots, self._given)
            blocks.write(lambda block: blocks.steps(block, step, independent=not folded))
            return
        self.nest.loops(loops if not folded else [ordered(loop) for loop in loops], step, roots)

    def _sums_of_block(
        self,
        in_lanes: Sequence[Folded],
        stores: Sequence[Store],
        blocks: FoldBlocks,
        block: FoldBlock,
    ) -> list[list[str]]:
        """The sums of a block by accumulator and part.

        Values that are no vectors are stored in memory first. What is read by vectors is read
        before the pass stores, for it may overwrite what it reads.
        """
        writer, loop, inner = self.writer, blocks.loop, blocks.inner
        sums: dict[int, list[str]] = {}
        for each in in_lanes:
            vectors = StepVectors(self.nest, each.dtype, loop, block.low, blocks.within, inner)
            at = vectors.of(each.accumulator.value)
            if at is not None:
                sums[each.number] = [lane.block(at, block.count) for lane in self.lane_folds(each)]
        copied = [each for each in in_lanes if each.number not in sums]

        def fill() -> None:
            if self._kept is not None:
                self._kept.load()
            values = []
            for each in copied:
                value = self.run.value(each.accumulator.value)
                values.append(
                    self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
                )
            step = writer.assign(f"sub nsw i64 {self.run.axes[loop.axis]}, {block.low}")
            first = writer.assign(f"mul nsw i64 {step}, {inner}")
            within = self.run.index(position_of(blocks.within))
            place = writer.assign(f"add nsw i64 {first}, {within}")
            for each, value in zip(copied, values, strict=True):
                types = memory_parts(each.dtype)
                for part, (type_, x) in enumerate(zip(types, value, strict=True)):
                    target = writer.element(type_, self._buffer(each, part), place)
                    writer.store(type_, x, target)
            self.nest.store(stores)
            if self._kept is not None:
                self._kept.store()

        if copied or stores or (self._kept is not None and self._kept.are_pending):
            blocks.steps(block, fill, independent=True)
        for each in copied:
            types = memory_parts(each.dtype)
            sums[each.number] = [
                lane.block(
                    partial(load_vector, writer, type_, self._buffer(each, part)), block.count
                )
                for part, (type_, lane) in enumerate(zip(types, self.lane_folds(each), strict=True))
            ]
        return [sums[each.number] for each in in_lanes]

    def _buffer(self, each: Folded, part: int) -> str:
        """Memory for the values of a block, of one part of an accumulator."""
        key = (each.number, part)
        if key not in self._buffers:
            type_ = memory_parts(each.dtype)[part]
            self._buffers[key] = self.writer.shared(f"[{BLOCK} x {type_}]", len(self._buffers))
        return self._buffers[key]

    def lane_folds(self, each: Folded) -> list[LaneFold]:
        """The lanes of an accumulator, for each part of its values."""
        instruction = direct_instruction(each.accumulator.combiner, each.dtype)
        assert instruction is not None
        for part, (type_, identity) in enumerate(
            zip(memory_parts(each.dtype), each.identity, strict=True)
        ):
            if (each.number, part) not in self._lanes:
                lane = LaneFold(self.writer, instruction, type_, identity, len(self._lanes))
                self._lanes[each.number, part] = lane
        return [self._lanes[each.number, part] for part in range(len(each.identity))]
