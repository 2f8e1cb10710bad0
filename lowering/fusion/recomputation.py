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
from dataclasses import dataclass
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
from lowering.fusion.dead_stores import without_dead
from lowering.fusion.nest_times import nest_time
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.fusion.row_profitability import adds_uncoalesced
from lowering.fusion.row_values import row_values, stored_values, storing
from lowering.fusion.short_folds import written_out
from lowering.plan.nests.analysis import (
    as_rows,
    loads,
    nest_accumulated,
    nest_loads,
    nest_reads,
    nest_signals,
    nest_size,
    nest_stores,
    nest_writes,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, Store, space_index
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.target.target import Target
from tracegraph.ir.scalar import Axis, Const, Expr, both, const, select
from tracegraph.ir.scalar_values import Accumulated, AsIndex, Load
from tracegraph.ir.subexpressions import subexpressions, substitution
from tracegraph.ir.types import ArrayType

MAX_READERS = 6
"""Nests that compute a value again, at most: bounds the time to plan."""

LEAST_GAIN = 0.02
"""Time, in µs, that computing a value again has to save: estimates are no finer."""

MAX_VALUE = 200
"""Expressions of a value that is computed again, at most: bounds the code of each reader."""


class _ReadingKernel(NamedTuple):
    """A kernel that loads a value, its block, and how often it is expected to run."""

    kernel: DraftKernel
    block: Block
    runs: int


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
        self.readers: dict[Buffer, list[int]] = {}
        self.writers: dict[Buffer, list[int]] = {}
        self.barriers: list[int] = []
        self.changed: dict[Block, None] = {}
        for position, node in enumerate(block.nodes):
            for buffer in node_reads(node):
                self.readers.setdefault(buffer, []).append(position)
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
        if len(places) != 1 or buffer in node_reads(writer):
            return
        nest = writer.nests[places[0]]
        is_all = len(writer.nests) == len(nest_writes(nest)) == 1 and not nest_signals(nest)
        if not is_all and buffer.type.nbytes <= self.target.costs.cached:
            return  # neither a kernel nor much traffic is saved
        value = _value(nest, buffer, self.context)
        if value is None:
            return
        rest = _without(value.stored_by(nest), buffer)
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
            for load in value.reads:
                readers = self.readers.setdefault(load, [])
                if position not in readers:
                    readers.append(position)

    def _readers_of(self, value: _Value, node: int, buffer: Buffer) -> list[_Reader] | None:
        """All nests that load a value, those in bodies as well; None if one cannot compute it."""
        made: list[_Reader] = []
        for position in self.readers[buffer]:
            if not self._are_same(value, node, position):
                return None
            kernels = _kernels_reading(buffer, self.block, position)
            if kernels is None:
                return None
            for reading in kernels:
                for each in reading.kernel.nests:
                    if buffer in nest_reads(each):
                        new = _computing(each, buffer, value, self.target)
                        if new is None:
                            return None
                        made.append(_Reader(reading, each, new))
        return made if len(made) <= MAX_READERS else None

    def _kernel(self, position: int) -> DraftKernel:
        node = self.block.nodes[position]
        assert isinstance(node, DraftKernel)
        return node

    def _are_same(self, value: _Value, first: int, last: int) -> bool:
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
        costs = self.target.costs
        before, after = nest_time(nest, costs), 0.0
        for reading, old, new in made:
            before += reading.runs * nest_time(old, costs)
            after += reading.runs * nest_time(new, costs)
        if rest is not None:
            after += nest_time(rest, costs)
        elif len(writer.nests) == 1:
            before += costs.kernel
        return after < before - LEAST_GAIN


def _kernels_reading(
    buffer: Buffer, block: Block, position: int, runs: int = 1
) -> list[_ReadingKernel] | None:
    """The kernels that read a buffer in a node of a block; None if something else reads it, or a
    loop in one kernel, whose phases have costs of their own.
    """
    node = block.nodes[position]
    if buffer not in node_reads(node):
        return []
    if isinstance(node, DraftKernel):
        return [_ReadingKernel(node, block, runs)]
    if isinstance(node, FinishedNode) or buffer in control_reads(node):
        return None
    if isinstance(node, DraftLoop):
        if node.entry is not None:
            return None
        runs *= node.construct.expected_steps
    found: list[_ReadingKernel] = []
    for inner in blocks(node):
        for place in range(len(inner.nodes)):
            kernels = _kernels_reading(buffer, inner, place, runs)
            if kernels is None:
                return None
            found += kernels
    return found


@dataclass(frozen=True, slots=True)
class _Value:
    """What a store writes, as an expression of the axes that index it, in the order of the axes of
    the buffer.
    """

    axes: tuple[Axis | None, ...]  # None along an axis of one element
    expression: Expr
    reads: frozenset[Buffer]
    of_rows: frozenset[Buffer] = frozenset()  # what the nest itself stores of its folds
    stores: tuple[Store, ...] = ()  # of these, what it does not store yet

    def stored_by(self, nest: Nest) -> Nest:
        """The nest with the further stores."""
        if not self.stores:
            return nest
        assert isinstance(nest, (ReduceNest, RowNest))
        return storing(nest, self.stores)

    def instead_of(self, load: Load) -> Expr:
        """The value that a load of the buffer gives, which is 0 where its guard does not hold."""
        pairs = zip(self.axes, load.indices, strict=True)
        moved = substitution({axis: index for axis, index in pairs if axis is not None})
        value = moved(self.expression)
        if load.guard is None:
            return value
        guarded: dict[Expr, Expr] = {
            each: Load.make(each.buffer, each.indices, both(load.guard, each.guard))
            for each in loads((value,))
        }
        return select(load.guard, substitution(guarded)(value), const(0, load.dtype))


def _value(nest: Nest, buffer: Buffer, context: Context) -> _Value | None:
    """The value that a nest stores at every place of a buffer, as an expression."""
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)) or nest.predicates:
        return None
    stores = [store for store in nest_stores(nest) if store.buffer is buffer]
    if len(stores) != 1:
        return None
    (store,) = stores
    axes = _axes(store)
    if axes is None:
        return None
    value: Expr | None = store.value
    if not isinstance(nest, MapNest):
        value = written_out(nest, store)
        if value is None:
            return _with_row_values(nest, store.value, axes, context)
    return None if value is None else _checked(_Value(axes, value, _reads(value)))


