"""Substitution in nests: expressions replaced, buffers renamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from lowering.plan.nests.analysis import NestAnalysis, analyze, rename_analysis
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    CallNest,
    MapNest,
    Nest,
    Pass,
    PrintNest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr, both
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import substitution

_NO_NAMES: Mapping[Buffer, Buffer] = MappingProxyType({})


def map_stores(
    stores: Sequence[Store],
    of: Callable[[Expr], Expr],
    names: Mapping[Buffer, Buffer] = _NO_NAMES,
) -> tuple[Store, ...]:
    """The stores with each expression mapped by `of`, and buffers renamed."""
    return tuple(
        [
            Store(
                names.get(s.buffer, s.buffer),
                tuple(map(of, s.indices)),
                of(s.value),
                both(None if s.guard is None else of(s.guard), None),
            )
            for s in stores
        ]
    )


def map_nest(nest: Nest, replacement: Mapping[Expr, Expr]) -> Nest:
    """The nest with sub-expressions replaced."""
    if not replacement:
        return nest
    return _mapped(nest, substitution(replacement), _NO_NAMES)


def _mapped(nest: Nest, of: Callable[[Expr], Expr], names: Mapping[Buffer, Buffer]) -> Nest:
    """The nest with each expression mapped by `of`, and buffers renamed."""

    def stores_of(stores: Sequence[Store]) -> tuple[Store, ...]:
        return map_stores(stores, of, names)

    def folds_of(accumulators: Sequence[Accumulator]) -> tuple[Accumulator, ...]:
        return tuple([Accumulator(a.combiner, of(a.value), a.arg) for a in accumulators])

    if type(nest) is MapNest:  # most are
        signals = tuple([replace(s, value=of(s.value)) for s in nest.signals])
        return MapNest(nest.space, stores_of(nest.stores), signals, nest.predicates)
    if isinstance(nest, (ScanNest, ScatterNest)):
        return replace(nest, store=stores_of((nest.store,))[0])
    if isinstance(nest, CallNest):
        nest = replace(nest, results=tuple([names.get(buffer, buffer) for buffer in nest.results]))
    if isinstance(nest, PrintNest):
        return replace(nest, arguments=tuple(replace(a, value=of(a.value)) for a in nest.arguments))
    assert isinstance(nest, (ReduceNest, RowNest))
    stores = stores_of(nest.stores)
    signals = tuple([replace(s, value=of(s.value)) for s in nest.signals])
    if isinstance(nest, ReduceNest):
        folds = folds_of(nest.accumulators)
        return ReduceNest(nest.space, nest.loop, folds, stores, signals, nest.predicates)
    passes = tuple([Pass(folds_of(p.accumulators), stores_of(p.stores)) for p in nest.passes])
    return RowNest(nest.space, nest.loop, passes, stores, signals, nest.predicates)


def rename_in_nest(nest: Nest, names: Mapping[Buffer, Buffer]) -> Nest:
    """The nest with buffers renamed; the same nest if it accesses none of them."""
    keys, known = names.keys(), analyze(nest)
    reads = not keys.isdisjoint(known.reads)
    if not reads and keys.isdisjoint(known.writes):
        return nest
    new = _renamed_loads(known, names) if reads else _Changed()
    renamed = _mapped(nest, new.__getitem__, names)
    if not keys.isdisjoint([predicate.flag for predicate in nest.predicates]):
        flags = [replace(p, flag=names.get(p.flag, p.flag)) for p in nest.predicates]
        renamed = replace(renamed, predicates=tuple(flags))
    return rename_analysis(renamed, nest, new, names)


class _Changed(dict[Expr, Expr]):
    """New expressions by old ones; the identity for those that it lacks."""

    def __missing__(self, expr: Expr) -> Expr:
        return expr


def _renamed_loads(known: NestAnalysis, names: Mapping[Buffer, Buffer]) -> _Changed:
    """The expressions of a nest that change when buffers are renamed, with the new ones."""
    new = _Changed()
    of, untouched = new.__getitem__, new.keys().isdisjoint
    for expr in known.expressions:
        children = expr.children
        made = expr.rebuilt(of) if children and not untouched(children) else expr
        if type(made) is Load and made.buffer in names:
            made = Load.make(names[made.buffer], made.indices, made.guard)
        if made is not expr:
            new[expr] = made
    return new
