"""What the stores of a map leave in one array: places, and the values at each of them.

A later store replaces an earlier one at the same place. Where it is limited to a part of the places
of the earlier one, both are one store of a value that is chosen:

    x[i] = a;  x[i] = b if i < 4      x[i] = b if i < 4, else a

Stores of parts that overlap are made one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from lowering.plan.nests.boxes import GuardBox, are_apart, box_of, is_within
from lowering.plan.nests.kernel import Store
from lowering.plan.nests.static_places import Indices, Places
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import TRUE, Expr, select
from tracegraph.ir.scalar_values import Load


class _Value(NamedTuple):
    """What is stored at a place, and where."""

    store: Store
    box: GuardBox


@dataclass(slots=True)
class Written:
    """The stores to one buffer, in order."""

    places: Places = field(default_factory=Places)
    _values: dict[Indices, list[_Value]] = field(default_factory=dict)

    def add(self, store: Store) -> None:
        """Add a store that follows those before it."""
        new = _Value(store, box_of(store.guard))
        self.places.add(store.indices, new.box)
        known = self._values.setdefault(store.indices, [])
        left = [each for each in known if not is_within(each.box, new.box)]
        for position, each in enumerate(left):
            if is_within(new.box, each.box):
                value = select(_test(store), store.value, each.store.value)
                chosen = Store(store.buffer, store.indices, value, each.store.guard)
                left[position] = _Value(chosen, each.box)
                self._values[store.indices] = left
                return
        self._values[store.indices] = [*left, new]

    def stores_at(self, indices: Indices) -> Sequence[Store]:
        """The stores at a place that leave the values."""
        return [each.store for each in self._values.get(indices, ())]

    def value(self, load: Load) -> Expr | None:
        """What a load finds that follows the stores, if they store at its place; the load itself
        where they do not.
        """
        known = self._values.get(load.indices)
        if known is None:
            return None
        box = box_of(load.guard)
        value: Expr = load
        for store, stored in known:
            if is_within(box, stored):
                value = store.value
            elif not are_apart(box, stored):
                value = select(_test(store), store.value, value)
        return value


def _test(store: Store) -> Expr:
    return TRUE if store.guard is None else store.guard
