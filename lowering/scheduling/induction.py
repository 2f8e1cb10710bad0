"""Induction variables: counters of a loop that nothing but its condition uses.

Where copies of a body follow one another and no condition is tested between them, only the last
copy counts, by all steps at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any, TypeGuard

import numpy as np

from lowering.draft.stage import KernelStage, Stage, stage_reads, stage_writes
from lowering.plan.nests.analysis import nest_reads, nest_stores
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, SetCondition
from lowering.plan.nests.rewriting import map_nest
from tracegraph.ir.scalar import Const, const
from tracegraph.ir.scalar_values import Apply, Load


def counters(stages: Sequence[Stage], condition: int) -> frozenset[Stage]:
    """The kernels of a body that count its steps, and may set its condition, and nothing else."""
    possible = [stage for stage in stages if _may_count(stage)]
    if not possible:
        return frozenset()
    users = Counter(b for stage in stages for b in stage_reads(stage) | stage_writes(stage))

    def counts(stage: KernelStage) -> bool:
        return all(_increment(nest, condition, users) is not None for nest in stage.nests)

    return frozenset(filter(counts, possible))


def _may_count(stage: Stage) -> TypeGuard[KernelStage]:
    return type(stage) is KernelStage and all(
        type(nest) is MapNest and not nest.space for nest in stage.nests
    )


def counting(stages: Sequence[Stage], counters: Set[Stage], steps: int) -> list[Stage]:
    """The body, whose counters count a number of steps at once."""

    def multiplied(stage: Stage) -> Stage:
        if stage not in counters:
            return stage
        assert isinstance(stage, KernelStage)
        nests = [_multiplied(nest, steps) for nest in stage.nests]
        return KernelStage(nests, stage.sources, stage.within)

    return list(map(multiplied, stages))


def _increment(nest: Nest, condition: int, users: Counter[Buffer]) -> Apply | None:
    """The new count, if the nest only counts: a count of no other stage's, plus a constant.

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
