"""What is stored at the points of a nest, and chunks of its loops as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lowering.native.nests.expressions import NestExpressions
from lowering.native.nests.loops import LoopPart, LoopWriter
from lowering.native.nests.operations import Operations
from lowering.native.parallel import ChunkFunctions
from lowering.native.schedule import Chunks, NestLoop
from lowering.native.signals import Signals
from lowering.native.types import Parts
from lowering.native.writer import Made, Writer
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, Signal, Store
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import Expr


class NativeNestWriter(LoopWriter):
    """What the writers of all kinds of nests need: expressions, loops and stores of one nest.

    `overwrites`: it may write where it reads. `functions` writes chunks as functions; `address`
    writes the address of a buffer, which each of these functions needs anew.
    """

    def __init__(
        self,
        nest: Nest,
        writer: Writer,
        operations: Operations,
        run: NestExpressions,
        signals: Signals,
        overwrites: bool,
        functions: ChunkFunctions,
        address: Callable[[Buffer], str],
    ) -> None:
        super().__init__(nest, writer, run, overwrites)
        self.operations = operations
        self.signals = signals
        self._functions, self._address = functions, address

    # -- chunks ---------------------------------------------------------------------------------

    def chunked(
        self,
        frame: str,
        chunks: Chunks,
        body: Callable[[NativeNestWriter], object],
    ) -> None:
        """Write a function that runs a chunk, and the call of the pool for all chunks.

        `body` writes the function, with a writer that knows no values yet.
        """

        def chunk() -> None:
            operations = Operations(self.writer)
            run = NestExpressions(self.writer, operations, Made(self._address))
            run.ranges = self.run.ranges
            parts = (self.nest, self.writer, operations, run, self.signals, self.overwrites)
            body(NativeNestWriter(*parts, self._functions, self._address))
            self.operations.functions |= operations.functions

        self._functions.write(frame, chunks, chunk)

    def chunked_points(
        self, points: Sequence[NestLoop], chunks: Chunks, body: Callable[[NativeNestWriter], object]
    ) -> None:
        """Write chunks of steps of a loop over points."""
        assert chunks.loop is not None
        loop = points[chunks.loop]

        def part(inner: NativeNestWriter) -> None:
            low, high = self.writer.piece("%chunk", chunks.size, str(loop.extent))
            inner.part = LoopPart(loop, chunks.size, low, high)
            body(inner)

        self.chunked("null", chunks, part)

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
        if self.only_evaluates:
            return
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
