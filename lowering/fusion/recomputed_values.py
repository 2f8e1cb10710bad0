"""Values that nests store, as expressions that other nests can compute."""

from __future__ import annotations

from lowering.draft.context import Context
from lowering.fusion.dead_stores import without_dead
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.fusion.row_profitability import adds_uncoalesced
from lowering.fusion.row_values import row_values, stored_values, storing
from lowering.fusion.short_folds import long_product, written_out
from lowering.plan.nests.access_patterns import steps_are_shared
from lowering.plan.nests.analysis import (
    as_rows,
    loads,
    nest_accumulated,
    nest_loads,
    nest_reads,
    nest_size,
    nest_stores,
    nest_writes,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, Store, space_index
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.target.target import FusionPolicy
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Const, Expr, both, const, select
from tracegraph.ir.scalar_values import Accumulated, AsIndex, Load
from tracegraph.ir.subexpressions import subexpressions, substitution
from tracegraph.ir.types import ArrayType

MAX_VALUE = 200
"""Expressions of a value that is computed again, at most: bounds the code of each reader."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """What a store writes, as an expression of the axes that index it, in the order of the axes of
    the buffer.
    """

    axes: tuple[Axis | None, ...]  # None along an axis of one element
    expression: Expr
    reads: frozenset[Buffer]
    of_rows: frozenset[Buffer] = frozenset()  # what the nest itself stores of its folds
    stores: tuple[Store, ...] = ()  # of these, what it does not store yet
    is_long: bool = False  # for threads that have rows of their own

    def stored_by(self, nest: Nest) -> Nest:
        """The nest with the further stores."""
        if not self.stores:
            return nest
        assert isinstance(nest, (ReduceNest, RowNest))
        return storing(nest, self.stores)

    def instead_of(self, load: Load) -> Expr:
        """The value that a load of the buffer gives, which is 0 where its guard does not hold."""
        pairs = zip(self.axes, load.indices, strict=True)
        moved = substitution({axis: index for axis, index in pairs if axis is not None})
        value = moved(self.expression)
        if load.guard is None:
            return value
        guarded: dict[Expr, Expr] = {
            each: Load.make(each.buffer, each.indices, both(load.guard, each.guard))
            for each in loads((value,))
        }
        return select(load.guard, substitution(guarded)(value), const(0, load.dtype))


def stored_value(nest: Nest, buffer: Buffer, context: Context) -> StoredValue | None:
    """The value that a nest stores at every place of a buffer, as an expression."""
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)) or nest.predicates:
        return None
    stores = [store for store in nest_stores(nest) if store.buffer is buffer]
    if len(stores) != 1:
        return None
    (store,) = stores
    axes = _axes(store)
    if axes is None:
        return None
    value: Expr | None = store.value
    if not isinstance(nest, MapNest):
        value = written_out(nest, store)
        if value is None and context.target.contractions.tiles:
            product = long_product(nest, store)
            if product is not None:
                return _checked(StoredValue(axes, product, _reads(product), is_long=True))
        if value is None:
            return _with_row_values(nest, store.value, axes, context)
    return None if value is None else _checked(StoredValue(axes, value, _reads(value)))


def _with_row_values(
    nest: ReduceNest | RowNest, value: Expr, axes: tuple[Axis | None, ...], context: Context
) -> StoredValue | None:
    """The value with loads of what it takes from the folds of its row; None if it is of the row."""
    of_rows = row_values(nest, value)
    if not of_rows or of_rows == (value,):
        return None
    known = stored_values(nest)
    loads_of: dict[Expr, Expr] = {}
    stores: list[Store] = []
    point = space_index(nest.space)
    for part in of_rows:
        if part in known:
            loads_of[part] = known[part]
        else:
            buffer = context.buffer("scratch", ArrayType(part.dtype, nest.space))
            stores.append(Store(buffer, point, part))
            loads_of[part] = Load.make(buffer, point)
    made = substitution(loads_of)(value)
    own = _reads(*loads_of.values())
    found = _checked(StoredValue(axes, made, _reads(made), own, tuple(stores)))
    if found is None:
        context.give_back([store.buffer for store in stores])
    return found


def _reads(*values: Expr) -> frozenset[Buffer]:
    return frozenset([load.buffer for load in loads(values)])


def _checked(value: StoredValue) -> StoredValue | None:
    """The value, unless other nests cannot compute it."""
    below = subexpressions((value.expression,))
    if len(below) > MAX_VALUE or any(type(e) is Accumulated for e in below):
        return None
    if any(type(e) is Axis and e not in value.axes for e in below):
        return None
    if any(type(e) is Load and _is_gathered(e) for e in below):
        return None
    return value


def _is_gathered(load: Load) -> bool:
    """Whether an index is loaded or computed: gathers have a cost of their own (`gather_costs`)."""
    return any(type(e) is AsIndex for e in subexpressions(load.indices))


def without_store(nest: Nest, buffer: Buffer) -> Nest | None:
    """The nest without its store to a buffer; None if it does nothing then."""
    rest = without_dead(nest, lambda store: store.buffer is not buffer)
    return _simplest(rest) if isinstance(rest, (ReduceNest, RowNest)) else rest


def _simplest(nest: ReduceNest | RowNest) -> Nest:
    """A map if no fold is used, a reduction if there is one pass that stores nothing."""
    passes = as_rows(nest).passes
    stores = any(each.stores for each in passes)
    if not stores and not nest_accumulated(nest):
        return MapNest(nest.space, nest.stores, nest.signals, nest.predicates)
    if isinstance(nest, ReduceNest):
        return nest
    passes = tuple([each for each in passes if each.accumulators or each.stores])
    end = (nest.stores, nest.signals, nest.predicates)
    if len(passes) == 1 and not stores:
        return ReduceNest(nest.space, nest.loop, passes[0].accumulators, *end)
    return RowNest(nest.space, nest.loop, passes, *end)


def _axes(store: Store) -> tuple[Axis | None, ...] | None:
    """The axes that index a store, if it reaches each place of its buffer once."""
    found: list[Axis | None] = []
    for index, extent in zip(store.indices, store.buffer.type.shape, strict=True):
        if type(index) is Axis and index.extent == extent and index not in found:
            found.append(index)
        elif type(index) is Const and extent == 1:
            found.append(None)
        else:
            return None
    return None if store.guard is not None else tuple(found)


def computing(nest: Nest, buffer: Buffer, value: StoredValue, policy: FusionPolicy) -> Nest | None:
    """A nest that computes the value where this one loads it; None if that is not possible, or
    adds accesses that are not coalesced.
    """
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)):
        return None
    if any(predicate.flag is buffer for predicate in nest.predicates):
        return None
    values: dict[Expr, Expr] = {}
    for load in nest_loads(nest):
        if load.buffer is buffer:
            if _is_gathered(load):
                return None
            values[load] = value.instead_of(load)
    made = map_nest(nest, values)
    assert isinstance(made, (MapNest, ReduceNest, RowNest))
    if nest_size(made) > MAX_EXPRESSIONS or not nest_writes(made).isdisjoint(nest_reads(made)):
        return None
    if value.is_long and (isinstance(made, MapNest) or not steps_are_shared(as_rows(made))):
        return None
    if isinstance(made, MapNest):
        return made
    return None if adds_uncoalesced(as_rows(made), (nest,), policy) else _simplest(made)
