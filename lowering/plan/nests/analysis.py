"""Analysis of nests: the expressions, loads, reads and writes of each, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    CallNest,
    MapNest,
    Nest,
    Pass,
    PrintNest,
    ReduceNest,
    Require,
    RowNest,
    ScatterNest,
    SetCondition,
    Signal,
    Store,
)
from tracegraph.ir.record import record, replace
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import subexpressions

_N = TypeVar("_N", bound=Nest)


def nest_stores(nest: Nest) -> tuple[Store, ...]:
    """The stores of a nest."""
    match nest:
        case MapNest(stores=stores) | ReduceNest(stores=stores):
            return stores
        case RowNest(passes=passes, stores=stores):
            return (*[store for each in passes for store in each.stores], *stores)
        case PrintNest():
            return ()
    return (nest.store,)


def stored_buffers(nest: Nest) -> Sequence[Buffer]:
    """The buffers that a nest stores to, once for each store."""
    if isinstance(nest, CallNest):
        return nest.results
    return [store.buffer for store in nest_stores(nest)]


def nest_accumulators(nest: Nest) -> tuple[Accumulator, ...]:
    """The accumulators of a nest, by number."""
    match nest:
        case ReduceNest(accumulators=accumulators):
            return accumulators
        case RowNest(passes=passes):
            return tuple([a for each in passes for a in each.accumulators])
    return ()


def nest_signals(nest: Nest) -> tuple[Signal, ...]:
    """The signals of a nest."""
    return nest.signals if isinstance(nest, (MapNest, ReduceNest, RowNest)) else ()


@record
class NestAnalysis:
    """The expressions of a nest, and the buffers that it accesses."""

    roots: Sequence[Expr]
    expressions: Sequence[Expr]  # all of them, operands before users
    loads: Sequence[Load]
    accumulated: Sequence[Accumulated]
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]


def analyze(nest: Nest) -> NestAnalysis:
    """The analysis of a nest, computed on the first call and kept with the nest."""
    known: NestAnalysis | None = nest.analysis
    if known is None:
        known = _analyze(nest)
        object.__setattr__(nest, "analysis", known)
    return known


def share_analysis(nest: _N, other: Nest) -> _N:
    """A new nest with the analysis of another one that has the same parts in the same order."""
    object.__setattr__(nest, "analysis", analyze(other))
    return nest


def as_rows(nest: ReduceNest | RowNest) -> RowNest:
    """A reduction as a nest of one pass."""
    if isinstance(nest, RowNest):
        return nest
    one = Pass(nest.accumulators, ())
    rows = RowNest(nest.space, nest.loop, (one,), nest.stores, nest.signals, nest.predicates)
    return share_analysis(rows, nest)


def rename_analysis(
    nest: _N, other: Nest, new: Mapping[Expr, Expr], names: Mapping[Buffer, Buffer]
) -> _N:
    """A nest made from another one by renaming buffers, with its analysis if that can be derived.

    `new` has the expressions that changed. Their order is kept unless two buffers became one: then
    nothing is derived.
    """
    known = analyze(other)
    reads = frozenset([names.get(buffer, buffer) for buffer in known.reads])
    if len(reads) == len(known.reads):
        writes = frozenset([names.get(buffer, buffer) for buffer in known.writes])
        if not new:  # only what it writes has other names
            analysis = replace(known, reads=reads, writes=writes)
        else:
            analysis = NestAnalysis(
                [new.get(expr, expr) for expr in known.roots],
                [new.get(expr, expr) for expr in known.expressions],
                [e for load in known.loads if type(e := new.get(load, load)) is Load],
                known.accumulated,
                reads,
                writes,
            )
        object.__setattr__(nest, "analysis", analysis)
    return nest


def extend_analysis(nest: _N, other: Nest, flag: Buffer) -> _N:
    """A nest that differs from another one in a flag that it reads first, with its analysis."""
    known: NestAnalysis | None = other.analysis
    if known is not None:
        object.__setattr__(nest, "analysis", replace(known, reads=known.reads | {flag}))
    return nest


def _analyze(nest: Nest) -> NestAnalysis:
    accumulators, stores, signals = _parts(nest)
    roots = roots_of(accumulators, stores, signals)
    if isinstance(nest, PrintNest):
        roots += [array.value for array in nest.arguments]
    below = subexpressions(roots)
    loads = [e for e in below if type(e) is Load]
    accumulated = [e for e in below if type(e) is Accumulated] if accumulators else []
    reads = frozenset(map(_buffer, loads))
    if nest.predicates:
        reads |= {predicate.flag for predicate in nest.predicates}
    writes = frozenset(map(_buffer, stores))
    if isinstance(nest, CallNest):
        writes = frozenset(nest.results)
    if isinstance(nest, ScatterNest) and nest.combiner is not None:
        reads |= writes
    return NestAnalysis(roots, below, loads, accumulated, reads, writes)


_buffer = attrgetter("buffer")


def _parts(nest: Nest) -> tuple[Sequence[Accumulator], Sequence[Store], Sequence[Signal]]:
    if type(nest) is MapNest:  # most are
        return (), nest.stores, nest.signals
    return nest_accumulators(nest), nest_stores(nest), nest_signals(nest)


def roots_of(
    accumulators: Sequence[Accumulator], stores: Sequence[Store], signals: Sequence[Signal]
) -> list[Expr]:
    """Every expression that these parts of a nest evaluate."""
    roots = [a.value for a in accumulators] if accumulators else []
    for store in stores:
        roots += store.indices
        roots.append(store.value)
        if store.guard is not None:
            roots.append(store.guard)
    if signals:
        roots += [signal.value for signal in signals]
    return roots


def loads(roots: Sequence[Expr]) -> list[Load]:
    """Every load below the roots."""
    return [e for e in subexpressions(roots) if type(e) is Load]


def nest_roots(nest: Nest) -> Sequence[Expr]:
    """Every expression that a nest evaluates."""
    return analyze(nest).roots


def nest_expressions(nest: Nest) -> Sequence[Expr]:
    """Every expression that a nest evaluates, operands before users."""
    return analyze(nest).expressions


def nest_size(nest: Nest) -> int:
    """How many expressions a nest evaluates."""
    return len(analyze(nest).expressions)


def nest_loads(nest: Nest) -> Sequence[Load]:
    """Every load that a nest evaluates."""
    return analyze(nest).loads


def nest_accumulated(nest: Nest) -> Sequence[Accumulated]:
    """The results of folds that a nest uses."""
    return analyze(nest).accumulated


def nest_reads(nest: Nest) -> frozenset[Buffer]:
    """Buffers that a nest reads, including its flags; a combining scatter reads its target."""
    known: NestAnalysis = nest.analysis or analyze(nest)
    return known.reads


def nest_writes(nest: Nest) -> frozenset[Buffer]:
    """Buffers that a nest stores to."""
    known: NestAnalysis = nest.analysis or analyze(nest)
    return known.writes


def nest_conditions(nest: Nest) -> set[int]:
    """Conditions that a nest sets."""
    return {s.condition for s in nest_signals(nest) if isinstance(s, SetCondition)}


def is_ordered(nest: Nest) -> bool:
    """Whether it prints, calls the host or checks: the host must see that in program order."""
    return isinstance(nest, PrintNest) or any(isinstance(s, Require) for s in nest_signals(nest))
