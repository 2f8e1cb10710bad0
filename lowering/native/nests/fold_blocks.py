"""Blocks of the steps of a fold: which loop is divided into them, and loops over all or some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from lowering.native.nests.lanes import blocks_of
from lowering.native.nests.points import NativeNestWriter
from lowering.native.schedule import NestLoop
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Expr


@dataclass(frozen=True, slots=True)
class FoldBlock:
    """The steps of the divided loop from `low` to below `high`, both registers or literals.

    They are within the `limits`, both included, and have `count` elements with the loops inside.
    """

    low: str
    high: str
    limits: tuple[int, int]
    count: int


class FoldBlocks:
    """The blocks of nested loops: `loop` is divided, `outer` ones are around it, those `within` are
    in one block as a whole.

    `roots` are evaluated at each step. With `given`, these are the blocks from the first register
    to below the second one only, in row-major order.
    """

    def __init__(
        self,
        nest: NativeNestWriter,
        loops: Sequence[NestLoop],
        roots: Sequence[Expr],
        given: tuple[str, str] | None = None,
    ) -> None:
        split, self._steps, self.inner = blocks_of([loop.extent for loop in loops])
        self.outer, self.loop, self.within = loops[:split], loops[split], loops[split + 1 :]
        self._nest, self._roots, self._given = nest, roots, given
        self._whole, self._rest = divmod(self.loop.extent, self._steps)

    @property
    def are_one(self) -> bool:
        """Whether there is one block only."""
        number = prod([loop.extent for loop in self.outer]) * (self._whole + bool(self._rest))
        return number == 1 and self._given is None

    def end_of(self, low: str) -> str:
        """Where the block ends that begins at a step."""
        writer = self._nest.writer
        end = writer.assign(f"add nuw nsw i64 {low}, {self._steps}")
        return writer.call("i64", "llvm.smin.i64", f"i64 {end}", f"i64 {self.loop.extent}")

    def write(self, body: Callable[[FoldBlock], object]) -> None:
        """Write `body` for all blocks, or for those that are given."""
        if self._given is not None:
            self._some(*self._given, body)
            return
        outer = [ordered(loop) for loop in self.outer]
        self._nest.loops(outer, lambda: self._of_one_loop(body), self._roots)

    def steps(
        self, block: FoldBlock, body: Callable[[], object], *, independent: bool = False
    ) -> None:
        """Write `body` for each step of a block and of the loops inside of it."""
        nest = self._nest
        inner = self.within if independent else [ordered(loop) for loop in self.within]
        nest.steps(
            NestLoop(self.loop.axes, self.loop.extent, independent),
            block.low,
            block.high,
            lambda: nest.loops(inner, body, self._roots),
            block.limits,
            innermost=not self.within,
        )

    def _of_one_loop(self, body: Callable[[FoldBlock], object]) -> None:
        """The blocks of the divided loop: the last may have fewer steps."""
        nest, whole, steps = self._nest, self._whole, self._steps
        nest.hoist(self._roots)
        if whole == 1:
            with nest.run.scope():
                body(FoldBlock("0", str(steps), (0, steps - 1), steps * self.inner))
        elif whole:
            nest.writer.loop("0", str(whole), lambda number: self._full(number, body))
        if self._rest:
            self._last(body)

    def _some(self, begin: str, end: str, body: Callable[[FoldBlock], object]) -> None:
        nest, writer, whole = self._nest, self._nest.writer, self._whole
        if not self.outer:
            nest.hoist(self._roots)
            full_end = writer.call("i64", "llvm.smin.i64", f"i64 {end}", f"i64 {whole}")
            writer.loop(begin, full_end, lambda number: self._full(number, body))
            if self._rest:
                is_there = writer.assign(f"icmp sgt i64 {end}, {whole}")
                writer.if_(is_there, lambda: self._last(body))
            return
        per_row = whole + bool(self._rest)

        def one(number: str) -> None:
            with nest.run.scope():
                place = writer.assign(f"urem i64 {number}, {per_row}")
                row = writer.assign(f"udiv i64 {number}, {per_row}")
                for loop in reversed(self.outer):
                    index = writer.assign(f"urem i64 {row}, {loop.extent}")
                    row = writer.assign(f"udiv i64 {row}, {loop.extent}")
                    nest.bind(loop, index, 0, loop.extent - 1)
                nest.hoist(self._roots)
                if self._rest:
                    is_last = writer.assign(f"icmp eq i64 {place}, {whole}")
                    full = lambda: self._full(place, body)  # noqa: E731
                    writer.if_(is_last, lambda: self._last(body), full)
                else:
                    self._full(place, body)

        writer.loop(begin, end, one)

    def _full(self, number: str, body: Callable[[FoldBlock], object]) -> None:
        steps, write = self._steps, self._nest.writer.assign
        low = write(f"mul nuw nsw i64 {number}, {steps}")
        high = write(f"add nuw nsw i64 {low}, {steps}")
        with self._nest.run.scope():
            body(FoldBlock(low, high, (0, self._whole * steps - 1), steps * self.inner))

    def _last(self, body: Callable[[FoldBlock], object]) -> None:
        low, high = self._whole * self._steps, self.loop.extent
        with self._nest.run.scope():
            body(FoldBlock(str(low), str(high), (low, high - 1), self._rest * self.inner))


def ordered(loop: NestLoop) -> NestLoop:
    """The loop with its steps in order."""
    return NestLoop(loop.axes, loop.extent, False, loop.cuts)
