"""Kernel: what one kernel node computes, as data: loop nests over scalar expressions.

    Kernel := Nest+                      the nests of a kernel are independent and unordered
    Nest   := MapNest | ReduceNest | RowNest | ScanNest | ScatterNest | PrintNest | CallNest

Axes 0..n-1 of an expression are those of the nest's `space`; a reduction's loop axes follow.
At each iteration point, all expressions are evaluated before any store. A nest whose `predicates`
do not all hold does nothing; its flags are read once, first.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import Any

from lowering.plan.nests.buffer import Buffer
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Combiner
from tracegraph.ir.record import record
from tracegraph.ir.scalar import Axis, Const, Expr, const


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
    """Sets the condition of a conditional node: 0 or 1 from a bool, a branch from an integer.

    Only in nests with one point. Integers are clamped to the branches before.

    `agreed` says that it is of a loop which the devices of a mesh leave together: the value is 0 if
    one of them is to stop. The stop flag of a device ends such a loop only if it says "at once".
    """

    condition: int
    value: Expr
    agreed: bool = False


@record
class Publish:
    """Publishes the progress of a loop to the host: the value, an integer, is a monitor's count.

    `monitor` is an index into `Plan.monitors`. Only in nests with one point.
    """

    monitor: int
    value: Expr


@record
class Require:
    """Reports a failure if the value, a bool, is false. The first failure of a run is raised.

    `failure` is an index into `Plan.failures`. Only in nests with one point.
    """

    failure: int
    value: Expr


Signal = SetCondition | Publish | Require
"""What one thread signals to the graph or the host."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Holds if the one element of `flag` equals `value`.

    No nest of the same kernel stores to the flag, because its blocks start at different times. With
    `lanes`, the flag says whether any of these lanes takes a branch, and each could as well decide
    for itself.
    """

    flag: Buffer
    value: bool | int
    lanes: tuple[int, ...] | None = None


def exclusive(first: tuple[Predicate, ...], second: tuple[Predicate, ...]) -> bool:
    """Whether predicates of two nests never hold together: one flag is to have two values."""
    return any(p.flag is q.flag and p.value != q.value for p in first for q in second)


@record
class MapNest(Analyzed):
    """Map: at every point of the space, the stores, one after the other.

    A nest may read a buffer that it stores to, if each point reads there only what it stores.
    """

    space: tuple[int, ...]
    stores: tuple[Store, ...]
    signals: tuple[Signal, ...] = ()
    predicates: tuple[Predicate, ...] = ()


@record
class Accumulator:
    """A fold of `value` over the loop axes.

    With `arg`, the row-major position of the first extreme element, or of the first NaN, as int64.
    """

    combiner: Combiner
    value: Expr
    arg: bool = False


@record
class ReduceNest(Analyzed):
    """Reduction: at every point of the space, fold the accumulators over the loop axes, then store.

    The loop axes are numbered after those of the space. Stores may use `Accumulated`.
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

    Its expressions may use `Accumulated` of earlier passes. Each step reads before it stores, and
    may read what an earlier pass stored at the same step.
    """

    accumulators: tuple[Accumulator, ...]
    stores: tuple[Store, ...]


@record
class RowNest(Analyzed):
    """Row-wise passes: at every point of the space, the passes in order, then the stores.

    Axes are numbered as in `ReduceNest`, accumulators through all passes.
    """

    space: tuple[int, ...]
    loop: tuple[int, ...]
    passes: tuple[Pass, ...]
    stores: tuple[Store, ...]
    signals: tuple[Signal, ...] = ()
    predicates: tuple[Predicate, ...] = ()


@record
class ScanNest(Analyzed):
    """Scan: folds store.value along `axis` of the space, and stores each partial result."""

    space: tuple[int, ...]
    axis: int
    combiner: Combiner
    store: Store
    predicates: tuple[Predicate, ...] = ()


@record
class ScatterNest(Analyzed):
    """Scatter: at every point, target = combine(target, value), or target = value without one.

    The first `repeats` axes may hit an element twice. They run sequentially, or, with `any_order`,
    in parallel with atomic updates. The others are independent. `grouped`: along the first axis,
    the points that hit one element are consecutive, and those that a guard excludes come last.
    """

    space: tuple[int, ...]
    repeats: int
    combiner: Combiner | None
    store: Store
    predicates: tuple[Predicate, ...] = ()
    any_order: bool = False
    grouped: bool = False


@record
class PrintedArray:
    """An argument of a print: a value at every point of a shape."""

    shape: tuple[int, ...]
    value: Expr


@record
class PrintNest(Analyzed):
    """Print: sends arrays to the host, to be printed in the format `Plan.prints[site]`.

    The space has one point. The print nests of a graph run in the order of its nodes. A kernel has
    at most one.
    """

    space: tuple[int, ...]
    site: int
    arguments: tuple[PrintedArray, ...]
    predicates: tuple[Predicate, ...] = ()


@record
class CallNest(PrintNest):
    """Callback: sends arrays as a print does, to the function `Plan.callbacks[site]`.

    If that answers, the nest waits, and stores the arrays of the answer in `results`, whole.
    """

    results: tuple[Buffer, ...] = ()


Nest = MapNest | ReduceNest | RowNest | ScanNest | ScatterNest | PrintNest


@record
class Kernel:
    """The nests that one launch runs."""

    name: str
    nests: tuple[Nest, ...]


@lru_cache(maxsize=1024)
def space_index(space: tuple[int, ...], first: int = 0) -> tuple[Expr, ...]:
    """The index of a point, by axis numbers from `first`; 0 along axes of one element."""
    return tuple(
        const(0) if extent == 1 else Axis.make(first + number, extent)
        for number, extent in enumerate(space)
    )


def without_ones(space: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of a space other than 1.

    >>> without_ones((1, 3, 1, 4))
    (3, 4)
    """
    return tuple([extent for extent in space if extent != 1])


def is_at(point: tuple[Expr, ...], indices: tuple[Expr, ...]) -> bool:
    """Whether indices are those of a point, but for constants, as along axes of one point."""
    if indices == point:
        return True
    axes = [index for index in indices if type(index) is not Const]
    return axes == [index for index in point if type(index) is not Const]
