"""Loop fission: the stores of a map that have no load and no call in common run as separate nests.

Each nest then has its own loop order, breakpoints and blocks. Strips of one array that is read
across its memory order fit the cache; strips of several arrays do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.nest_program import NestGroup
from lowering.plan.nests.kernel import MapNest, Nest, Store
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Apply, Load
from tracegraph.ir.subexpressions import subexpressions


def split_maps(groups: list[NestGroup], overlaps: Overlaps) -> list[NestGroup]:
    """The groups, one for each part of a nest."""
    return [
        NestGroup((part,))
        for group in groups
        for nest in group.nests
        for part in fission(nest, overlaps)
    ]


def fission(nest: Nest, overlaps: Overlaps) -> list[Nest]:
    """The parts of a nest: no two have a load or a call in common."""
    if not isinstance(nest, MapNest) or nest.signals or len(nest.stores) < 2:
        return [nest]
    groups: list[tuple[list[Store], set[Expr]]] = []
    for store in nest.stores:
        roots = (store.value, *store.indices, *(() if store.guard is None else (store.guard,)))
        found: set[Expr] = {e for e in subexpressions(roots) if isinstance(e, Load | Apply)}
        own = ([store], found)
        others = list[tuple[list[Store], set[Expr]]]()
        for group in groups:
            if _depend(group, own, overlaps):
                own = ([*group[0], *own[0]], group[1] | own[1])
            else:
                others.append(group)
        groups = [*others, own]
    return [replace(nest, stores=tuple(stores)) for stores, _ in groups]


def _depend(
    one: tuple[Sequence[Store], set[Expr]],
    other: tuple[Sequence[Store], set[Expr]],
    overlaps: Overlaps,
) -> bool:
    """Whether they have a load or a call in common, or one writes what the other accesses."""
    written = [[store.buffer for store in stores] for stores, _ in (one, other)]
    read = [[e.buffer for e in found if isinstance(e, Load)] for _, found in (one, other)]
    return bool(one[1] & other[1]) or any(
        overlaps(mine, theirs)
        for k in (0, 1)
        for mine in written[k]
        for theirs in (*written[1 - k], *read[1 - k])
    )
