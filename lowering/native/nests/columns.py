"""Many points at once: their accumulators are arrays, and the loop over points is innermost.

So a fold or scan along a distant axis reads memory in order, and its loop can be vectorised.
"""

from __future__ import annotations

from collections.abc import Callable

from lowering.native.nests.points import NativeNestWriter
from lowering.native.schedule import COLUMNS, NestLoop


class Columns:
    """Blocks of up to 512 points along an axis."""

    def __init__(self, nest: NativeNestWriter, point: NestLoop) -> None:
        self._nest, self._point = nest, point
        part = nest.part
        self._part = part if part is not None and part.loop.axes == point.axes else None
        self._size = COLUMNS if self._part is None else min(self._part.size, COLUMNS)

    def array(self, type_: str, number: int) -> str:
        """The address of an element for each point of a block."""
        return self._nest.writer.shared(f"[{COLUMNS} x {type_}]", number)

    def blocks(self, body: Callable[[str, int], object]) -> None:
        """Write `body`, of the first point and the number of points, for all blocks."""
        writer, run = self._nest.writer, self._nest.run
        size = self._size
        whole, rest = divmod(self._point.extent, size)

        def one(number: str) -> None:
            with run.scope():
                body(writer.assign(f"mul nuw nsw i64 {number}, {size}"), size)

        def last() -> None:
            with run.scope():
                body(str(whole * size), rest)

        part = self._part
        if part is None:
            if whole:
                writer.loop("0", str(whole), one)
            if rest:
                last()
            return
        # chunks begin with a block
        begin = writer.assign(f"sdiv i64 {part.low}, {size}")
        writer.loop(begin, writer.assign(f"sdiv i64 {part.high}, {size}"), one)
        if rest:
            is_there = writer.assign(f"icmp sgt i64 {part.high}, {whole * size}")
            writer.if_(is_there, last)

    def at_points(self, first: str, count: int, body: Callable[[str], object]) -> None:
        """Write `body`, of the number in the block, for each point of a block."""
        writer, run, point = self._nest.writer, self._nest.run, self._point

        def one(number: str) -> None:
            index = writer.assign(f"add nuw nsw i64 {first}, {number}")
            with run.scope():
                run.bind(point.axis, index, 0, point.extent - 1)
                body(number)

        writer.loop("0", str(count), one, independent=True)
