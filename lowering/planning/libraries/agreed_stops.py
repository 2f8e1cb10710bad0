"""Agreed stops: loops around collectives end behind the same step on all devices of a mesh.

A device that left such a loop alone would be waited for. So a stop is data there: in each step the
devices exchange the largest of their stop flags, along the axes of the collectives in the body, and
the condition of the loop holds only if that is zero. It is one element, at once with a collective
that is there anyway, where one is close enough before the condition.

A loop without collectives ends as soon as its own device is to stop, with any values. Devices may
disagree about conditions that depend on these, until they have exchanged flags again. So where a
program has such loops, flags are exchanged behind them, and also before a loop is entered.

A counted loop sets its condition before it exchanges anything. It takes the flag of the step
before, which is exchanged at once with what the step exchanges, and is down when the loop is
entered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import is_

import numpy as np

from lowering.draft.context import Context
from lowering.plan.calls.collectives import AllReduce, CollectiveCall
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.lockstep import collective_of, collectives, in_lockstep
from lowering.plan.nests.analysis import nest_signals
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
from tracegraph.ir.op import get
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import const, select
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
    nodes = list(walk(graph))
    if not any(map(in_lockstep, nodes)):
        return AgreedStops(graph, None, offsets, arena_bytes)
    agreement = _Agreement(context, context.buffer("const", FLAG), any(map(_ends_alone, nodes)))
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
        entered: list[WhileNode] = []
        carried: dict[Node, Buffer] = {}
        for at, node in enumerate(nodes):
            if isinstance(node, WhileNode) and in_lockstep(node):
                body, flag = self._exchanging(node.body, node, repeated=True)
                nodes[at] = replace(node, body=body)
                entered.append(node)
                if flag is not None:
                    carried[nodes[at]] = flag
        graph = _with_flags_down(Graph(tuple(nodes), graph.edges), carried)
        for loop in entered:
            if self.disturbed:
                graph, _ = self._exchanging(graph, loop)
            else:
                graph = _rewritten(graph, loop.condition, None)
        return graph

    def _inside(self, node: Node) -> Node:
        new = tuple(map(self.within, node.bodies))
        return node if all(map(is_, node.bodies, new)) else node.with_bodies(new)

    def _exchanging(
        self, graph: Graph, loop: WhileNode, *, repeated: bool = False
    ) -> tuple[Graph, Buffer | None]:
        """The graph, in which flags are exchanged before the condition of a loop is set.

        If it is `repeated`, that may be in the step before; the agreed flag is returned then.
        """
        nodes = graph.nodes
        setting = [i for i, node in enumerate(nodes) if _sets(node, loop.condition)]
        if not setting:
            return graph, None
        first = setting[0]
        disturbing = [i for i in range(first) if any(map(_ends_alone, _inside(nodes[i])))]
        calls = self._calls(loop)
        at, earliest = first, max(disturbing, default=-1) + 1
        for i in range(earliest, first):
            node = nodes[i]
            if isinstance(node, LibraryNode) and isinstance(node.call, CollectiveCall):
                at = i if node.call.axes == calls[0].axes else at
        behind = [i for i in range(first + 1, len(nodes)) if _is_along(nodes[i], calls[0].axes)]
        is_carried = repeated and not self.disturbed and at == first and bool(behind)
        is_carried &= len(calls) == 1
        at = behind[0] if is_carried else at
        flag = calls[-1].targets[0].buffer
        added = [LibraryNode(call, loop.sources, ((),) * len(loop.within)) for call in calls]
        moved = [i if i < at else i + len(added) for i in range(len(nodes))]
        edges = {(moved[i], moved[j]) for i, j in graph.edges}
        edges |= {(i, at) for i in disturbing}
        edges |= {(i, i + 1) for i in range(at, at + len(added) - 1)}
        last = at + len(added) - 1
        for i in setting if is_carried else (first,):
            edges.add((moved[i], at) if moved[i] < at else (last, moved[i]))
        graph = Graph((*nodes[:at], *added, *nodes[at:]), frozenset(edges))
        return _rewritten(graph, loop.condition, flag), flag if is_carried else None

    def _calls(self, loop: WhileNode) -> list[CollectiveCall]:
        """Calls one after the other, by which all devices of the collectives of a loop agree."""
        counts = {call.axes: call.count for call in collectives(loop.body)}
        widest = [a for a in counts if not any(set(a) < set(other) for other in counts)]
        calls, source = [], self.stop_flag
        for axes in widest:
            target = self.context.buffer("scratch", FLAG)
            self.agreed.append(target)
            arrays = (StridedArray.whole(source),), (StridedArray.whole(target),)
            calls.append(
                CollectiveCall((AllReduce("max"),), *arrays, axes, counts[axes], loop.sources)
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


def _sets(node: Node, condition: int) -> bool:
    return isinstance(node, KernelNode) and any(
        isinstance(signal, SetCondition) and signal.condition == condition
        for nest in node.kernel.nests
        for signal in nest_signals(nest)
    )


def _rewritten(graph: Graph, condition: int, flag: Buffer | None) -> Graph:
    """The graph, in which a condition is one that devices agree about, by a flag that is down."""
    nodes = [_agreeing(node, condition, flag) for node in graph.nodes]
    return Graph(tuple(nodes), graph.edges)


def _agreeing(node: Node, condition: int, flag: Buffer | None) -> Node:
    if not isinstance(node, KernelNode) or not _sets(node, condition):
        return node
    nests = [_agreeing_nest(nest, condition, flag) for nest in node.kernel.nests]
    return replace(node, kernel=Kernel(node.kernel.name, tuple(nests)))


def _agreeing_nest(nest: Nest, condition: int, flag: Buffer | None) -> Nest:
    if not isinstance(nest, MapNest | ReduceNest | RowNest):
        return nest
    signals: list[Signal] = []
    for signal in nest.signals:
        if isinstance(signal, SetCondition) and signal.condition == condition:
            value = signal.value
            if flag is not None:
                down = (Load.make(flag, ()), const(0, FLAG.dtype))
                goes_on = apply(get("equal"), down, BOOL, {})
                value = select(goes_on, value, const(0, value.dtype))
            signals.append(SetCondition(condition, value, agreed=True))
        else:
            signals.append(signal)
    return replace(nest, signals=tuple(signals))