def _with_row_values(
    nest: ReduceNest | RowNest, value: Expr, axes: tuple[Axis | None, ...], context: Context
) -> _Value | None:
    """The value with loads of what it takes from the folds of its row; None if it is of the row."""
    of_rows = row_values(nest, value)
    if not of_rows or of_rows == (value,):
        return None
    known = stored_values(nest)
    loads_of: dict[Expr, Expr] = {}
    stores: list[Store] = []
    point = space_index(nest.space)
    for part in of_rows:
        if part in known:
            loads_of[part] = known[part]
        else:
            buffer = context.buffer("scratch", ArrayType(part.dtype, nest.space))
            stores.append(Store(buffer, point, part))
            loads_of[part] = Load.make(buffer, point)
    made = substitution(loads_of)(value)
    own = _reads(*loads_of.values())
    found = _checked(_Value(axes, made, _reads(made), own, tuple(stores)))
    if found is None:
        context.give_back([store.buffer for store in stores])
    return found


def _reads(*values: Expr) -> frozenset[Buffer]:
    return frozenset([load.buffer for load in loads(values)])


def _checked(value: _Value) -> _Value | None:
    """The value, unless other nests cannot compute it."""
    below = subexpressions((value.expression,))
    if len(below) > MAX_VALUE or any(type(e) is Accumulated for e in below):
        return None
    if any(type(e) is Axis and e not in value.axes for e in below):
        return None
    if any(type(e) is Load and _is_gathered(e) for e in below):
        return None
    return value


def _is_gathered(load: Load) -> bool:
    """Whether an index is loaded or computed: gathers have a cost of their own (`gather_costs`)."""
    return any(type(e) is AsIndex for e in subexpressions(load.indices))


def _without(nest: Nest, buffer: Buffer) -> Nest | None:
    """The nest without its store to a buffer; None if it does nothing then."""
    rest = without_dead(nest, lambda store: store.buffer is not buffer)
    return _simplest(rest) if isinstance(rest, (ReduceNest, RowNest)) else rest


def _simplest(nest: ReduceNest | RowNest) -> Nest:
    """A map if no fold is used, a reduction if there is one pass that stores nothing."""
    passes = as_rows(nest).passes
    stores = any(each.stores for each in passes)
    if not stores and not nest_accumulated(nest):
        return MapNest(nest.space, nest.stores, nest.signals, nest.predicates)
    if isinstance(nest, ReduceNest):
        return nest
    passes = tuple([each for each in passes if each.accumulators or each.stores])
    end = (nest.stores, nest.signals, nest.predicates)
    if len(passes) == 1 and not stores:
        return ReduceNest(nest.space, nest.loop, passes[0].accumulators, *end)
    return RowNest(nest.space, nest.loop, passes, *end)


def _axes(store: Store) -> tuple[Axis | None, ...] | None:
    """The axes that index a store, if it reaches each place of its buffer once."""
    found: list[Axis | None] = []
    for index, extent in zip(store.indices, store.buffer.type.shape, strict=True):
        if type(index) is Axis and index.extent == extent and index not in found:
            found.append(index)
        elif type(index) is Const and extent == 1:
            found.append(None)
        else:
            return None
    return None if store.guard is not None else tuple(found)


def _computing(nest: Nest, buffer: Buffer, value: _Value, target: Target) -> Nest | None:
    """A nest that computes the value where this one loads it; None if that is not possible, or
    adds accesses that are not coalesced.
    """
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)):
        return None
    if any(predicate.flag is buffer for predicate in nest.predicates):
        return None
    values: dict[Expr, Expr] = {}
    for load in nest_loads(nest):
        if load.buffer is buffer:
            if _is_gathered(load):
                return None
            values[load] = value.instead_of(load)
    made = map_nest(nest, values)
    assert isinstance(made, (MapNest, ReduceNest, RowNest))
    if nest_size(made) > MAX_EXPRESSIONS or not nest_writes(made).isdisjoint(nest_reads(made)):
        return None
    if isinstance(made, MapNest):
        return made
    return None if adds_uncoalesced(as_rows(made), (nest,), target.fusion) else _simplest(made)
