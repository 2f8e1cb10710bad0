"""The graph of one lane: what one thread runs of a loop whose lanes never meet.

The nests lose the axes of lanes, whose indices are numbers that each thread knows. What the loop
writes for each lane is a private array, without these axes, if it is small and no index depends on
data: it is loaded before the loop, and stored behind it if others read it. Other arrays stay in
memory, where each thread accesses the elements of its lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.graph_composition import chain
from lowering.plan.nests.analysis import (
    nest_accumulators,
    nest_reads,
    nest_stores,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.guarded_indices import under
from lowering.plan.nests.kernel import (
    Accumulator,
    Kernel,
    MapNest,
    Nest,
    Pass,
    Predicate,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
    space_index,
)
from lowering.plan.nests.lane_nests import (
    LaneNests,
    first_lane_axis,
    kept_by_lanes,
    lane_axes,
)
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.plan.persistent_kernel import PersistentKernelNode
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, Expr, both
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import Substitution, subexpressions
from tracegraph.ir.types import ArrayType

FIRST_LANE = -3
"""The number of the first axis of lanes in the nests of one lane; the next ones are below it."""


class LaneGraph(NamedTuple):
    """The graph of one lane, and the private arrays that its nests access."""

    graph: Graph
    private: frozenset[Buffer]


def own_axis(number: int, extent: int) -> Axis:
    """An axis of lanes in the nests of one lane."""
    return Axis.make(FIRST_LANE - number, extent)


def lane_graph(kernel: PersistentKernelNode, is_outside: Callable[[Buffer], bool]) -> LaneGraph:
    """The graph of one lane. Other nodes access the buffers that are outside."""
    graph, lanes = kernel.graph, kernel.lane_nests
    nests = tuple(lanes.roles)
    names = {
        buffer: Buffer("scratch", number, ArrayType(buffer.type.dtype, lanes.inner_shape(buffer)))
        for number, buffer in enumerate(kept_by_lanes(lanes))
    }
    rewriter = _Rewriter(lanes, names)
    read = frozenset().union(*map(nest_reads, nests))
    moved = [(buffer, own) for buffer, own in names.items() if is_outside(buffer)]
    copied = [(buffer, own) for buffer, own in moved if lanes.places[buffer] or buffer not in read]
    before = [rewriter.load(own, buffer) for buffer, own in moved]
    after = [rewriter.save(own, buffer) for buffer, own in copied]
    parts = [_graph_of(before), rewriter.graph(graph), _graph_of(after)]
    return LaneGraph(chain([part for part in parts if part.nodes]), frozenset(names.values()))


def _graph_of(nests: Sequence[Nest]) -> Graph:
    """A graph of independent nests."""
    nodes = (KernelNode(Kernel("", tuple(nests))),) if nests else ()
    return Graph(nodes, frozenset())


class _Rewriter:
    """Rewrites nodes as those of one lane."""

    def __init__(self, lanes: LaneNests, names: Mapping[Buffer, Buffer]) -> None:
        self._lanes = lanes
        self._names = names
        extents = enumerate(lanes.extents)
        self._axes = tuple([own_axis(n, extent) for n, extent in extents if extent != 1])

    def load(self, own: Buffer, buffer: Buffer) -> Nest:
        """The nest that loads a private array from memory."""
        index = space_index(own.type.shape)
        store = Store(own, index, Load.make(buffer, self._whole(own, buffer)))
        return MapNest(own.type.shape, (store,))

    def save(self, own: Buffer, buffer: Buffer) -> Nest:
        """The nest that stores a private array to memory; the first lane, if all have the same."""
        guard: Expr | None = None
        for axis in self._axes if not self._lanes.places[buffer] else ():
            guard = both(guard, axis.equals(0))
        value = Load.make(own, space_index(own.type.shape))
        store = Store(buffer, self._whole(own, buffer), value, guard)
        return MapNest(own.type.shape, (store,))

    def _whole(self, own: Buffer, buffer: Buffer) -> tuple[Expr, ...]:
        """The indices, in memory, of the points of a private array."""
        inner = iter(space_index(own.type.shape))
        lane = dict(zip(self._lanes.places[buffer], self._axes, strict=False))
        return tuple([lane[n] if n in lane else next(inner) for n in range(buffer.type.ndim)])

    def graph(self, graph: Graph) -> Graph:
        """A graph with its bodies."""
        return Graph(tuple(map(self._node, graph.nodes)), graph.edges)

    def _node(self, node: Node) -> Node:
        match node:
            case KernelNode(kernel=kernel):
                nests = tuple(map(self._nest, kernel.nests))
                return replace(node, kernel=Kernel(kernel.name, nests))
            case WhileNode(body=body, entry=entry):
                own = None if entry is None else self._names.get(entry, entry)
                return replace(node, body=self.graph(body), entry=own)
            case IfElseNode(then=then, otherwise=otherwise):
                return replace(node, then=self.graph(then), otherwise=self.graph(otherwise))
            case SwitchNode(branches=branches):
                return replace(node, branches=tuple(map(self.graph, branches)))
        raise AssertionError(f"{node.kind} in a loop of lanes")

    def _nest(self, nest: Nest) -> Nest:
        role = self._lanes.roles[nest]
        own = lane_axes(nest, role, self._lanes.extents)
        predicates = tuple(
            replace(p, flag=self._names.get(p.flag, p.flag)) for p in nest.predicates
        )
        if role == "uniform":
            of = _Expressions({}, self)
            return _rebuilt(nest, of, nest.space, predicates, 0)
        if role == "deciding":
            assert isinstance(nest, (ReduceNest, RowNest))
            of = _Expressions(dict(zip(own, self._axes, strict=True)), self)
            for number, fold in enumerate(nest_accumulators(nest)):
                of.bind(Accumulated.make(number, fold.value.dtype), of(fold.value))
            stores = (*nest_stores(nest),)
            signals = tuple(replace(s, value=of(s.value)) for s in nest.signals)
            return MapNest((), tuple(map(of.store, stores)), signals, predicates)
        extents = self._lanes.extents
        rank = first_lane_axis(nest.space, extents) + len(extents)
        axes: dict[Expr, Expr] = dict(zip(own, self._axes, strict=True))
        loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
        for number, extent in enumerate((*nest.space, *loop)[rank:], start=rank):
            axes[Axis.make(number, extent)] = Axis.make(number - rank, extent)
        return _rebuilt(nest, _Expressions(axes, self), nest.space[rank:], predicates, rank)

    def place(
        self, buffer: Buffer, indices: tuple[Expr, ...], guard: Expr | None
    ) -> tuple[Buffer, tuple[Expr, ...]]:
        """The buffer and the indices of an access, without those of the lane if it is private."""
        own = self._names.get(buffer)
        if own is None:
            return buffer, indices
        indices = under(guard, indices)
        place = self._lanes.places[buffer]
        return own, tuple([index for n, index in enumerate(indices) if n not in place])


class _Expressions:
    """Rewrites the expressions of a nest; a shared subexpression is rewritten once."""

    def __init__(self, axes: Mapping[Expr, Expr], rewriter: _Rewriter) -> None:
        self._known = Substitution(axes)
        self._rewriter = rewriter

    def bind(self, expr: Expr, value: Expr) -> None:
        """Put a value in the place of an expression."""
        self._known[expr] = value

    def __call__(self, expr: Expr) -> Expr:
        known = self._known
        for part in subexpressions((expr,)):  # operands first, so nothing recurses deeply
            if part in known:
                continue
            if isinstance(part, Load):
                buffer, indices = self._rewriter.place(part.buffer, part.indices, part.guard)
                guard = None if part.guard is None else known[part.guard]
                known[part] = Load.make(buffer, tuple([known[i] for i in indices]), guard)
        return known[expr]

    def store(self, store: Store) -> Store:
        """A store of one lane."""
        buffer, indices = self._rewriter.place(store.buffer, store.indices, store.guard)
        guard = None if store.guard is None else self(store.guard)
        return Store(buffer, tuple(map(self, indices)), self(store.value), guard)

    def fold(self, fold: Accumulator) -> Accumulator:
        """A fold of one lane."""
        return Accumulator(fold.combiner, self(fold.value), fold.arg)


def _rebuilt(
    nest: Nest,
    of: _Expressions,
    space: tuple[int, ...],
    predicates: tuple[Predicate, ...],
    rank: int,
) -> Nest:
    """A nest over the axes behind those of lanes, of which there are `rank`."""

    def stores_of(stores: Sequence[Store]) -> tuple[Store, ...]:
        return tuple(map(of.store, stores))

    def folds_of(folds: Sequence[Accumulator]) -> tuple[Accumulator, ...]:
        return tuple(map(of.fold, folds))

    match nest:
        case MapNest():
            signals = tuple(replace(s, value=of(s.value)) for s in nest.signals)
            return MapNest(space, stores_of(nest.stores), signals, predicates)
        case ReduceNest():
            signals = tuple(replace(s, value=of(s.value)) for s in nest.signals)
            folds = folds_of(nest.accumulators)
            return ReduceNest(space, nest.loop, folds, stores_of(nest.stores), signals, predicates)
        case RowNest():
            signals = tuple(replace(s, value=of(s.value)) for s in nest.signals)
            passes = tuple(Pass(folds_of(p.accumulators), stores_of(p.stores)) for p in nest.passes)
            return RowNest(space, nest.loop, passes, stores_of(nest.stores), signals, predicates)
        case ScanNest():
            store = of.store(nest.store)
            return ScanNest(space, nest.axis - rank, nest.combiner, store, predicates)
        case ScatterNest():
            repeats = max(nest.repeats - rank, 0)
            return ScatterNest(space, repeats, nest.combiner, of.store(nest.store), predicates)
    raise AssertionError(f"{type(nest).__name__} in a loop of lanes")
