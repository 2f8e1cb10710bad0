"""Folds in chunks of blocks: each is folded by itself, and what they give is combined in order.

A chunk has 2**n blocks of the tree of a sum, so that the tree stays the same. The frame that the
function of a chunk is called with has a word for each axis and each part of an accumulator that the
chunk needs, and behind these, for each part that a chunk gives, a word of every chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.native.nests.block_folds import BlockFoldWriter
from lowering.native.nests.extremes import is_better
from lowering.native.nests.folds import Folded
from lowering.native.nests.points import NativeNestWriter
from lowering.native.nests.searches import find_in_block
from lowering.native.schedule import Chunks, NestLoop, is_folded_in_lanes, is_searched
from lowering.native.types import Parts, register_parts
from lowering.plan.nests.kernel import Store
from tracegraph.ir.scalar_values import Accumulated


def fold_in_chunks(
    folds: BlockFoldWriter,
    folded: Sequence[Folded],
    loops: Sequence[NestLoop],
    stores: Sequence[Store],
    chunks: Chunks,
    blocks: int,
) -> None:
    """Write the folds of one pass at a point, over `blocks` blocks, with stores at each step."""
    nest, writer = folds.nest, folds.writer
    values = _PointValues(nest)
    first = len(values.words)
    frame = writer.variable(f"[{first + sum(map(_parts, folded)) * chunks.count} x i64]")
    for place, (type_, value) in enumerate(values.words):
        writer.line(f"store {type_} {value}, ptr {_word(nest, frame, str(place))}")

    def chunk(inner: NativeNestWriter) -> None:
        values.bind(inner)
        part = BlockFoldWriter(inner, writer.piece("%chunk", chunks.size, str(blocks)))
        own = [Folded(each.number, each.accumulator) for each in folded]
        part.in_blocks(own, loops, stores)
        given = _ChunkResults(inner, "%frame", first, chunks.count)
        for each in own:
            given.store(part, each, "%chunk")

    nest.chunked(frame, chunks, chunk)
    given = _ChunkResults(nest, frame, first, chunks.count)
    for each in folded:
        if is_folded_in_lanes(each.accumulator):
            _sum(folds, each, given, chunks, blocks)
        else:
            _fold(folds, each, given, chunks, loops)


class _PointValues:
    """What a chunk needs of the point: the indices of axes, and the results of earlier passes."""

    def __init__(self, nest: NativeNestWriter) -> None:
        self._axes = list(nest.run.axes)
        self._results = [
            (expr, nest.run.value(expr)) for expr in nest.run.values if type(expr) is Accumulated
        ]
        self.words = [("i64", nest.run.axes[axis]) for axis in self._axes]
        for expr, value in self._results:
            self.words += zip(register_parts(expr.dtype), value, strict=True)

    def bind(self, inner: NativeNestWriter) -> None:
        """Load the values in the function of a chunk."""
        found = [
            inner.writer.assign(f"load {type_}, ptr {_word(inner, '%frame', str(place))}")
            for place, (type_, _) in enumerate(self.words)
        ]
        for axis, register in zip(self._axes, found, strict=False):
            inner.run.axes[axis] = register
        first = len(self._axes)
        for expr, value in self._results:
            inner.run.values[expr] = tuple(found[first : first + len(value)])
            first += len(value)


def _word(nest: NativeNestWriter, frame: str, place: str) -> str:
    return nest.writer.element("i64", frame, place)


def _parts(each: Folded) -> int:
    return len(each.identity) + each.accumulator.arg


class _ChunkResults:
    """The words that chunks write: values in the dtypes of folds, and positions."""

    def __init__(self, nest: NativeNestWriter, frame: str, first: int, count: int) -> None:
        self._nest, self._frame, self._first, self._count = nest, frame, first, count
        self._begins: dict[int, int] = {}

    def _place(self, each: Folded, part: int, chunk: str) -> str:
        if each.number not in self._begins:
            self._begins[each.number] = self._first
            self._first += _parts(each) * self._count
        begin = self._begins[each.number] + part * self._count
        place = self._nest.writer.assign(f"add nuw nsw i64 {chunk}, {begin}")
        return _word(self._nest, self._frame, place)

    def store(self, folds: BlockFoldWriter, each: Folded, chunk: str) -> None:
        """Store what a chunk gives."""
        writer, operations = self._nest.writer, self._nest.operations
        value = folds.results[each.number]
        if each.accumulator.arg:
            position = self._place(each, len(each.identity), chunk)
            writer.line(f"store i64 {value[0]}, ptr {position}")
            value = operations.load_parts(each.dtype, each.variable, private=True)
        for part, (type_, x) in enumerate(zip(register_parts(each.dtype), value, strict=True)):
            writer.line(f"store {type_} {x}, ptr {self._place(each, part, chunk)}")

    def value(self, each: Folded, chunk: str) -> Parts:
        """The value of a chunk."""
        return tuple(
            self._nest.writer.assign(f"load {type_}, ptr {self._place(each, part, chunk)}")
            for part, type_ in enumerate(register_parts(each.dtype))
        )

    def position(self, each: Folded, chunk: str) -> str:
        """The position of the extreme of a chunk, or of the block that has it."""
        place = self._place(each, len(each.identity), chunk)
        return self._nest.writer.assign(f"load i64, ptr {place}")


def _sum(
    folds: BlockFoldWriter, each: Folded, given: _ChunkResults, chunks: Chunks, blocks: int
) -> None:
    """Add the sums of whole chunks as those of blocks; a last one of fewer blocks comes behind."""
    lanes, whole = folds.lane_folds(each), blocks // chunks.size

    for lane in lanes:
        lane.begin_blocks()

    def push(chunk: str) -> None:
        for lane, value in zip(lanes, given.value(each, chunk), strict=True):
            lane.push(value)

    folds.writer.loop("0", str(whole), push)
    after: Parts = ("",) * len(lanes)
    if whole < chunks.count:
        after = given.value(each, str(whole))
    totals = [lane.total(value) for lane, value in zip(lanes, after, strict=True)]
    folds.set_result(each, tuple(totals))


def _fold(
    folds: BlockFoldWriter,
    each: Folded,
    given: _ChunkResults,
    chunks: Chunks,
    loops: Sequence[NestLoop],
) -> None:
    """Fold the results of chunks one after the other."""
    operations, writer = folds.operations, folds.writer
    folds.begin([each])
    operations.store_parts(each.dtype, given.value(each, "0"), each.variable, private=True)
    if each.accumulator.arg:
        writer.store("i64", given.position(each, "0"), each.position, True)

    def step(chunk: str) -> None:
        value = given.value(each, chunk)
        old = operations.load_parts(each.dtype, each.variable, private=True)
        if not each.accumulator.arg:
            new = operations.combine(each.accumulator.combiner, each.dtype, old, value)
            operations.store_parts(each.dtype, new, each.variable, private=True)
            return

        def keep() -> None:
            operations.store_parts(each.dtype, value, each.variable, private=True)
            writer.store("i64", given.position(each, chunk), each.position, True)

        writer.if_(is_better(writer, each.dtype, each.greatest, value, old), keep)

    writer.loop("1", str(chunks.count), step)
    if is_searched(each.accumulator):
        find_in_block(folds, each, loops, writer.load("i64", each.position, True))
    else:
        folds.end([each])
