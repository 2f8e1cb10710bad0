"""Loops over the points of a nest, and what is stored at each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from lowering.native.expressions import NestExpressions
from lowering.native.operations import Operations
from lowering.native.schedule import NestLoop
from lowering.native.signals import Signals
from lowering.native.types import Parts
from lowering.native.writer import Writer
from lowering.plan.nests.kernel import Signal, Store
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Accumulated, Apply, Load

_UNKNOWN = 1 << 62
"""The bit of what is known behind a fold only."""


class NativeNestWriter:
    """What the writers of all kinds of nests need: expressions, loops and stores of one nest."""

    def __init__(
        self, writer: Writer, operations: Operations, run: NestExpressions, signals: Signals
    ) -> None:
        self.writer = writer
        self.operations = operations
        self.run = run
        self.signals = signals
        self._axes_of: dict[Expr, int] = {}

    def loops(
        self, loops: Sequence[NestLoop], body: Callable[[], object], roots: Sequence[Expr] = ()
    ) -> None:
        """Write nested loops. What roots need and inner loops do not change comes before them."""
        tiled = [loop for loop in loops if loop.tile]
        if tiled:
            plain = [loop for loop in loops if not loop.tile]
            self._nested(plain, lambda: self._tiles(tiled, {}, body, roots), roots)
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
        self,
        loops: Sequence[NestLoop],
        starts: dict[NestLoop, str],
        body: Callable[[], object],
        roots: Sequence[Expr],
    ) -> None:
        """Loops over tiles, then over the points of a tile."""
        if len(starts) < len(loops):
            loop = loops[len(starts)]
            blocks = -(-loop.extent // loop.tile)

            def block(number: str) -> None:
                start = self.writer.assign(f"mul nuw nsw i64 {number}, {loop.tile}")
                with self.run.scope():
                    self._tiles(loops, {**starts, loop: start}, body, roots)

            self.writer.loop("0", str(blocks), block)
            return
        self._tile(list(starts.items()), body, roots)

    def _tile(
        self,
        starts: Sequence[tuple[NestLoop, str]],
        body: Callable[[], object],
        roots: Sequence[Expr],
    ) -> None:
        if not starts:
            body()
            return
        (loop, start), rest = starts[0], starts[1:]
        end = self.writer.assign(f"add nuw nsw i64 {start}, {loop.tile}")
        end = self.writer.call("i64", "llvm.smin.i64", f"i64 {end}", f"i64 {loop.extent}")
        self.hoist(roots)
        whole = (0, loop.extent - 1)
        self.steps(
            loop, start, end, lambda: self._tile(rest, body, roots), whole, innermost=not rest
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

        def step(index: str) -> None:
            with self.run.scope():
                for axis in loop.axes[:-1]:
                    self.run.bind(axis, "0", 0, 0)
                self.run.bind(loop.axis, index, first, last)
                body()

        if first == last:
            step(low)
        else:
            self.writer.loop(low, high, step, independent=innermost and loop.independent)

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
                known[expr] = _UNKNOWN
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

    # -- stores ---------------------------------------------------------------------------------

    def store(
        self,
        stores: Sequence[Store],
        signals: Sequence[Signal] = (),
        combiner: Combiner | None = None,
        running: Parts | None = None,
    ) -> None:
        """Evaluate everything at a point, then store and signal; `running` is stored instead of the
        values, if given.
        """
        run = self.run
        live = [s for s in stores if run.ranges.truth(s.guard) is not False]
        values = [run.value(s.value) if running is None else running for s in live]
        guards = [self._guard(store) for store in live]
        positions = [run.position(store.buffer, store.indices) for store in live]
        for signal in signals:
            run.value(signal.value)
        for store, value, guard, position in zip(live, values, guards, positions, strict=True):
            put = partial(self._put, store, value, position, combiner)
            self.writer.if_(guard, put)
        self.signals.write(run, signals)

    def _guard(self, store: Store) -> str:
        if store.guard is None or self.run.ranges.truth(store.guard):
            return "true"
        return self.run.value(store.guard)[0]

    def _put(self, store: Store, value: Parts, position: str, combiner: Combiner | None) -> None:
        dtype = store.buffer.type.dtype
        address = self.run.address(store.buffer, position)
        if combiner is not None:
            old = self.operations.load_parts(dtype, address)
            value = self.operations.folded(combiner, dtype, old, value)
        self.operations.store_parts(dtype, value, address)


def stored_roots(stores: Sequence[Store], signals: Sequence[Signal] = ()) -> list[Expr]:
    """What stores and signals evaluate at a point, but for positions."""
    found = [store.value for store in stores]
    found += [store.guard for store in stores if store.guard is not None]
    found += [index for store in stores for index in store.indices]
    return found + [signal.value for signal in signals]
