"""Guards: predicates on the kernels of a graph, and the flags that they read.

A flag holds what a condition was set to: it is stored where the condition was set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from operator import is_

import numpy as np

from lowering.plan.buffer import Buffer
from lowering.plan.construct import Part
from lowering.plan.kernel import (
    Kernel,
    MapNest,
    Nest,
    Predicate,
    ReduceNest,
    RowNest,
    SetCondition,
    Store,
)
from lowering.plan.nest_analysis import extend_analysis, nest_signals, nest_stores
from lowering.plan.nodes import Graph, KernelNode, Node
from tracegraph.ir.op import get
from tracegraph.ir.record import record, replace
from tracegraph.ir.scalar import Expr, const
from tracegraph.ir.scalar_values import apply

BOOL = np.dtype(np.bool_)


@record
class Settings:
    """What becomes of the places where conditions are set.

    `flags` has the buffers that conditions are stored to as well, `dropped` those that no node has
    any more.
    """

    flags: Mapping[int, Buffer] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()


def set_conditions(graph: Graph) -> dict[int, SetCondition]:
    """Where the kernels of a graph, those of bodies left out, first set each condition."""
    found: dict[int, SetCondition] = {}
    for node in graph.nodes:
        if isinstance(node, KernelNode):
            for nest in node.kernel.nests:
                for signal in nest_signals(nest):
                    if isinstance(signal, SetCondition):
                        found.setdefault(signal.condition, signal)
    return found


def with_settings(node: KernelNode, settings: Settings) -> KernelNode | None:
    """The node with its conditions stored or dropped; None if it has nothing left to do."""
    nests = [set_in_nest(nest, settings) for nest in node.kernel.nests]
    if all(map(is_, nests, node.kernel.nests)):  # most are
        return node
    kept = tuple([nest for nest in nests if nest is not None])
    return with_nests(node, kept) if kept else None


def with_nests(node: KernelNode, nests: tuple[Nest, ...]) -> KernelNode:
    """The node with other nests in its kernel."""
    return KernelNode(Kernel(node.kernel.name, nests), node.sources, node.within)


def set_in_nest(nest: Nest, settings: Settings) -> Nest | None:
    """The nest with its conditions stored or dropped; None if it has nothing left to do."""
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)) or not nest.signals:
        return nest
    signals, stores = [], list(nest.stores)
    for signal in nest.signals:
        condition = signal.condition if isinstance(signal, SetCondition) else -1
        flag = settings.flags.get(condition)
        if flag is not None:
            stores.append(Store(flag, (), _as(flag.type.dtype, signal.value)))
        if condition not in settings.dropped:
            signals.append(signal)
    if len(stores) == len(nest.stores) and len(signals) == len(nest.signals):
        return nest
    parts = tuple(stores), tuple(signals)
    if type(nest) is MapNest:  # most are
        nest = MapNest(nest.space, *parts, nest.predicates)
    else:
        nest = replace(nest, stores=parts[0], signals=parts[1])
    return nest if nest_stores(nest) or nest.signals else None


def _as(dtype: np.dtype[np.generic], value: Expr) -> Expr:
    """A condition as its flag holds it: an integer that stands for true or false becomes that."""
    if value.dtype == dtype:
        return value
    return apply(get("not_equal"), (value, const(0, value.dtype)), dtype, {})


def guarded(nest: Nest, predicate: Predicate) -> Nest:
    """The nest, run only if a predicate holds as well."""
    predicates = (predicate, *nest.predicates)
    if type(nest) is MapNest:  # most are
        new: Nest = MapNest(nest.space, nest.stores, nest.signals, predicates)
    else:
        new = replace(nest, predicates=predicates)
    return extend_analysis(new, nest, predicate.flag)


def guarded_node(node: KernelNode, predicate: Predicate) -> KernelNode:
    """The node, all of whose nests run only if a predicate holds as well."""
    return with_nests(node, tuple([guarded(nest, predicate) for nest in node.kernel.nests]))


def branch(graph: Graph, predicate: Predicate, part: Part) -> Graph:
    """The kernels of a branch, as they stand in the graph around."""

    def inlined(node: Node) -> Node:
        assert isinstance(node, KernelNode)
        kernel = guarded_node(node, predicate).kernel
        return KernelNode(kernel, node.sources, (part, *node.within))

    return Graph(tuple(map(inlined, graph.nodes)), graph.edges)
