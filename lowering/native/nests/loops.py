"""Loops over the points of a nest: plain, in tiles, and in blocks whose operands are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

from lowering.native.nests.expressions import NestExpressions, has_fast_form
from lowering.native.schedule import TILES, NestLoop
from lowering.native.writer import Writer
from lowering.plan.nests.analysis import nest_expressions
from lowering.plan.nests.kernel import Nest
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Expr, linear
from tracegraph.ir.scalar_values import Accumulated, Apply, Load

CHECKED = 1024
"""Points of a block whose operands are checked together."""

FEWEST_CHECKED = 16
"""Points of a loop from which it is checked in blocks."""

UNKNOWN = 1 << 62
"""The bit of values that are known only after a fold, in place of those of axes."""


@dataclass(frozen=True, slots=True)
class LoopPart:
    """The steps of a loop that a chunk has, from `low` to below `high`, which are registers.

    All chunks but the last have `size` of them.
    """

    loop: NestLoop
    size: int
    low: str
    high: str


class LoopWriter:
    """Writes the loops of one nest, in scopes of its expressions.

    `overwrites`: the nest may write where it reads. If there is a `part`, its loop is written for
    the steps of the part only. While `only_evaluates` holds, nothing is stored.
    """

    def __init__(self, nest: Nest, writer: Writer, run: NestExpressions, overwrites: bool) -> None:
        self.nest = nest
        self.writer = writer
        self.run = run
        self.overwrites = overwrites
        self.part: LoopPart | None = None
        self.only_evaluates = False
        self._has_fast_forms = any(
            isinstance(expr, Apply) and has_fast_form(expr) for expr in nest_expressions(nest)
        )
        self._axes_of: dict[Expr, int] = {}

    def loops(
        self, loops: Sequence[NestLoop], body: Callable[[], object], roots: Sequence[Expr] = ()
    ) -> None:
        """Write nested loops. What roots need and inner loops do not change comes before them."""
        tiled = [loop for loop in loops if loop.tile]
        if tiled:
            plain, (across, along) = [loop for loop in loops if not loop.tile], tiled
            self._nested(plain, lambda: self._tiles(across, along, body, roots), roots)
        else:
            self._nested(loops, body, roots)

    def _nested(
        self, loops: Sequence[NestLoop], body: Callable[[], object], roots: Sequence[Expr]
    ) -> None:
        if not loops:
            body()
            return
        loop, rest = loops[0], loops[1:]
        self.hoist(roots)
        for low, high in pairwise((0, *loop.cuts, loop.extent)):
            self.steps(
                loop,
                str(low),
                str(high),
                lambda: self._nested(rest, body, roots),
                (low, high - 1),
                innermost=not rest,
            )

    def _tiles(
        self, across: NestLoop, along: NestLoop, body: Callable[[], object], roots: Sequence[Expr]
    ) -> None:
        """Loops over square tiles and the points of each; what is left over has plain loops."""
        size = across.tile
        wide, long = (loop.extent // size * size for loop in (across, along))

        def tile(row: str, column: str) -> None:
            first, second = (
                self.writer.assign(f"mul nuw nsw i64 {number}, {size}") for number in (row, column)
            )
            with self.run.scope():
                self.hoist(roots)
                inner = partial(self._of_tile, along, second, body, innermost=True)
                self._of_tile(across, first, inner, innermost=False)

        def group(number: str) -> None:
            first, end = self.writer.piece(number, TILES, str(wide // size))

            def column_of_tiles(column: str) -> None:
                self.writer.loop(first, end, lambda row: tile(row, column))

            self.writer.loop("0", str(long // size), column_of_tiles)

        begin, end = self.within_part(across, "0", str(wide))
        self.writer.loop(*self._groups(begin, end, size * TILES), group)
        plain = [NestLoop(loop.axes, loop.extent, True) for loop in (across, along)]
        for ends in (((0, wide), (long, along.extent)), ((wide, across.extent), (0, along.extent))):
            if all(low < high for low, high in ends):
                self._between(list(zip(plain, ends, strict=True)), body, roots)

    def _groups(self, begin: str, end: str, size: int) -> tuple[str, str]:
        """The first group of steps, and the one behind the last; chunks begin with a group."""
        rounded = self.writer.assign(f"add nsw i64 {end}, {size - 1}")
        return (
            self.writer.assign(f"sdiv i64 {begin}, {size}"),
            self.writer.assign(f"sdiv i64 {rounded}, {size}"),
        )

    def _of_tile(
        self, loop: NestLoop, start: str, body: Callable[[], object], innermost: bool
    ) -> None:
        def step(number: str) -> None:
            index = self.writer.assign(f"add nuw nsw i64 {start}, {number}")
            with self.run.scope():
                self.bind(loop, index, 0, loop.extent - 1)
                body()

        self.writer.loop("0", str(loop.tile), step, independent=innermost)

    def _between(
        self,
        loops: Sequence[tuple[NestLoop, tuple[int, int]]],
        body: Callable[[], object],
        roots: Sequence[Expr],
    ) -> None:
        """Nested loops, each between two positions."""
        if not loops:
            body()
            return
        (loop, (low, high)), rest = loops[0], loops[1:]
        self.hoist(roots)
        self.steps(
            loop,
            str(low),
            str(high),
            lambda: self._between(rest, body, roots),
            (low, high - 1),
            innermost=not rest,
        )

    def steps(
        self,
        loop: NestLoop,
        low: str,
        high: str,
        body: Callable[[], object],
        limits: tuple[int, int],
        *,
        innermost: bool,
    ) -> None:
        """Write one loop from low to below high; its index is within the limits."""
        first, last = limits
        independent = innermost and loop.independent
        begin, end = self.within_part(loop, low, high)

        def step(index: str) -> None:
            with self.run.scope():
                self.bind(loop, index, first, last)
                body()

        if first == last:
            is_there = "true"
            if (begin, end) != (low, high):
                is_there = self.writer.assign(f"icmp slt i64 {begin}, {end}")
            self.writer.if_(is_there, lambda: step(low))
        elif independent and self._has_fast_forms and last - first >= FEWEST_CHECKED:
            self._checked_blocks(begin, end, step)
        else:
            self.writer.loop(begin, end, step, independent=independent)

    def bind(self, loop: NestLoop, index: str, first: int, last: int) -> None:
        """Give the index of a loop, and its range, to what is computed in this scope."""
        for axis in loop.axes[:-1]:
            self.run.bind(axis, "0", 0, 0)
        self.run.bind(loop.axis, index, first, last)

    def _checked_blocks(self, low: str, high: str, step: Callable[[str], object]) -> None:
        """A loop in blocks. Each is computed by fast forms of ops, and once more by the full forms
        if an operand was out of the range of a fast one.

        If the nest overwrites what it reads, the operands of a block are tested first instead.
        """
        writer, run = self.writer, self.run
        holds = writer.variable("i1")
        span = writer.assign(f"sub nsw i64 {high}, {low}")
        rounded = writer.assign(f"add nsw i64 {span}, {CHECKED - 1}")
        blocks = writer.assign(f"sdiv i64 {rounded}, {CHECKED}")

        def block(number: str) -> None:
            distance = writer.assign(f"mul nuw nsw i64 {number}, {CHECKED}")
            start = writer.assign(f"add nsw i64 {low}, {distance}")
            end = writer.assign(f"add nsw i64 {start}, {CHECKED}")
            end = writer.call("i64", "llvm.smin.i64", f"i64 {end}", f"i64 {high}")
            writer.line(f"store i1 true, ptr {holds}")

            def fast(index: str) -> None:
                with run.in_fast_forms(holds):
                    step(index)

            def test(index: str) -> None:
                with run.in_fast_forms(holds), self._without_stores():
                    step(index)

            def slow() -> None:
                writer.loop(start, end, step, independent=True)

            if self.overwrites:
                writer.loop(start, end, test, independent=True)
                good = writer.assign(f"load i1, ptr {holds}")
                unchecked = lambda index: step_in(run, step, index)  # noqa: E731
                writer.if_(good, lambda: writer.loop(start, end, unchecked, independent=True), slow)
                return
            writer.loop(start, end, fast, independent=True)
            good = writer.assign(f"load i1, ptr {holds}")
            writer.if_(writer.assign(f"xor i1 {good}, true"), slow)

        writer.loop("0", blocks, block)

    @contextmanager
    def _without_stores(self) -> Iterator[None]:
        """Within, nothing is stored."""
        self.only_evaluates = True
        yield
        self.only_evaluates = False

    def unrolled(self, loops: Sequence[NestLoop], body: Callable[[], object]) -> None:
        """Write the body once for every step of nested loops."""
        if not loops:
            body()
            return
        for step in range(loops[0].extent):
            with self.run.scope():
                self.run.bind(loops[0].axis, str(step), step, step)
                self.unrolled(loops[1:], body)

    def hoist(self, roots: Sequence[Expr]) -> None:
        """Compute loads and ops below the roots that no loop further inside changes."""
        if not roots:
            return
        inner = ~sum(1 << axis for axis in self.run.axes)
        stack, seen, found = list(roots), set[Expr](), list[Expr]()
        known = self.run.values
        while stack:
            expr = stack.pop()
            if expr in seen or expr in known:
                continue
            seen.add(expr)
            if self.axes_of(expr) & inner:
                stack += self.run.operands(expr)
            elif isinstance(expr, Load | Apply):
                found.append(expr)
            else:  # LLVM moves the arithmetic of indices, but no loads that a store may change
                stack += self.run.operands(expr)
        self.run.compute(found)

    def axes_of(self, root: Expr) -> int:
        """The axes that an expression depends on, as bits."""
        known, stack = self._axes_of, [root]
        while stack:
            expr = stack[-1]
            if expr in known:
                stack.pop()
                continue
            if type(expr) is Axis:
                known[expr] = 1 << expr.number
            elif type(expr) is Accumulated:
                known[expr] = UNKNOWN
            elif all(child in known for child in expr.children):
                bits = 0
                for child in expr.children:
                    bits |= known[child]
                known[expr] = bits
            else:
                stack += [child for child in expr.children if child not in known]
                continue
            stack.pop()
        return known[root]

    def within_part(self, loop: NestLoop, low: str, high: str) -> tuple[str, str]:
        """The steps of a loop between two that the chunk has; there may be none."""
        if self.part is None or self.part.loop.axes != loop.axes:
            return low, high
        return (
            self.writer.call("i64", "llvm.smax.i64", f"i64 {low}", f"i64 {self.part.low}"),
            self.writer.call("i64", "llvm.smin.i64", f"i64 {high}", f"i64 {self.part.high}"),
        )


def step_in(run: NestExpressions, step: Callable[[str], object], index: str) -> None:
    """A step with fast forms whose operands were tested before."""
    with run.in_fast_forms(""):
        step(index)


def position_of(loops: Sequence[NestLoop]) -> Expr:
    """The row-major position of a step."""
    return linear(
        [(Axis.make(loop.axis, loop.extent), stride) for loop, stride in step_strides(loops)]
    )


def step_strides(loops: Sequence[NestLoop]) -> list[tuple[NestLoop, int]]:
    """Loops, each with the steps of those inside of it."""
    found: list[tuple[NestLoop, int]] = []
    stride = 1
    for loop in reversed(loops):
        found.append((loop, stride))
        stride *= loop.extent
    return found[::-1]
