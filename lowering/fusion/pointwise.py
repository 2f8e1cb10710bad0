"""Pointwise fusion: nests of one space become one nest, whose points forward values in registers.

Spaces are the same if they differ in axes of one point only; others may be parts of a common one,
see `common_space`. A value that one nest stores at its own point, and another reads there, is not
loaded again. Nests may store in one buffer, if no point stores or reads what another one stores: so
writes to fixed indices, one after the other, are one nest, whose points keep what they wrote. What
is fused is kept in lists until the nest is needed, so that each fusion costs only what it adds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from math import prod

from lowering.fusion.common_space import in_common_space
from lowering.fusion.written import Written
from lowering.plan.nests.analysis import (
    NestAnalysis,
    analyze,
    nest_accumulated,
    nest_conditions,
    nest_expressions,
    nest_loads,
    nest_size,
    nest_stores,
    roots_of,
)
from lowering.plan.nests.boxes import box_of, is_within
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    CallNest,
    MapNest,
    Nest,
    ReduceNest,
    Signal,
    Store,
    is_at,
    space_index,
    without_ones,
)
from lowering.plan.nests.rewriting import map_nest, map_stores
from lowering.plan.nests.static_places import Indices, Places, has_element_of_its_own
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, Expr, const, select
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import subexpressions, substitution

MAX_EXPRESSIONS = 600
"""Scalar expressions of one nest: bounds the code of a kernel, and the time to plan and compile it.
"""


class FusionBuilder:
    """A nest under construction: a base, what was fused with it since, and its stores by buffer."""

    __slots__ = (
        "_accumulators",
        "_expressions",
        "_read",
        "_signals",
        "_stores",
        "_written",
        "base",
        "max_size",
        "stores",
        "unforwarded",
    )

    def __init__(self, nest: Nest) -> None:
        self.rebase(nest, nest_size(nest))

    def rebase(self, nest: Nest, max_size: int) -> None:
        """Start again from a nest of at most `max_size` expressions."""
        self.base = nest
        self.max_size = max_size
        self.stores = {store.buffer: store for store in nest_stores(nest)}
        self.unforwarded: set[Buffer] = set()  # stored, but read where it was not
        self._written: dict[Buffer, Written] = {}  # by buffer that two nests access
        self._read: dict[Buffer, Places] | None = None  # by all loads that are left
        self._accumulators: list[Accumulator] = []
        self._stores: list[Store] = []
        self._signals: list[Signal] = []
        self._expressions: set[Expr] | None = None  # counted once there may be too many

    def _last_of_each(self, stores: Sequence[Store]) -> tuple[Store, ...]:
        """The stores without those that others replace."""
        found: list[Store] = []
        seen: set[tuple[Buffer, Indices]] = set()
        for store in stores:
            place = (store.buffer, store.indices)
            if store.buffer not in self._written:
                found.append(store)
            elif place not in seen:
                seen.add(place)
                found += self._written[store.buffer].stores_at(store.indices)
        return tuple(found)

    def stores_any(self, resources: Set[Hashable]) -> bool:
        """Whether some of these are buffers that are stored."""
        if isinstance(self.base, CallNest):
            return not resources.isdisjoint(self.base.results)
        return not self.stores.keys().isdisjoint(resources)

    def build(self) -> Nest:
        """The nest with all that was fused."""
        if self._stores or self._signals:
            nest = self.base
            assert isinstance(nest, (MapNest, ReduceNest))
            stores = (*nest.stores, *self._stores)
            if self._written:
                stores = self._last_of_each(stores)
            signals = (*nest.signals, *self._signals)
            if isinstance(nest, ReduceNest):
                folds = (*nest.accumulators, *self._accumulators)
                nest = ReduceNest(nest.space, nest.loop, folds, stores, signals, nest.predicates)
            else:
                nest = MapNest(nest.space, stores, signals, nest.predicates)
            self.base, self._accumulators, self._stores, self._signals = nest, [], [], []
        return self.base

    def fuse(self, second: Nest, parts: bool) -> bool:
        """Fuse another nest with this one, if that is possible; with `parts`, also maps that are
        parts of a common space.
        """
        if not isinstance(second, (MapNest, ReduceNest)):
            return False
        if self.base.predicates != second.predicates:
            return False
        if self._fuse_points(second):
            return True
        if not parts or type(second) is not MapNest or type(self.base) is not MapNest:
            return False
        return self._fuse_parts(second)

    def _fuse_parts(self, second: MapNest) -> bool:
        """Fuse a map as another part of a common space."""
        if prod(self.base.space) == prod(second.space) == 1:
            return False
        known = analyze(second)
        if self.max_size + len(known.expressions) > MAX_EXPRESSIONS:
            return False
        if not (self.stores_any(known.reads | known.writes) or self.reads_any(known.reads)):
            return False
        whole = self.build()
        assert isinstance(whole, MapNest)
        for placed, added in in_common_space(whole, second):
            if placed is whole:
                if self._fuse_points(added):
                    return True
                continue
            together = FusionBuilder(placed)
            if together._fuse_points(added):
                left = self.unforwarded | together.unforwarded
                self.rebase(together.build(), together.max_size)
                self.unforwarded = left
                return True
        return False

    def _fuse_points(self, second: MapNest | ReduceNest) -> bool:
        """Fuse a nest whose points are points of this one."""
        first = self.base
        if first.space != second.space:
            if type(second) is not MapNest or without_ones(first.space) != without_ones(
                second.space
            ):
                return False
            if type(first) is MapNest and len(second.space) < len(first.space):
                whole = self.build()
                assert isinstance(whole, MapNest)
                self.rebase(_over(second.space, whole), self.max_size)
                first = self.base
            else:
                second = _over(first.space, second)
        known = analyze(second)
        if not isinstance(first, (MapNest, ReduceNest)) or not self._may_store(second, known):
            return False
        if second.signals and nest_conditions(self.build()) & nest_conditions(second):
            return False
        values = self._forwarded(second, known)
        if values is None:
            return False
        size = len(known.expressions)
        if isinstance(second, ReduceNest):
            # forwarded values would have to be renumbered inside
            if values or not isinstance(first, ReduceNest) or first.loop != second.loop:
                return False
            second = _renumbered(second, len(first.accumulators) + len(self._accumulators))
            accumulators = second.accumulators
            return self._append(size, accumulators, second.stores, second.signals, known.loads)
        if not values:
            return self._append(size, (), second.stores, second.signals, known.loads)
        left = [l for l in known.loads if l not in values or l.buffer in self.unforwarded]
        of = substitution(values)
        signals = [replace(signal, value=of(signal.value)) for signal in second.signals]
        own_point = space_index(first.space)
        stores = [
            Store(store.buffer, own_point, of(store.value))
            if store.indices is own_point and store.guard is None  # most are; the index stays
            else map_stores((store,), of)[0]
            for store in second.stores
        ]
        return self._append(size, (), stores, signals, left)

    def _forwarded(
        self, nest: MapNest | ReduceNest, second: NestAnalysis
    ) -> dict[Expr, Expr] | None:
        """The value of each load of what is stored; None if one reads what another point stores."""
        values: dict[Expr, Expr] = {}
        stores = self.stores
        if stores.keys().isdisjoint(second.reads):
            return values
        own_point = space_index(self.base.space)
        left: set[Buffer] = set()
        for load in second.loads:
            store = stores.get(load.buffer)
            if store is None:
                continue
            if (
                load.guard is None
                and store.guard is None
                and load.indices == store.indices
                and is_at(own_point, store.indices)
            ):
                values[load] = store.value
                continue
            if self._are_moved(load.indices):
                return None
            written, box = self._written_to(load.buffer), box_of(load.guard)
            if not written.places.are_apart_from(load.indices, box):
                return None
            value = written.value(load)
            if value is None:
                left.add(load.buffer)
                continue
            boxes = [*written.places.boxes[load.indices], box]
            if not has_element_of_its_own(self.base.space, load.indices, boxes):
                return None
            if load in subexpressions((value,)):
                left.add(load.buffer)
            if load.guard is not None and not _is_read_for_stores(load, nest):
                value = select(load.guard, value, const(0, load.dtype))
            values[load] = value
        self.unforwarded |= left
        return values

    def _are_moved(self, indices: Indices) -> bool:
        """Whether the place of an access depends on what this nest stores."""
        parts = subexpressions(indices)
        return any(type(part) is Load and part.buffer in self.stores for part in parts)

    def _may_store(self, second: Nest, known: NestAnalysis) -> bool:
        """Whether the stores of another nest reach no element that this one stores or reads, but
        for those that the same point stores or reads before.
        """
        written = self.stores_any(known.writes)
        if not written and not self.reads_any(known.writes):
            return True
        if not isinstance(self.base, (MapNest, ReduceNest)) or not isinstance(second, MapNest):
            return False
        space = self.base.space
        for store in second.stores:
            places = []
            if (
                prod(space) > 1 and store.buffer in self._loads()
            ):  # one point reads before it stores
                places.append(self._loads()[store.buffer])
            if store.buffer in self.stores:
                places.append(self._written_to(store.buffer).places)
            if places and self._are_moved(store.indices):
                return False
            if not all(_may_replace(store, place, space) for place in places):
                return False
        return True

    def reads_any(self, resources: Set[Hashable]) -> bool:
        """Whether some of these are buffers that are read."""
        return not self._loads().keys().isdisjoint(resources)

    def _loads(self) -> dict[Buffer, Places]:
        """The places of all loads, by buffer."""
        if self._read is None:
            self._read = {}
            self._add_loads(nest_loads(self.build()))
        return self._read

    def _add_loads(self, loads: Sequence[Load]) -> None:
        if self._read is not None:
            for load in loads:
                self._read.setdefault(load.buffer, Places()).add(load.indices, box_of(load.guard))

    def _written_to(self, buffer: Buffer) -> Written:
        """The stores to a buffer."""
        if buffer not in self._written:
            self._written[buffer] = Written()
            for store in (*nest_stores(self.base), *self._stores):
                if store.buffer is buffer:
                    self._written[buffer].add(store)
        return self._written[buffer]

    def _append(
        self,
        size: int,
        accumulators: Sequence[Accumulator],
        stores: Sequence[Store],
        signals: Sequence[Signal],
        loads: Sequence[Load],
    ) -> bool:
        """Append these, of `size` expressions, unless that makes too many."""
        if self._expressions is None and self.max_size + size <= MAX_EXPRESSIONS:
            self.max_size += size
        elif not self._add_expressions(roots_of(accumulators, stores, signals)):
            return False
        self._add_loads(loads)
        self._accumulators += accumulators
        self._stores += stores
        self._signals += signals
        for store in stores:
            self.stores[store.buffer] = store
            if store.buffer in self._written:
                self._written[store.buffer].add(store)
        return True

    def _add_expressions(self, roots: Sequence[Expr]) -> bool:
        """Count the expressions below new roots exactly, and add them unless they are too many."""
        if self._expressions is None:
            self._expressions = set(nest_expressions(self.build()))
        added = subexpressions(roots, self._expressions)
        fit = len(self._expressions) <= MAX_EXPRESSIONS
        if not fit:
            self._expressions.difference_update(added)
        self.max_size = len(self._expressions)
        return fit


def _may_replace(store: Store, places: Places, space: tuple[int, ...]) -> bool:
    """Whether a store reaches no element at these places, but for that of its own point."""
    box = box_of(store.guard)
    if not places.are_apart_from(store.indices, box):
        return False
    there = places.boxes.get(store.indices)
    return there is None or has_element_of_its_own(space, store.indices, [*there, box])


def _is_read_for_stores(load: Load, nest: Nest) -> bool:
    """Whether a load is made wherever the nest stores, so that its value is of no use elsewhere."""
    box = box_of(load.guard)
    return type(nest) is MapNest and all(
        is_within(box_of(store.guard), box) for store in nest.stores
    )


def _over(space: tuple[int, ...], nest: MapNest) -> MapNest:
    """The nest over a space that differs from its own in axes of one point."""
    numbers = (number for number, extent in enumerate(space) if extent != 1)
    axes: dict[Expr, Expr] = {
        Axis.make(old, extent): Axis.make(next(numbers), extent)
        for old, extent in enumerate(nest.space)
        if extent != 1
    }
    axes |= {Axis.make(old, 1): const(0) for old, extent in enumerate(nest.space) if extent == 1}
    of = substitution(axes)
    signals = tuple([replace(signal, value=of(signal.value)) for signal in nest.signals])
    return MapNest(space, map_stores(nest.stores, of), signals, nest.predicates)


def _renumbered(nest: ReduceNest, shift: int) -> ReduceNest:
    """The nest with its accumulators numbered from `shift`."""
    replacement: dict[Expr, Expr] = {
        expr: Accumulated.make(expr.number + shift, expr.dtype) for expr in nest_accumulated(nest)
    }
    shifted = map_nest(nest, replacement)
    assert isinstance(shifted, ReduceNest)
    return shifted
