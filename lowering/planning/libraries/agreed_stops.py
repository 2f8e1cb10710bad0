"""Agreed stops: loops around collectives end behind the same step on all devices of a mesh.

A device that left such a loop alone would be waited for. So a stop is data there: in each step the
devices exchange the largest of their stop flags, along the axes of the collectives in the body, and
the condition of the loop holds only if that is zero. It is one element, at once with a collective
that is there anyway, where one is close enough before the condition.

A loop without collectives ends as soon as its own device is to stop, with any values. Devices may
disagree about conditions that depend on these, until they have exchanged flags again. So where a
program has such loops, flags are exchanged behind them, and also before a loop or a branch with
collectives is entered: all enter none, or the same branch, once one is to stop.

A counted loop sets its condition before it exchanges anything. It takes the flag of the step
before, which is exchanged at once with what the step exchanges, and is down when the loop is
entered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from operator import is_

import numpy as np

from lowering.draft.context import Context
from lowering.plan.calls.collectives import AllReduce, CollectiveCall
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.lockstep import collective_of, collectives, in_lockstep
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Kernel,
    MapNest,
    Nest,
    ReduceNest,
    RowNest,
    SetCondition,
    Signal,
    Store,
)
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, Node, walk
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.dtypes import BOOL
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import get
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr, const, select
from tracegraph.ir.scalar_values import Load, apply
from tracegraph.ir.types import scalar_type

FLAG = scalar_type(np.dtype(np.int32))
"""The type of the word that ends loops."""


@dataclass(frozen=True, slots=True)
class AgreedStops:
    """A graph whose loops agree, and the arena with the agreed flags.

    `stop_flag` is the constant that stands for the word of each device, if there are such loops.
    """

    graph: Graph
    stop_flag: Buffer | None
    offsets: Mapping[Buffer, int]
    arena_bytes: int


def with_agreed_stops(
    graph: Graph, context: Context, offsets: Mapping[Buffer, int], arena_bytes: int
) -> AgreedStops:
    """The graph, in which devices agree about the end of each loop that holds collectives."""
    nodes = [node for node in walk(graph) if isinstance(node, ConditionalNode)]
    disturbed = any(map(_ends_alone, nodes))
    if not any(_meets(node) and (disturbed or isinstance(node, WhileNode)) for node in nodes):
        return AgreedStops(graph, None, offsets, arena_bytes)
    agreement = _Agreement(context, context.buffer("const", FLAG), disturbed)
    graph = agreement.within(graph)
    start = round_up(arena_bytes, ALIGNMENT)
    placed = {flag: start + ALIGNMENT * i for i, flag in enumerate(agreement.agreed)}
    nbytes = start + ALIGNMENT * len(placed)
    return AgreedStops(graph, agreement.stop_flag, {**offsets, **placed}, nbytes)


@dataclass(slots=True)
class _Agreement:
    """How the loops of a graph agree. `disturbed` says that some loops end on one device alone.

    `agreed` has the buffers of the flags that devices have exchanged.
    """

    context: Context
    stop_flag: Buffer
    disturbed: bool
    agreed: list[Buffer] = field(default_factory=list)

    def within(self, graph: Graph) -> Graph:
        """The graph and its bodies, in which each loop agrees."""
        nodes = list(map(self._inside, graph.nodes))
        entered: list[ConditionalNode] = []
        carried: dict[Node, Buffer] = {}
        for at, node in enumerate(nodes):
            if isinstance(node, WhileNode) and in_lockstep(node):
                body, flag = self._exchanging(node.body, node, repeated=True)
                node = nodes[at] = replace(node, body=body)
                if flag is not None:
                    carried[node] = flag
            first = [n for body in node.bodies for n in body.nodes] if node.is_kernel else [node]
            entered += [n for n in first if isinstance(n, ConditionalNode) and _meets(n)]
        graph = _with_flags_down(Graph(tuple(nodes), graph.edges), carried)
        for each in entered:
            if self.disturbed:
                graph, _ = self._exchanging(graph, each)
            elif isinstance(each, WhileNode):
                graph = _rewritten(graph, each, None)
        return graph

    def _inside(self, node: Node) -> Node:
        new = tuple(map(self.within, node.bodies))
        return node if all(map(is_, node.bodies, new)) else node.with_bodies(new)

    def _exchanging(
        self, graph: Graph, around: ConditionalNode, *, repeated: bool = False
    ) -> tuple[Graph, Buffer | None]:
        """The graph, in which flags are exchanged before the condition of a node is set.

        If it is `repeated`, that may be in the step before; the agreed flag is returned then.
        """
        nodes = graph.nodes
        deciding = [i for i, node in enumerate(nodes) if _decides(node, around)]
        if not deciding:
            return graph, None
        first = deciding[0]
        disturbing = [i for i in range(first) if any(map(_ends_alone, _inside(nodes[i])))]
        calls = self._calls(around)
        at, earliest = first, max(disturbing, default=-1) + 1
        for i in range(earliest, first):
            node = nodes[i]
            if isinstance(node, LibraryNode) and isinstance(node.call, CollectiveCall):
                at = i if node.call.axes == calls[0].axes else at
        behind = [i for i in range(first + 1, len(nodes)) if _is_along(nodes[i], calls[0].axes)]
        is_carried = repeated and not self.disturbed and at == first and len(calls) == 1
        is_carried &= bool(behind)
        at = behind[0] if is_carried else at
        flag = calls[-1].targets[0].buffer
        added = [LibraryNode(call, around.sources, around.within) for call in calls]
        moved = [i if i < at else i + len(added) for i in range(len(nodes))]
        edges = {(moved[i], moved[j]) for i, j in graph.edges}
        edges |= {(i, at) for i in disturbing}
        edges |= {(i, i + 1) for i in range(at, at + len(added) - 1)}
        last = at + len(added) - 1
        for i in deciding if is_carried else (first,):
            edges.add((moved[i], at) if moved[i] < at else (last, moved[i]))
        graph = Graph((*nodes[:at], *added, *nodes[at:]), frozenset(edges))
        return _rewritten(graph, around, flag), flag if is_carried else None

    def _calls(self, around: ConditionalNode) -> list[CollectiveCall]:
        """Calls one after the other, by which all devices of the collectives inside agree."""
        inside = [call for body in around.bodies for call in collectives(body)]
        counts = {call.axes: call.count for call in inside}
        widest = [a for a in counts if not any(set(a) < set(other) for other in counts)]
        calls, source = [], self.stop_flag
        for axes in widest:
            target = self.context.buffer("scratch", FLAG)
            self.agreed.append(target)
            arrays = (StridedArray.whole(source),), (StridedArray.whole(target),)
            calls.append(
                CollectiveCall((AllReduce("max"),), *arrays, axes, counts[axes], around.sources)
            )
            source = target
        return calls


def _with_flags_down(graph: Graph, carried: Mapping[Node, Buffer]) -> Graph:
    """The graph, in which flags that steps of loops hand on are down before the loops."""
    if not carried:
        return graph
    stores = [Store(flag, (), const(0, FLAG.dtype)) for flag in carried.values()]
    down = KernelNode(Kernel("flags_down", (MapNest((), tuple(stores)),)))
    edges = {(i + 1, j + 1) for i, j in graph.edges}
    edges |= {(0, i + 1) for i, node in enumerate(graph.nodes) if node in carried}
    return Graph((down, *graph.nodes), frozenset(edges))


def _is_along(node: Node, axes: tuple[str, ...]) -> bool:
    """Whether a node is a collective along axes."""
    call = collective_of(node)
    return call is not None and call.axes == axes


def _ends_alone(node: Node) -> bool:
    """Whether a node is a loop that ends when its own device is to stop."""
    return isinstance(node, WhileNode) and not in_lockstep(node)


def _inside(node: Node) -> Iterator[Node]:
    return walk(Graph((node,), frozenset()))


def _meets(node: Node) -> bool:
    """Whether there are collectives in the bodies of a node."""
    return any(True for body in node.bodies for _ in collectives(body))


def _decides(node: Node, around: ConditionalNode) -> bool:
    """Whether a node sets the condition of another one, or the flag that is its first condition."""
    return isinstance(node, KernelNode) and any(
        isinstance(nest, MapNest | ReduceNest | RowNest)
        and (
            any(_sets(s, around) for s in nest.signals)
            or any(_enters(s, around) for s in nest.stores)
        )
        for nest in node.kernel.nests
    )


def _sets(signal: Signal, around: ConditionalNode) -> bool:
    return isinstance(signal, SetCondition) and signal.condition == around.condition


def _enters(store: Store, around: ConditionalNode) -> bool:
    return isinstance(around, WhileNode) and store.buffer is around.entry


def _rewritten(graph: Graph, around: ConditionalNode, flag: Buffer | None) -> Graph:
    """The graph, in which devices agree about a condition, which a flag that is up makes 0."""
    return Graph(tuple([_agreeing(node, around, flag) for node in graph.nodes]), graph.edges)


def _agreeing(node: Node, around: ConditionalNode, flag: Buffer | None) -> Node:
    if not isinstance(node, KernelNode) or not _decides(node, around):
        return node
    nests = [_agreeing_nest(nest, around, flag) for nest in node.kernel.nests]
    return replace(node, kernel=Kernel(node.kernel.name, tuple(nests)))


def _agreeing_nest(nest: Nest, around: ConditionalNode, flag: Buffer | None) -> Nest:
    if not isinstance(nest, MapNest | ReduceNest | RowNest):
        return nest

    def agreed(value: Expr) -> Expr:
        if flag is None:
            return value
        down = (Load.make(flag, ()), const(0, FLAG.dtype))
        goes_on = apply(get("equal"), down, BOOL, {})
        return select(goes_on, value, const(0, value.dtype))

    signals = [
        SetCondition(around.condition, agreed(signal.value), agreed=True)
        if _sets(signal, around)
        else signal
        for signal in nest.signals
    ]
    stores = [
        replace(store, value=agreed(store.value)) if _enters(store, around) else store
        for store in nest.stores
    ]
    return replace(nest, signals=tuple(signals), stores=tuple(stores))
