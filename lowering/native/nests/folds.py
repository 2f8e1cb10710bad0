"""Folds over the steps of a reduction, at one point or at many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lowering.native.nests.columns import Columns
from lowering.native.nests.kept_values import KeptValues
from lowering.native.nests.lanes import BLOCK, LaneFold, chunks, load_vector
from lowering.native.nests.operations import direct_instruction, fold_dtype
from lowering.native.nests.points import NativeNestWriter, position_of, step_strides, stored_roots
from lowering.native.nests.vectors import StepVectors
from lowering.native.schedule import NestLoop, is_folded_in_lanes, is_searched
from lowering.native.types import Parts, element_type, memory_parts, number, register_parts
from lowering.plan.nests.analysis import as_rows, nest_accumulators
from lowering.plan.nests.kernel import Accumulator, Pass, ReduceNest, RowNest, Store
from tracegraph.ir.scalar import INDEX, Expr
from tracegraph.ir.scalar_values import Accumulated

LAST = (1 << 63) - 1
"""No position."""


@dataclass
class Folded:
    """An accumulator of a nest while it is folded, by its number in the nest."""

    number: int
    accumulator: Accumulator
    dtype: np.dtype[Any] = field(init=False)
    variable: str = ""
    position: str = ""
    private: bool = True

    def __post_init__(self) -> None:
        self.dtype = fold_dtype(self.accumulator.value.dtype)

    @property
    def identity(self) -> Parts:
        """What a fold begins with."""
        return number(self.accumulator.combiner.identity(self.dtype), self.dtype)


class FoldWriter:
    """Writes the folds of a nest; those `in_blocks` of a range of blocks only, if it is given."""

    def __init__(self, nest: NativeNestWriter, blocks: tuple[str, str] | None = None) -> None:
        self.nest = nest
        self._range = blocks
        self.results: dict[int, Parts] = {}
        """What was folded, by accumulator, in the dtypes of folds."""
        self.writer, self.run, self.operations = nest.writer, nest.run, nest.operations
        self._buffers: dict[tuple[int, int], str] = {}
        self._lanes: dict[tuple[int, int], LaneFold] = {}
        self.kept: KeptValues | None = None

    # -- one point after the other --------------------------------------------------------------

    def begin(self, folded: Sequence[Folded]) -> None:
        """Set accumulators to their identity."""
        for each in folded:
            if not each.variable:
                each.variable = self.writer.variable(element_type(each.dtype))
                if each.accumulator.arg:
                    each.position = self.writer.variable("i64")
            self.operations.store_parts(each.dtype, each.identity, each.variable, each.private)
            if each.accumulator.arg:
                self.writer.store("i64", "0", each.position, each.private)

    def step(self, folded: Sequence[Folded], loops: Sequence[NestLoop]) -> None:
        """Fold the values at one step."""
        values = [self.run.value(each.accumulator.value) for each in folded]
        for each, value in zip(folded, values, strict=True):
            if each.accumulator.arg:
                self._step_of_position(each, value, loops)
                continue
            value = self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
            old = self.operations.load_parts(each.dtype, each.variable, each.private)
            how = each.accumulator.combiner
            new = self.operations.combine(how, each.dtype, old, value)
            self.operations.store_parts(each.dtype, new, each.variable, each.private)

    def _step_of_position(self, each: Folded, value: Parts, loops: Sequence[NestLoop]) -> None:
        """Keep the first extreme and its position: the first NaN, if there is one."""
        write = self.writer.assign
        value = self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
        old = self.operations.load_parts(each.dtype, each.variable, each.private)
        position = self.run.index(position_of(loops))
        chosen = self.is_better(each, value, old)
        types = register_parts(each.dtype)
        new = tuple(
            write(f"select i1 {chosen}, {type_} {x}, {type_} {y}")
            for type_, x, y in zip(types, value, old, strict=True)
        )
        self.operations.store_parts(each.dtype, new, each.variable, each.private)
        before = self.writer.load("i64", each.position, each.private)
        after = write(f"select i1 {chosen}, i64 {position}, i64 {before}")
        self.writer.store("i64", after, each.position, each.private)

    def is_better(self, each: Folded, value: Parts, old: Parts) -> str:
        """Whether a value comes before an extreme that was found earlier: a NaN before numbers."""
        write, dtype = self.writer.assign, each.dtype
        greatest = each.accumulator.combiner.name == "maximum"
        if dtype.kind == "c":
            return self._is_better_complex(dtype, greatest, value, old)
        (type_,) = register_parts(dtype)
        x, y = value[0], old[0]
        if dtype.kind != "f":
            sign = "s" if dtype.kind == "i" else "u"
            return write(f"icmp {sign}{'gt' if greatest else 'lt'} {type_} {x}, {y}")
        beyond = write(f"fcmp {'ogt' if greatest else 'olt'} {type_} {x}, {y}")
        return self._or_first_nan(beyond, type_, (x,), (y,))

    def _is_better_complex(
        self,
        dtype: np.dtype[Any],
        greatest: bool,
        value: Parts,
        old: Parts,
    ) -> str:
        """Complex numbers are ordered by the real part, then by the other."""
        write, (type_, _) = self.writer.assign, memory_parts(dtype)
        relation = "ogt" if greatest else "olt"
        real, imaginary = (
            write(f"fcmp {relation} {type_} {x}, {y}") for x, y in zip(value, old, strict=True)
        )
        same = write(f"fcmp oeq {type_} {value[0]}, {old[0]}")
        beyond = write(f"or i1 {real}, {write(f'and i1 {same}, {imaginary}')}")
        return self._or_first_nan(beyond, type_, value, old)

    def _or_first_nan(self, beyond: str, type_: str, value: Parts, old: Parts) -> str:
        write = self.writer.assign
        is_nan, was_nan = (self._is_nan(type_, parts) for parts in (value, old))
        first = write(f"and i1 {is_nan}, {write(f'xor i1 {was_nan}, true')}")
        ordered = write(f"and i1 {beyond}, {write(f'xor i1 {was_nan}, true')}")
        return write(f"or i1 {ordered}, {first}")

    def _is_nan(self, type_: str, parts: Parts) -> str:
        write = self.writer.assign
        found = [write(f"fcmp uno {type_} {x}, {x}") for x in parts]
        return found[0] if len(found) == 1 else write(f"or i1 {found[0]}, {found[1]}")

    def end(self, folded: Sequence[Folded]) -> None:
        """Make the results known, as the values of `Accumulated`."""
        for each in folded:
            if each.accumulator.arg:
                found: Parts = (self.writer.load("i64", each.position, each.private),)
            else:
                found = self.operations.load_parts(each.dtype, each.variable, each.private)
            self.set_result(each, found)

    def set_result(self, each: Folded, value: Parts) -> None:
        """Give the result of a fold, in the dtype that it is folded in."""
        dtype = each.accumulator.value.dtype
        self.results[each.number] = value
        if each.accumulator.arg:
            self.run.values[Accumulated.make(each.number, INDEX)] = value
            return
        value = self.operations.convert(each.dtype, dtype, value)
        self.run.values[Accumulated.make(each.number, dtype)] = value

    # -- written out ----------------------------------------------------------------------------

    def unrolled(
        self, folded: Sequence[Folded], loops: Sequence[NestLoop], stores: Sequence[Store] = ()
    ) -> None:
        """Write every step of a fold."""
        self.begin(folded)

        def step() -> None:
            self.step(folded, loops)
            self.nest.store(stores)

        self.nest.unrolled(loops, step)
        self.end(folded)

    # -- in blocks of lanes ---------------------------------------------------------------------

    def in_blocks(
        self, folded: Sequence[Folded], loops: Sequence[NestLoop], stores: Sequence[Store] = ()
    ) -> None:
        """Fold block by block: floats are added in lanes, all else step by step."""
        wide = [each for each in folded if is_folded_in_lanes(each.accumulator)]
        searched = [each for each in folded if loops and is_searched(each.accumulator)]
        plain = [each for each in folded if each not in wide and each not in searched]
        for each in searched:
            self.search(each, loops)
        self.begin(plain)
        roots = [each.accumulator.value for each in folded] + stored_roots(stores)
        if not loops:
            with self.run.scope():
                self.step(plain, loops)
                for each in wide:
                    self._one_step(each)
                self.nest.store(stores)
            self._read_single(wide)
            self.end(plain)
            return
        split, steps, inner = chunks([loop.extent for loop in loops])
        outer, chunked, within = loops[:split], loops[split], loops[split + 1 :]
        blocks = prod([loop.extent for loop in outer]) * -(-chunked.extent // steps)
        is_one = blocks == 1 and self._range is None
        if searched and not plain and not wide and not stores:
            return
        if not wide:
            self._plain_loops(plain, loops, stores, roots)
            self.end(plain)
            return
        for each in wide:
            for lane in self.lane_folds(each):
                if not is_one:
                    lane.begin_blocks()
        results: list[list[str]] = []

        def block(low: str, high: str, limits: tuple[int, int], count: str) -> None:
            if plain:
                step = partial(self.step, plain, loops)
                self._block_loops(chunked, low, high, limits, within, step, roots, False)
            sums = self._sums_of_block(
                wide, stores, chunked, low, high, limits, within, inner, count, roots
            )
            if is_one:
                results.extend(sums)
                return
            for each, parts in zip(wide, sums, strict=True):
                for lane, value in zip(self.lane_folds(each), parts, strict=True):
                    lane.push(value)

        self._all_blocks(loops, block, roots)
        if not is_one:
            results = [[lane.total() for lane in self.lane_folds(each)] for each in wide]
        for each, parts in zip(wide, results, strict=True):
            self.set_result(each, tuple(parts))
        self.end(plain)

    # -- positions ------------------------------------------------------------------------------

    def search(self, each: Folded, loops: Sequence[NestLoop]) -> None:
        """Find the first extreme: the extreme of each block, then the position in the best block.

        Folding a block can be vectorised, and so can the search in one. In a range of blocks, the
        result is the position where the best of these blocks begins.
        """
        writer, roots = self.writer, [each.accumulator.value]
        split, _, _ = chunks([loop.extent for loop in loops])
        chunked, within = loops[split], loops[split + 1 :]
        self.begin([each])
        block_extreme = writer.variable(element_type(each.dtype))
        first = writer.variable("i64")
        writer.line(f"store i64 0, ptr {first}")
        value_of = Accumulator(each.accumulator.combiner, each.accumulator.value)
        part = Folded(each.number, value_of, block_extreme)

        def block(low: str, high: str, limits: tuple[int, int], count: str) -> None:
            self.begin([part])
            step = partial(self.step, [part], loops)
            self._block_loops(chunked, low, high, limits, within, step, roots, False)
            found = self.operations.load_parts(each.dtype, block_extreme, private=True)
            best = self.operations.load_parts(each.dtype, each.variable, private=True)

            def keep() -> None:
                self.operations.store_parts(each.dtype, found, each.variable, private=True)
                with self.run.scope():
                    for loop in within:
                        self.run.bind(loop.axis, "0", 0, 0)
                    self.run.bind(chunked.axis, low, *limits)
                    start = self.run.index(position_of(loops))
                writer.line(f"store i64 {start}, ptr {first}")

            writer.if_(self.is_better(each, found, best), keep)

        self._all_blocks(loops, block, roots)
        start = writer.assign(f"load i64, ptr {first}")
        if self._range is None:
            self.find_in_block(each, loops, start)
        else:
            self.set_result(each, (start,))

    def find_in_block(self, each: Folded, loops: Sequence[NestLoop], start: str) -> None:
        """The first position that has the extreme, in the block that begins at a position."""
        split, steps, _ = chunks([loop.extent for loop in loops])
        writer, chunked, within = self.writer, loops[split], loops[split + 1 :]
        best = self.operations.load_parts(each.dtype, each.variable, private=True)
        found = writer.variable("i64")
        writer.line(f"store i64 {LAST}, ptr {found}")

        def step() -> None:
            value = self.run.value(each.accumulator.value)
            value = self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
            position = self.run.index(position_of(loops))
            same = self._is_same(each.dtype, value, best)
            candidate = writer.assign(f"select i1 {same}, i64 {position}, i64 {LAST}")
            before = writer.assign(f"load i64, ptr {found}")
            least = writer.call("i64", "llvm.smin.i64", f"i64 {before}", f"i64 {candidate}")
            writer.line(f"store i64 {least}, ptr {found}")

        with self.run.scope():
            for loop, stride in step_strides(loops)[: split + 1]:
                quotient = writer.assign(f"udiv i64 {start}, {stride}")
                place = writer.assign(f"urem i64 {quotient}, {loop.extent}")
                if loop is chunked:
                    end = writer.assign(f"add nuw nsw i64 {place}, {steps}")
                    end = writer.call("i64", "llvm.smin.i64", f"i64 {end}", f"i64 {loop.extent}")
                    limits = (0, loop.extent - 1)
                    roots = [each.accumulator.value]
                    self.nest.hoist(roots)
                    self._block_loops(loop, place, end, limits, within, step, roots, False)
                else:
                    for axis in loop.axes[:-1]:
                        self.run.bind(axis, "0", 0, 0)
                    self.run.bind(loop.axis, place, 0, loop.extent - 1)
        self.set_result(each, (writer.assign(f"load i64, ptr {found}"),))

    def _is_same(self, dtype: np.dtype[Any], value: Parts, best: Parts) -> str:
        """Whether a value is the extreme; all NaNs are the same."""
        (type_,) = register_parts(dtype)
        if dtype.kind != "f":
            return self.writer.assign(f"icmp eq {type_} {value[0]}, {best[0]}")
        same = self.writer.assign(f"fcmp oeq {type_} {value[0]}, {best[0]}")
        nans = [self._is_nan(type_, each) for each in (value, best)]
        both = self.writer.assign(f"and i1 {nans[0]}, {nans[1]}")
        return self.writer.assign(f"or i1 {same}, {both}")

    def _one_step(self, each: Folded) -> None:
        value = self.run.value(each.accumulator.value)
        value = self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
        found = self.operations.combine(each.accumulator.combiner, each.dtype, each.identity, value)
        if not each.variable:
            each.variable = self.writer.variable(element_type(each.dtype))
        self.operations.store_parts(each.dtype, found, each.variable, each.private)

    def _read_single(self, folded: Sequence[Folded]) -> None:
        for each in folded:
            self.set_result(
                each, self.operations.load_parts(each.dtype, each.variable, each.private)
            )

    def _plain_loops(
        self,
        folded: Sequence[Folded],
        loops: Sequence[NestLoop],
        stores: Sequence[Store],
        roots: Sequence[Expr],
    ) -> None:
        """All steps in loops: of a pass that stores without a fold, in any order."""

        def step() -> None:
            if self.kept is not None:
                self.kept.load()
            self.step(folded, loops)
            self.nest.store(stores)
            if self.kept is not None:
                self.kept.store()

        if self._range is not None:
            split, _, _ = chunks([loop.extent for loop in loops])
            chunked, within = loops[split], loops[split + 1 :]

            def block(low: str, high: str, limits: tuple[int, int], count: str) -> None:
                self._block_loops(chunked, low, high, limits, within, step, roots, not folded)

            self._all_blocks(loops, block, roots)
            return
        given = loops if not folded else [_ordered(loop) for loop in loops]
        self.nest.loops(given, step, roots)

    def _all_blocks(self, loops: Sequence[NestLoop], block: object, roots: Sequence[Expr]) -> None:
        """Call `block` for all blocks of nested loops, or for those of the range."""
        split, steps, inner = chunks([loop.extent for loop in loops])
        outer, chunked, within = loops[:split], loops[split], loops[split + 1 :]
        if self._range is None:
            self.nest.loops(
                [_ordered(loop) for loop in outer],
                lambda: self._blocks(chunked, steps, inner, block, roots, within),
                roots,
            )
            return
        assert callable(block)
        write, (whole, rest) = self.writer.assign, divmod(chunked.extent, steps)

        def full(place: str) -> None:
            low = write(f"mul nuw nsw i64 {place}, {steps}")
            high = write(f"add nuw nsw i64 {low}, {steps}")
            with self.run.scope():
                block(low, high, (0, whole * steps - 1), str(steps * inner))

        def last() -> None:
            low, high = whole * steps, chunked.extent
            with self.run.scope():
                block(str(low), str(high), (low, high - 1), str(rest * inner))

        begin, end = self._range
        if not outer:
            self.nest.hoist(roots)
            before_last = self.writer.call("i64", "llvm.smin.i64", f"i64 {end}", f"i64 {whole}")
            self.writer.loop(begin, before_last, full)
            if rest:
                self.writer.if_(write(f"icmp sgt i64 {end}, {whole}"), last)
            return
        per_row = whole + bool(rest)

        def one(number_: str) -> None:
            with self.run.scope():
                place = write(f"urem i64 {number_}, {per_row}")
                row = write(f"udiv i64 {number_}, {per_row}")
                for loop in reversed(outer):
                    for axis in loop.axes[:-1]:
                        self.run.bind(axis, "0", 0, 0)
                    index = write(f"urem i64 {row}, {loop.extent}")
                    row = write(f"udiv i64 {row}, {loop.extent}")
                    self.run.bind(loop.axis, index, 0, loop.extent - 1)
                self.nest.hoist(roots)
                if rest:
                    is_last = write(f"icmp eq i64 {place}, {whole}")
                    self.writer.if_(is_last, last, lambda: full(place))
                else:
                    full(place)

        self.writer.loop(begin, end, one)

    def _blocks(
        self,
        loop: NestLoop,
        steps: int,
        inner: int,
        block: object,
        roots: Sequence[Expr],
        within: Sequence[NestLoop],
    ) -> None:
        """Call `block` for the blocks of a loop: the last may have fewer steps."""
        assert callable(block)
        whole, rest = divmod(loop.extent, steps)
        self.nest.hoist(roots)

        def one(number_: str) -> None:
            low = self.writer.assign(f"mul nuw nsw i64 {number_}, {steps}")
            high = self.writer.assign(f"add nuw nsw i64 {low}, {steps}")
            with self.run.scope():
                block(low, high, (0, whole * steps - 1), str(steps * inner))

        if whole == 1:
            with self.run.scope():
                block("0", str(steps), (0, steps - 1), str(steps * inner))
        elif whole:
            self.writer.loop("0", str(whole), one)
        if rest:
            low = whole * steps
            with self.run.scope():
                block(str(low), str(loop.extent), (low, loop.extent - 1), str(rest * inner))

    def _block_loops(
        self,
        loop: NestLoop,
        low: str,
        high: str,
        limits: tuple[int, int],
        within: Sequence[NestLoop],
        body: object,
        roots: Sequence[Expr],
        independent: bool,
    ) -> None:
        assert callable(body)
        inner = within if independent else [_ordered(each) for each in within]
        chosen = NestLoop(loop.axes, loop.extent, independent)
        self.nest.steps(
            chosen,
            low,
            high,
            lambda: self.nest.loops(inner, body, roots),
            limits,
            innermost=not within,
        )

    def _sums_of_block(
        self,
        wide: Sequence[Folded],
        stores: Sequence[Store],
        loop: NestLoop,
        low: str,
        high: str,
        limits: tuple[int, int],
        within: Sequence[NestLoop],
        inner: int,
        count: str,
        roots: Sequence[Expr],
    ) -> list[list[str]]:
        """The sums of a block by accumulator and part.

        Values that are no vectors are stored in memory first. What is read by vectors is read
        before the pass stores, for it may overwrite what it reads.
        """
        size, sums = int(count), dict[int, list[str]]()
        for each in wide:
            vectors = StepVectors(self.nest, each.dtype, loop, low, within, inner)
            vector_at = vectors.of(each.accumulator.value)
            if vector_at is not None:
                sums[each.number] = [lane.block(vector_at, size) for lane in self.lane_folds(each)]
        copied = [each for each in wide if each.number not in sums]

        def fill() -> None:
            if self.kept is not None:
                self.kept.load()
            values = []
            for each in copied:
                value = self.run.value(each.accumulator.value)
                values.append(
                    self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
                )
            step = self.writer.assign(f"sub nsw i64 {self.run.axes[loop.axis]}, {low}")
            first = self.writer.assign(f"mul nsw i64 {step}, {inner}")
            place = self.writer.assign(
                f"add nsw i64 {first}, {self.run.index(position_of(within))}"
            )
            for each, value in zip(copied, values, strict=True):
                for part, (type_, x) in enumerate(
                    zip(memory_parts(each.dtype), value, strict=True)
                ):
                    target = self.writer.element(type_, self._buffer(each, part), place)
                    self.writer.store(type_, x, target)
            self.nest.store(stores)
            if self.kept is not None:
                self.kept.store()

        if copied or stores or (self.kept is not None and self.kept.are_pending):
            self._block_loops(loop, low, high, limits, within, fill, roots, True)
        for each in copied:
            sums[each.number] = [
                lane.block(partial(load_vector, self.writer, type_, self._buffer(each, part)), size)
                for part, (type_, lane) in enumerate(
                    zip(memory_parts(each.dtype), self.lane_folds(each), strict=True)
                )
            ]
        return [sums[each.number] for each in wide]

    def _buffer(self, each: Folded, part: int) -> str:
        """ExecutableMemory for a block of one part of the values of an accumulator."""
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

    # -- many points at once --------------------------------------------------------------------

    def columns(
        self, nest: ReduceNest | RowNest, point: NestLoop, steps: Sequence[NestLoop]
    ) -> None:
        """Fold with the accumulators of up to 512 points along the innermost axis in memory."""
        columns, rows = Columns(self.nest, point), as_rows(nest)
        accumulators = nest_accumulators(rows)
        folded = [Folded(n, each, private=False) for n, each in enumerate(accumulators)]

        def place(those: Sequence[Folded], number_: str) -> None:
            for each in those:
                type_ = element_type(each.dtype)
                array = columns.array(type_, each.number)
                each.variable = self.writer.element(type_, array, number_)
                if each.accumulator.arg:
                    array = columns.array("i64", len(folded) + each.number)
                    each.position = self.writer.element("i64", array, number_)

        def write_pass(low: str, count: int, each: Pass, first: int) -> None:
            earlier, own = folded[:first], folded[first : first + len(each.accumulators)]
            roots = [a.value for a in each.accumulators] + stored_roots(each.stores)

            def begin(number_: str) -> None:
                place(own, number_)
                self.begin(own)

            def step(number_: str) -> None:
                place(earlier, number_)
                self.end(earlier)
                place(own, number_)
                self.step(own, steps)
                self.nest.store(each.stores)

            def one_step() -> None:
                self.nest.hoist(roots)
                columns.at_points(low, count, step)

            columns.at_points(low, count, begin)
            self.nest.loops([_ordered(loop) for loop in steps], one_step, roots)

        def finish(number_: str) -> None:
            place(folded, number_)
            self.end(folded)
            self.nest.store(rows.stores, rows.signals)

        def block(low: str, count: int) -> None:
            first = 0
            for each in rows.passes:
                write_pass(low, count, each, first)
                first += len(each.accumulators)
            columns.at_points(low, count, finish)

        columns.blocks(block)


def _ordered(loop: NestLoop) -> NestLoop:
    """The loop with its steps in order."""
    return NestLoop(loop.axes, loop.extent, False, loop.cuts)
