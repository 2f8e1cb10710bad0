"""Common subexpressions of several nests: nests that compute the same calls are evaluated together.

The condition: the same extents and predicates, and an order of axes that suits both.
"""

from __future__ import annotations

from dataclasses import replace

from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.nest_program import NestGroup
from lowering.host.tuning.groups.loop_interchange import may_interchange
from lowering.plan.nests.analysis import nest_expressions
from lowering.plan.nests.kernel import Nest
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Apply


def share_evaluations(groups: list[NestGroup], overlaps: Overlaps) -> list[NestGroup]:
    """The groups, each joined to the first with which it has a call in common."""
    if len(groups) < 2:
        return groups
    joined: list[NestGroup] = []
    calls: list[set[Expr]] = []  # those of the first nest of each
    for group in groups:
        (nest,) = group.nests
        own = _calls(nest)
        for position, first in enumerate(joined):
            if not group.overwritten and _alike(first, group) and calls[position] & own:
                joined[position] = replace(first, nests=(*first.nests, nest))
                break
        else:
            joined.append(group)
            calls.append(own)
    return joined


def _alike(first: NestGroup, other: NestGroup) -> bool:
    same = (first.extents, first.predicates) == (other.extents, other.predicates)
    suits = first.order is None or may_interchange(other.nests[0])
    return same and suits and not first.overwritten


def _calls(nest: Nest) -> set[Expr]:
    return {expr for expr in nest_expressions(nest) if isinstance(expr, Apply)}
