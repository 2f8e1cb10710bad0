"""Recomputation: what is stored for other kernels is computed again where they load it.

A value of moderate cost takes less time than its bytes, where memory is slow:

    reduce [n, n] over [3]:  r[i, j] = sum (x[j, k] - x[i, k])²
    reduce [n] over [n]:     f[i] = sum m[j] / r[i, j]

writes and reads n² numbers. With `r[i, j]` written out in the second nest there are 3 n of them.

All nests that load a value compute it, and then nothing stores it; or all load it. Both forms are
compared by `nest_times`. What the value is computed from must still be in memory unchanged where it
is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from lowering.draft.context import Context
from lowering.draft.dependences import BARRIER, accesses_of
from lowering.draft.draft_nodes import (
    Block,
    DraftKernel,
    DraftLoop,
    FinishedNode,
    blocks,
    control_reads,
    node_reads,
    node_writes,
    without_empty,
)
from lowering.fusion.nest_times import nest_time
from lowering.fusion.recomputed_values import StoredValue, computing, stored_value, without_store
from lowering.plan.nests.analysis import nest_reads, nest_signals, nest_stores, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest

MAX_READERS = 6
"""Nests that compute a value again, at most: bounds the time to plan."""

LEAST_GAIN = 0.02
"""Time, in µs, that computing a value again has to save: estimates are no finer."""


class _ReadingKernel(NamedTuple):
    """A kernel that loads a value, its block, and how often it is expected to run."""

    kernel: DraftKernel
    block: Block
    runs: int


_Readings = dict[Buffer, list[_ReadingKernel] | None]


class _Reader(NamedTuple):
    """A nest that loads a value, and one that computes it instead."""

    of: _ReadingKernel
    old: Nest
    new: Nest


def recompute(block: Block, context: Context) -> Collection[Block]:
    """Compute values again in the kernels of a block, in place, where that takes less time than to
    load them; this block and those inside whose kernels have changed, whose nests may be fused now.
    """
    search = _Search(block, context)
    for node in range(len(block.nodes)):
        kernel = block.nodes[node]
        if not isinstance(kernel, DraftKernel):
            continue
        for buffer in dict.fromkeys([s.buffer for n in kernel.nests for s in nest_stores(n)]):
            if search.may_vanish(buffer):
                search.replace(node, buffer)
    if search.changed:
        block.nodes = without_empty(block.nodes)
    return search.changed


class _Search:
    """The nodes of a block by the buffers that they access."""

    def __init__(self, block: Block, context: Context) -> None:
        self.block = block
        self.context = context
        self.target = context.target
        self.kept = {*block.sinks, *block.carries, *block.resident}
        self.readers: dict[Buffer, dict[int, None]] = {}  # positions in order
        self.writers: dict[Buffer, list[int]] = {}
        self.barriers: list[int] = []
        self.inside: dict[int, _Readings] = {}  # of nodes that were looked into
        self.changed: dict[Block, None] = {}
        for position, node in enumerate(block.nodes):
            for buffer in node_reads(node):
                self.readers.setdefault(buffer, {})[position] = None
            for buffer in node_writes(node):
                self.writers.setdefault(buffer, []).append(position)
            if not isinstance(node, DraftKernel) and BARRIER in accesses_of(node).writes:
                self.barriers.append(position)

    def may_vanish(self, buffer: Buffer) -> bool:
        """Whether a buffer need not be stored if its readers compute what is in it."""
        return (
            buffer in self.block.owned
            and buffer not in self.kept
            and len(self.writers[buffer]) == 1
            and 0 < len(self.readers.get(buffer, ())) <= MAX_READERS
        )

    def replace(self, node: int, buffer: Buffer) -> None:
        """Let all readers of what a kernel stores in a buffer compute it, if that is faster."""
        writer = self._kernel(node)
        places = [k for k, nest in enumerate(writer.nests) if buffer in nest_writes(nest)]
        if len(places) != 1 or min(self.readers[buffer]) <= node:
            return
        nest = writer.nests[places[0]]
        is_all = len(writer.nests) == len(nest_writes(nest)) == 1 and not nest_signals(nest)
        if not is_all and buffer.type.nbytes <= self.target.costs.cached:
            return  # neither a kernel nor much traffic is saved
        value = stored_value(nest, buffer, self.context)
        if value is None:
            return
        rest = without_store(value.stored_by(nest), buffer)
        made = self._readers_of(value, node, buffer)
        if made is None or not self._is_faster(writer, nest, rest, made):
            self.context.give_back([store.buffer for store in value.stores])
            return
        self.changed[self.block] = None
        for (kernel, block, _), old, new in made:
            kernel.nests[kernel.nests.index(old)] = new
            self.changed[block] = None
        writer.nests[places[0] : places[0] + 1] = [] if rest is None else [rest]
        for store in value.stores:
            self.block.owned.add(store.buffer)
            self.writers[store.buffer] = [node]
        for position in self.readers.pop(buffer):
            self.inside.pop(position, None)
            for load in value.reads:
                self.readers.setdefault(load, {})[position] = None

    def _readers_of(self, value: StoredValue, node: int, buffer: Buffer) -> list[_Reader] | None:
        """All nests that load a value, those in bodies as well; None if one cannot compute it."""
        made: list[_Reader] = []
        for position in self.readers[buffer]:
            if not self._are_same(value, node, position):
                return None
            if position not in self.inside:
                self.inside[position] = _readings(self.block, position)
            kernels = self.inside[position].get(buffer)
            if kernels is None:
                return None
            for reading in kernels:
                for each in reading.kernel.nests:
                    if buffer in nest_reads(each):
                        new = computing(each, buffer, value, self.target.fusion)
                        if new is None:
                            return None
                        made.append(_Reader(reading, each, new))
        return made if len(made) <= MAX_READERS else None

    def _kernel(self, position: int) -> DraftKernel:
        node = self.block.nodes[position]
        assert isinstance(node, DraftKernel)
        return node

    def _are_same(self, value: StoredValue, first: int, last: int) -> bool:
        """Whether a value is computed from the same elements at two nodes, of which the last one
        writes none of them. The first one may write what its nest knows of each row.
        """
        if any(first < barrier < last for barrier in self.barriers):
            return False
        for buffer in value.reads:
            writers = self.writers.get(buffer, ())
            if buffer in value.of_rows:
                if any(writer != first for writer in writers):
                    return False
            elif any(first <= writer <= last for writer in writers):
                return False
        return True

    def _is_faster(
        self,
        writer: DraftKernel,
        nest: Nest,
        rest: Nest | None,
        made: Sequence[_Reader],
    ) -> bool:
        costs, tiles = self.target.costs, self.target.contractions.tiles
        before, after = nest_time(nest, costs, tiles), 0.0
        for reading, old, new in made:
            before += reading.runs * nest_time(old, costs, tiles)
            after += reading.runs * nest_time(new, costs, tiles)
        if rest is not None:
            after += nest_time(rest, costs, tiles)
        elif len(writer.nests) == 1:
            before += costs.kernel
        return after < before - LEAST_GAIN


def _readings(block: Block, position: int, runs: int = 1) -> _Readings:
    """The kernels that read each buffer in a node of a block; None for a buffer that something else
    reads, or a loop in one kernel, whose phases have costs of their own.
    """
    node = block.nodes[position]
    if isinstance(node, DraftKernel):
        reading = _ReadingKernel(node, block, runs)
        return {buffer: [reading] for buffer in node_reads(node)}
    if isinstance(node, FinishedNode) or (isinstance(node, DraftLoop) and node.entry is not None):
        return dict.fromkeys(node_reads(node))
    if isinstance(node, DraftLoop):
        runs *= node.construct.expected_steps
    found: _Readings = dict.fromkeys(control_reads(node))
    for inner in blocks(node):
        for place in range(len(inner.nodes)):
            for buffer, kernels in _readings(inner, place, runs).items():
                known = found.setdefault(buffer, [])
                if kernels is None or known is None:
                    found[buffer] = None
                else:
                    known += kernels
    return found
