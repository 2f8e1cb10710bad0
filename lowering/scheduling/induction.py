"""Induction variables: counters of a loop that only its condition uses.

Where copies of a body follow one another and no condition is tested between them, only the last
copy counts, by all steps at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any, TypeGuard

import numpy as np

from lowering.draft.draft_nodes import DraftKernel, DraftNode, node_reads, node_writes
from lowering.plan.nests.analysis import nest_reads, nest_stores
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, SetCondition
from lowering.plan.nests.rewriting import map_nest
from tracegraph.ir.scalar import Const, const
from tracegraph.ir.scalar_values import Apply, Load


def counters(nodes: Sequence[DraftNode], condition: int) -> frozenset[DraftNode]:
    """The kernels of a body that count its steps, and may set its condition, and nothing else."""
    possible = [node for node in nodes if _may_count(node)]
    if not possible:
        return frozenset()
    users = Counter(b for node in nodes for b in node_reads(node) | node_writes(node))

    def counts(node: DraftKernel) -> bool:
        return all(_increment(nest, condition, users) is not None for nest in node.nests)

    return frozenset(filter(counts, possible))


def _may_count(node: DraftNode) -> TypeGuard[DraftKernel]:
    return type(node) is DraftKernel and all(
        type(nest) is MapNest and not nest.space for nest in node.nests
    )


def counting(nodes: Sequence[DraftNode], counters: Set[DraftNode], steps: int) -> list[DraftNode]:
    """The body, whose counters count a number of steps at once."""

    def multiplied(node: DraftNode) -> DraftNode:
        if node not in counters:
            return node
        assert isinstance(node, DraftKernel)
        nests = [_multiplied(nest, steps) for nest in node.nests]
        return DraftKernel(nests, node.sources, node.within)

    return list(map(multiplied, nodes))


def _increment(nest: Nest, condition: int, users: Counter[Buffer]) -> Apply | None:
    """The new count, if the nest only counts: a count of no other node's, plus a constant.

    The condition is computed from the new count, not from the old one.
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


def _multiplied(nest: Nest, steps: int) -> Nest:
    """A nest that counts, counting several steps at once; integers wrap as one by one."""
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
