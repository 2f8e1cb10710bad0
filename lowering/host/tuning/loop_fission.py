"""Maps that compute different things: each is run by itself.

So each goes through memory as suits it, and is cut where its own loads wrap around. Strips of one
array that is read across fit the cache, and those of several arrays do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lowering.host.tuning.store_forwarding import Overlaps
from lowering.plan.kernel import MapNest, Nest, Store
from tracegraph.ir.scalar import Apply, Expr, Load
from tracegraph.ir.subexpressions import subexpressions


def fission(nest: Nest, overlaps: Overlaps) -> list[Nest]:
    """Nests that together do what `nest` does, no two of which load or compute the same."""
    if not isinstance(nest, MapNest) or nest.signals or len(nest.stores) < 2:
        return [nest]
    groups: list[tuple[list[Store], set[Expr]]] = []
    for store in nest.stores:
        roots = (store.value, *store.indices, *(() if store.guard is None else (store.guard,)))
        found: set[Expr] = {e for e in subexpressions(roots) if isinstance(e, Load | Apply)}
        own = ([store], found)
        others = list[tuple[list[Store], set[Expr]]]()
        for group in groups:
            if _are_bound(group, own, overlaps):
                own = ([*group[0], *own[0]], group[1] | own[1])
            else:
                others.append(group)
        groups = [*others, own]
    return [replace(nest, stores=tuple(stores)) for stores, _ in groups]


def _are_bound(
    one: tuple[Sequence[Store], set[Expr]],
    other: tuple[Sequence[Store], set[Expr]],
    overlaps: Overlaps,
) -> bool:
    """Whether they load or compute the same, or one writes where the other does, or reads."""
    written = [[store.buffer for store in stores] for stores, _ in (one, other)]
    read = [[e.buffer for e in found if isinstance(e, Load)] for _, found in (one, other)]
    return bool(one[1] & other[1]) or any(
        overlaps(mine, theirs)
        for k in (0, 1)
        for mine in written[k]
        for theirs in (*written[1 - k], *read[1 - k])
    )
