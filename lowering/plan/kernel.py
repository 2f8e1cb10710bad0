"""Kernel: what one kernel node computes, as data: loop nests over scalar expressions.

    Kernel := Nest+                      nests of one kernel are independent: in no order
    Nest   := MapNest | ReduceNest | RowNest | ScanNest | ScatterNest | PrintNest

Axes 0..n-1 of an expression are those of the nest's `space`; a reduction's loop axes follow.
Every expression of a nest reads before any store of the same iteration point is made. A nest whose
`predicates` do not all hold does nothing: its flags are read once, before all else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lowering.plan.buffer import Buffer
from tracegraph.ir.op import Combiner
from tracegraph.ir.record import record
from tracegraph.ir.scalar import Expr


@record
class Analyzed:
    """Base of nests: keeps the analysis of a nest, which stays valid because nests are frozen."""

    analysis: Any = field(default=None, init=False, repr=False)  # NestAnalysis


@record
class Store:
    """buffer[indices] = value, where the guard holds (None: everywhere)."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    guard: Expr | None = None


@record
class SetCondition:
    """Sets the condition of a conditional node: to 0 or 1 from a bool, to the branch from an
    integer.

    Stands only in a nest whose space has one point. Integers arrive clamped to the branches.
    """

    condition: int
    value: Expr


@record
class Publish:
    """Shows the host how far a loop is: the value, an integer, becomes the count of a monitor.

    `monitor` counts within `Plan.monitors`. Stands only in a nest whose space has one point.
    """

    monitor: int
    value: Expr


@record
class Require:
    """Reports a failure where the value, a bool, is false; the run's first one is raised.

    `failure` counts within `Plan.failures`. Stands only in a nest whose space has one point.
    """

    failure: int
    value: Expr


Signal = SetCondition | Publish | Require
"""What one thread tells the graph or the host."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Holds while the one element of `flag` is `value`.

    No nest of the same kernel stores to the flag: its blocks start at different times.
    """

    flag: Buffer
    value: bool | int


@record
class MapNest(Analyzed):
    """For every point of the space: the stores. In-place is allowed where a point reads, of the
    buffers that the nest stores to, only the element it stores.
    """

    space: tuple[int, ...]
    stores: tuple[Store, ...]
    signals: tuple[Signal, ...] = ()
    predicates: tuple[Predicate, ...] = ()


@record
class Accumulator:
    """A fold of `value` over the loop axes. With `arg`, the row-major position in the loop axes of
    the first extreme element (or of the first NaN), as int64.
    """

    combiner: Combiner
    value: Expr
    arg: bool = False


@record
class ReduceNest(Analyzed):
    """For every point of the space: fold each accumulator over the loop axes (numbered after those
    of the space), then do the stores, whose expressions may use `Accumulated`.
    """

    space: tuple[int, ...]
    loop: tuple[int, ...]
    accumulators: tuple[Accumulator, ...]
    stores: tuple[Store, ...]
    signals: tuple[Signal, ...] = ()
    predicates: tuple[Predicate, ...] = ()


@record
class Pass:
    """One pass over the loop axes of a `RowNest`: folds accumulators, and stores at every step.

    Its expressions may use `Accumulated` of earlier passes. At each step it reads before it stores,
    and what an earlier pass stored it may read at its own step.
    """

    accumulators: tuple[Accumulator, ...]
    stores: tuple[Store, ...]


@record
class RowNest(Analyzed):
    """For every point of the space: the passes over the loop axes (numbered after those of the
    space), one after the other, then the stores, as in `ReduceNest`.

    Accumulators are numbered through all passes.
    """

    space: tuple[int, ...]
    loop: tuple[int, ...]
    passes: tuple[Pass, ...]
    stores: tuple[Store, ...]
    signals: tuple[Signal, ...] = ()
    predicates: tuple[Predicate, ...] = ()


@record
class ScanNest(Analyzed):
    """A running fold along `axis` of the space: store.value is folded and the running result
    stored.
    """

    space: tuple[int, ...]
    axis: int
    combiner: Combiner
    store: Store
    predicates: tuple[Predicate, ...] = ()


@record
class ScatterNest(Analyzed):
    """For every point: target = combine(target, value), or target = value without a combiner.

    The first `repeats` axes run in order, one after the other, since they may hit one element
    twice; the remaining axes are independent. With `repeats` 0 all points are.
    """

    space: tuple[int, ...]
    repeats: int
    combiner: Combiner | None
    store: Store
    predicates: tuple[Predicate, ...] = ()


@record
class PrintedArray:
    """An argument of a print: the value at every point of a shape, by axes numbered from 0."""

    shape: tuple[int, ...]
    value: Expr


@record
class PrintNest(Analyzed):
    """Sends arrays to the host, to be printed in the format of print `site` (in `Plan.prints`).

    The space has one point. Print nests of a graph run in the order of its nodes, and never two in
    one kernel.
    """

    space: tuple[int, ...]
    site: int
    arguments: tuple[PrintedArray, ...]
    predicates: tuple[Predicate, ...] = ()


Nest = MapNest | ReduceNest | RowNest | ScanNest | ScatterNest | PrintNest


@record
class Kernel:
    """The nests that one launch runs."""

    name: str
    nests: tuple[Nest, ...]
