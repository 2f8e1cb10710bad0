"""Predication: kernels of branches that read a flag, in place of a node that decides.

A flag holds the value of a condition. The nest that sets the condition also stores the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from operator import is_

import numpy as np

from lowering.draft.draft_nodes import Block, DraftKernel, DraftNode
from lowering.plan.construct import Path
from lowering.plan.nests.analysis import extend_analysis, nest_signals, nest_stores
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    Predicate,
    ReduceNest,
    RowNest,
    SetCondition,
    Store,
)
from tracegraph.dtypes import BOOL
from tracegraph.ir.op import get
from tracegraph.ir.record import record, replace
from tracegraph.ir.scalar import Expr, const
from tracegraph.ir.scalar_values import apply


@record
class ConditionRewrites:
    """What becomes of the signals that set conditions.

    `flags` has the buffer that a condition is stored to as well; `dropped` are the conditions that
    no node uses any more.
    """

    flags: Mapping[int, Buffer] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()


def set_conditions(nodes: Iterable[DraftNode]) -> dict[int, SetCondition]:
    """The first signal that sets each condition, among kernels outside of bodies."""
    found: dict[int, SetCondition] = {}
    for node in nodes:
        if isinstance(node, DraftKernel):
            for nest in node.nests:
                for signal in nest_signals(nest):
                    if isinstance(signal, SetCondition):
                        found.setdefault(signal.condition, signal)
    return found


def rewritten_node(node: DraftNode, rewrites: ConditionRewrites) -> DraftNode | None:
    """The node with its conditions stored or dropped; None if it has nothing left to do."""
    if not isinstance(node, DraftKernel):
        return node
    nests = [rewritten_nest(nest, rewrites) for nest in node.nests]
    if all(map(is_, nests, node.nests)):  # most are
        return node
    left = [nest for nest in nests if nest is not None]
    return DraftKernel(left, node.sources, node.within) if left else None


def rewritten_nest(nest: Nest, rewrites: ConditionRewrites) -> Nest | None:
    """The nest with its conditions stored or dropped; None if it has nothing left to do."""
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)) or not nest.signals:
        return nest
    signals, stores = [], list(nest.stores)
    for signal in nest.signals:
        condition = signal.condition if isinstance(signal, SetCondition) else -1
        flag = rewrites.flags.get(condition)
        if flag is not None:
            stores.append(Store(flag, (), _as(flag.type.dtype, signal.value)))
        if condition not in rewrites.dropped:
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
    """A condition in the dtype of its flag: an integer that stands for a truth becomes a bool."""
    if value.dtype == dtype:
        return value
    return apply(get("not_equal"), (value, const(0, value.dtype)), dtype, {})


def flag_dtype(signal: SetCondition, boolean: bool) -> np.dtype[np.generic]:
    """The dtype of the flag for a condition that decides between two branches, or among many."""
    return BOOL if boolean else signal.value.dtype


def predicated(nest: Nest, predicate: Predicate) -> Nest:
    """The nest, run only if a predicate holds as well."""
    predicates = (predicate, *nest.predicates)
    if type(nest) is MapNest:  # most are
        new: Nest = MapNest(nest.space, nest.stores, nest.signals, predicates)
    else:
        new = replace(nest, predicates=predicates)
    return extend_analysis(new, nest, predicate.flag)


def predicated_branch(block: Block, predicate: Predicate, path: Path) -> list[DraftNode]:
    """The kernels of a branch, which is on a path, as nodes of the block around it."""
    return [_predicated_node(node, predicate, path) for node in block.nodes]


def _predicated_node(node: DraftNode, predicate: Predicate, path: Path) -> DraftKernel:
    assert isinstance(node, DraftKernel)
    nests = [predicated(nest, predicate) for nest in node.nests]
    within = tuple([(*path, *inner) for inner in node.within or ((),)])
    return DraftKernel(nests, node.sources, within)
