"""Counters of which a body makes nothing but its condition: several steps are counted at once.

Where steps follow each other that no condition divides, only the last one asks for the count.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeGuard

import numpy as np

from lowering.plan.buffer import Buffer
from lowering.plan.graph_edit import with_nodes
from lowering.plan.kernel import MapNest, Nest, SetCondition
from lowering.plan.nest_analysis import nest_reads, nest_stores
from lowering.plan.nest_rewriting import map_nest
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.scheduling.predication import with_nests
from tracegraph.ir.scalar import Const, const
from tracegraph.ir.scalar_values import Apply, Load


def counted(body: Graph, condition: int) -> frozenset[Node]:
    """The kernels of a body that count its steps, and may set its condition, and nothing else."""
    nodes = [node for node in body.nodes if _may_count(node)]
    if not nodes:
        return frozenset()
    users = Counter(buffer for node in body.nodes for buffer in node.accessed_buffers)

    def counts(node: KernelNode) -> bool:
        return all(_step(nest, condition, users) is not None for nest in node.kernel.nests)

    return frozenset(filter(counts, nodes))


def _may_count(node: Node) -> TypeGuard[KernelNode]:
    return type(node) is KernelNode and all(
        type(nest) is MapNest and not nest.space for nest in node.kernel.nests
    )


def without(body: Graph, nodes: frozenset[Node]) -> Graph:
    """The body without some of its nodes."""
    return with_nodes(body, [None if n in nodes else n for n in body.nodes]) if nodes else body


def counting(body: Graph, nodes: frozenset[Node], steps: int) -> Graph:
    """The body, of which some nodes count so many steps at once."""

    def node_of(node: Node) -> Node:
        if node not in nodes:
            return node
        assert isinstance(node, KernelNode)
        return with_nests(node, tuple(_many(nest, steps) for nest in node.kernel.nests))

    return Graph(tuple(map(node_of, body.nodes)), body.edges)


def _step(nest: Nest, condition: int, users: Counter[Buffer]) -> Apply | None:
    """The new count, if the nest only counts: the count that no other node sees, plus a constant.

    The condition is made of the new count, not of the one before.
    """
    if not isinstance(nest, MapNest) or nest.space or nest.predicates or len(nest.stores) != 1:
        return None
    if any(not isinstance(s, SetCondition) or s.condition != condition for s in nest.signals):
        return None
    (store,) = nest.stores
    buffer, value = store.buffer, store.value
    if buffer.type.dtype.kind not in "iu" or store.guard is not None or users[buffer] != 1:
        return None
    if not isinstance(value, Apply) or value.op.name != "add" or value.dtype != buffer.type.dtype:
        return None
    before, step = value.args
    if not isinstance(before, Load) or before.buffer is not buffer or not isinstance(step, Const):
        return None
    rest = map_nest(nest, {value: const(0, value.dtype)})
    return None if buffer in nest_reads(rest) else value


def _many(nest: Nest, steps: int) -> Nest:
    """A nest that counts, counting so many steps, as if one after the other: integers wrap."""
    (store,) = nest_stores(nest)
    value = store.value
    assert isinstance(value, Apply)
    before, step = value.args
    assert isinstance(step, Const)
    assert isinstance(step.value, int)
    total = const(_wrapped(step.value * steps, value.dtype), value.dtype)
    return map_nest(nest, {value: Apply.make(value.op, (before, total), value.dtype, value.attrs)})


def _wrapped(number: int, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    return (number - low) % (high - low + 1) + low
