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

from collections.abc import Sequence
from dataclasses import dataclass

from lowering.draft.context import Context
from lowering.draft.dependences import BARRIER, accesses_of
from lowering.draft.draft_nodes import Block, DraftKernel, node_reads, node_writes
from lowering.fusion.dead_stores import without_dead
from lowering.fusion.nest_times import nest_time
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.fusion.row_profitability import adds_uncoalesced
from lowering.fusion.short_folds import written_out
from lowering.plan.nests.analysis import (
    as_rows,
    loads,
    nest_loads,
    nest_reads,
    nest_size,
    nest_stores,
    nest_writes,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, Store
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.target.target import Target
from tracegraph.ir.scalar import Axis, Const, Expr
from tracegraph.ir.scalar_values import Accumulated, AsIndex, Load
from tracegraph.ir.subexpressions import subexpressions, substitution

MAX_READERS = 4
"""Nests that compute a value again, at most: bounds the time to plan."""

MAX_VALUE = 100
"""Expressions of a value that is computed again, at most: bounds the code of each reader."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A nest by its kernel's position in the block, and its own in the kernel."""

    node: int
    nest: int


def recompute(block: Block, context: Context) -> bool:
    """Compute values again in the kernels of a block, in place, where that takes less time than to
    load them; whether there were any.
    """
    search = _Search(block, context.target)
    found = False
    for node in range(len(block.nodes)):
        kernel = block.nodes[node]
        if not isinstance(kernel, DraftKernel):
            continue
        for buffer in dict.fromkeys([s.buffer for n in kernel.nests for s in nest_stores(n)]):
            if search.may_vanish(buffer) and search.replace(node, buffer):
                found = True
    if found:
        block.nodes = [n for n in block.nodes if not isinstance(n, DraftKernel) or n.nests]
    return found


class _Search:
    """The nodes of a block by the buffers that they access."""

    def __init__(self, block: Block, target: Target) -> None:
        self.block = block
        self.target = target
        self.kept = {*block.sinks, *block.carries, *block.resident}
        self.readers: dict[Buffer, list[int]] = {}
        self.writers: dict[Buffer, list[int]] = {}
        self.barriers: list[int] = []
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
            buffer.type.nbytes > self.target.costs.cached
            and buffer in self.block.owned
            and buffer not in self.kept
            and len(self.writers[buffer]) == 1
            and 0 < len(self.readers.get(buffer, ())) <= MAX_READERS
        )

    def replace(self, node: int, buffer: Buffer) -> bool:
        """Let all readers of what a kernel stores in a buffer compute it, if that is faster."""
        writer = self._kernel(node)
        places = [k for k, nest in enumerate(writer.nests) if buffer in nest_writes(nest)]
        if len(places) != 1 or buffer in node_reads(writer):
            return False
        nest = writer.nests[places[0]]
        value = _value(nest, buffer)
        if value is None:
            return False
        read = {load.buffer for load in loads((value.expression,))}
        old: dict[_Place, Nest] = {}
        new: dict[_Place, Nest] = {}
        for position in self.readers[buffer]:
            reader = self.block.nodes[position]
            if not isinstance(reader, DraftKernel) or not self._are_same(read, node, position):
                return False
            for k, each in enumerate(reader.nests):
                if buffer in nest_reads(each):
                    made = _computing(each, buffer, value, self.target)
                    if made is None:
                        return False
                    old[_Place(position, k)], new[_Place(position, k)] = each, made
        rest = _without(nest, buffer)
        if not self._is_faster(writer, nest, rest, list(old.values()), list(new.values())):
            return False
        for place, made in new.items():
            self._kernel(place.node).nests[place.nest] = made
        nests = [*writer.nests[: places[0]], rest, *writer.nests[places[0] + 1 :]]
        writer.nests = [each for each in nests if each is not None]
        for position in self.readers.pop(buffer):
            for load in read:
                readers = self.readers.setdefault(load, [])
                if position not in readers:
                    readers.append(position)
        return True

    def _kernel(self, position: int) -> DraftKernel:
        node = self.block.nodes[position]
        assert isinstance(node, DraftKernel)
        return node

    def _are_same(self, buffers: set[Buffer], first: int, last: int) -> bool:
        """Whether buffers hold the same values at two nodes, of which the last one writes none."""
        if any(first < barrier < last for barrier in self.barriers):
            return False
        writes = [w for buffer in buffers for w in self.writers.get(buffer, ())]
        return not any(first <= w <= last for w in writes)

    def _is_faster(
        self,
        writer: DraftKernel,
        nest: Nest,
        rest: Nest | None,
        old: Sequence[Nest],
        new: Sequence[Nest],
    ) -> bool:
        costs = self.target.costs
        before = sum(nest_time(each, costs) for each in (nest, *old))
        after = sum(nest_time(each, costs) for each in new)
        if rest is not None:
            after += nest_time(rest, costs)
        elif len(writer.nests) == 1:
            before += costs.kernel
        return after < before


@dataclass(frozen=True, slots=True)
class _Value:
    """What a store writes, as an expression of the axes that index it, in the order of the axes of
    the buffer.
    """

    axes: tuple[Axis | None, ...]  # None along an axis of one element
    expression: Expr

    def at(self, indices: tuple[Expr, ...]) -> Expr:
        """The value at an index of the buffer."""
        pairs = zip(self.axes, indices, strict=True)
        return substitution({axis: index for axis, index in pairs if axis is not None})(
            self.expression
        )


def _value(nest: Nest, buffer: Buffer) -> _Value | None:
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
    value = store.value if isinstance(nest, MapNest) else written_out(nest, store)
    if value is None:
        return None
    below = subexpressions((value,))
    if len(below) > MAX_VALUE or any(type(e) is Accumulated for e in below):
        return None
    if any(type(e) is Axis and e not in axes for e in below):
        return None
    if any(type(e) is Load and _is_gathered(e) for e in below):
        return None
    return _Value(axes, value)


def _is_gathered(load: Load) -> bool:
    """Whether an index is loaded or computed: gathers have a cost of their own (`gather_costs`)."""
    return any(type(e) is AsIndex for e in subexpressions(load.indices))


def _without(nest: Nest, buffer: Buffer) -> Nest | None:
    """The nest without its store to a buffer; None if it does nothing then."""
    rest = without_dead(nest, lambda store: store.buffer is not buffer)
    if isinstance(rest, RowNest) and len(rest.passes) == 1 and not rest.passes[0].stores:
        (only,) = rest.passes
        return ReduceNest(rest.space, rest.loop, only.accumulators, rest.stores, rest.signals)
    return rest


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
            if load.guard is not None or _is_gathered(load):
                return None
            values[load] = value.at(load.indices)
    made = map_nest(nest, values)
    assert isinstance(made, (MapNest, ReduceNest, RowNest))
    if nest_size(made) > MAX_EXPRESSIONS or not nest_writes(made).isdisjoint(nest_reads(made)):
        return None
    if not isinstance(made, MapNest) and adds_uncoalesced(as_rows(made), (nest,), target.fusion):
        return None
    return made
