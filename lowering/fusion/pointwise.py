"""Pointwise fusion: nests of one space become one nest, whose points forward values in registers.

Spaces are the same if they differ in axes of one point only. A value that one nest stores at its
own point, and another reads there, is not loaded again. What is fused is kept in lists until the
nest is needed, so that each fusion costs only what it adds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set

from lowering.plan.kernel import (
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
from lowering.plan.nest_analysis import (
    NestAnalysis,
    analyze,
    nest_accumulated,
    nest_conditions,
    nest_expressions,
    nest_size,
    nest_stores,
    roots_of,
)
from lowering.plan.nest_rewriting import map_nest, map_stores
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, Expr, const
from tracegraph.ir.scalar_values import Accumulated
from tracegraph.ir.subexpressions import subexpressions, substitution

MAX_EXPRESSIONS = 600
"""Scalar expressions of one nest: bounds the code of a kernel, and the time to plan and compile it.
"""


class FusionBuilder:
    """A nest under construction: a base, what was fused with it since, and its stores by buffer."""

    __slots__ = (
        "_accumulators",
        "_expressions",
        "_signals",
        "_stores",
        "base",
        "max_size",
        "stores",
    )

    def __init__(self, nest: Nest) -> None:
        self.rebase(nest, nest_size(nest))

    def rebase(self, nest: Nest, max_size: int) -> None:
        """Start again from a nest of at most `max_size` expressions."""
        self.base = nest
        self.max_size = max_size
        self.stores = {store.buffer: store for store in nest_stores(nest)}
        self._accumulators: list[Accumulator] = []
        self._stores: list[Store] = []
        self._signals: list[Signal] = []
        self._expressions: set[Expr] | None = None  # counted once there may be too many

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
            stores, signals = (*nest.stores, *self._stores), (*nest.signals, *self._signals)
            if isinstance(nest, ReduceNest):
                folds = (*nest.accumulators, *self._accumulators)
                nest = ReduceNest(nest.space, nest.loop, folds, stores, signals, nest.predicates)
            else:
                nest = MapNest(nest.space, stores, signals, nest.predicates)
            self.base, self._accumulators, self._stores, self._signals = nest, [], [], []
        return self.base

    def fuse(self, second: Nest) -> bool:
        """Fuse another nest with this one, if that is possible."""
        first = self.base
        if not isinstance(second, (MapNest, ReduceNest)):
            return False
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
        if first.predicates != second.predicates:
            return False
        known = analyze(second)
        if not isinstance(first, (MapNest, ReduceNest)) or self.stores_any(known.writes):
            return False
        if second.signals and nest_conditions(self.build()) & nest_conditions(second):
            return False
        values = self._forwarded(known)
        if values is None:
            return False
        size = len(known.expressions)
        if isinstance(second, ReduceNest):
            # forwarded values would have to be renumbered inside
            if values or not isinstance(first, ReduceNest) or first.loop != second.loop:
                return False
            second = _renumbered(second, len(first.accumulators) + len(self._accumulators))
            return self._append(size, second.accumulators, second.stores, second.signals)
        if not values:
            return self._append(size, (), second.stores, second.signals)
        of = substitution(values)
        signals = [replace(signal, value=of(signal.value)) for signal in second.signals]
        own_point = space_index(first.space)
        stores = [
            Store(store.buffer, own_point, of(store.value))
            if store.indices is own_point and store.guard is None  # most are; the index stays
            else map_stores((store,), of)[0]
            for store in second.stores
        ]
        return self._append(size, (), stores, signals)

    def _forwarded(self, second: NestAnalysis) -> dict[Expr, Expr] | None:
        """The value of each load of what is stored; None if one reads another point."""
        values: dict[Expr, Expr] = {}
        stores = self.stores
        if stores.keys().isdisjoint(second.reads):
            return values
        own_point = space_index(self.base.space)
        for load in second.loads:
            store = stores.get(load.buffer)
            if store is None:
                continue
            if load.guard is not None or load.indices != store.indices:
                return None
            if store.guard is not None or not is_at(own_point, store.indices):
                return None
            values[load] = store.value
        return values

    def _append(
        self,
        size: int,
        accumulators: Sequence[Accumulator],
        stores: Sequence[Store],
        signals: Sequence[Signal],
    ) -> bool:
        """Append these, of `size` expressions, unless that makes too many."""
        if self._expressions is None and self.max_size + size <= MAX_EXPRESSIONS:
            self.max_size += size
        elif not self._add_expressions(roots_of(accumulators, stores, signals)):
            return False
        self._accumulators += accumulators
        self._stores += stores
        self._signals += signals
        for store in stores:
            self.stores[store.buffer] = store
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
