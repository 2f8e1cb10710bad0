"""Merging nests into kernels: a node of a graph costs about a microsecond, however little it does.

A nest joins an earlier kernel
- *point by point*: it reads what a nest of the same space stored, at the very same point, so that
  the value is forwarded in a register;
- *side by side*: it is independent of all that the kernel does, and has the same space or is small.

No kernel prints or checks twice: those stay in order.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lowering.edges import Access, Resource, access, nest_access
from lowering.kernel import (
    Accumulator,
    MapNest,
    Nest,
    PrintNest,
    ReduceNest,
    ScatterNest,
)
from lowering.stage import (
    Block,
    KernelStage,
    Stage,
    loads,
    map_nest,
    nest_conditions,
    nest_reads,
    nest_roots,
    nest_stores,
    nest_writes,
    space_index,
)
from tracegraph.scalar import Accumulated, Expr, Load, subexpressions

WINDOW = 12
"""How many of the latest stages are tried: keeps merging linear."""

MAX_EXPRESSIONS = 600
"""Scalar expressions of one nest."""

MAX_NESTS = 8

SMALL = 1 << 16
"""Points of a nest that may run beside another of a different space."""


def fuse(block: Block) -> None:
    """Merge the nests of a block's kernels, in place."""
    merged = _Merged()
    for stage in block.stages:
        if isinstance(stage, KernelStage):
            for nest in stage.nests:
                merged.place(nest, stage)
        else:
            merged.append(stage)
    block.stages = merged.stages


class _Merged:
    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.written: dict[Resource, int] = {}  # position of the last stage that wrote, or read
        self.read: dict[Resource, int] = {}

    def append(self, stage: Stage) -> None:
        self.stages.append(stage)
        self._note(len(self.stages) - 1, access(stage))

    def _note(self, position: int, touched: Access) -> None:
        for positions, resources in ((self.read, touched.reads), (self.written, touched.writes)):
            for resource in resources:
                positions[resource] = max(positions.get(resource, -1), position)

    def place(self, nest: Nest, stage: KernelStage) -> None:
        touched = nest_access(nest)
        after = max((self.written.get(r, -1) for r in touched.reads), default=-1)
        free_of = max(
            (max(self.read.get(r, -1), self.written.get(r, -1)) for r in touched.writes), default=-1
        )
        first = max(after, free_of + 1, len(self.stages) - WINDOW, 0)
        for position in range(first, len(self.stages)):
            kernel = self.stages[position]
            if not isinstance(kernel, KernelStage):
                continue
            dependent = position == after
            if _join(kernel, nest, dependent):
                kernel.sources = tuple(dict.fromkeys((*kernel.sources, *stage.sources)))
                self._note(position, touched)
                return
        self.stages.append(KernelStage([nest], stage.sources))
        self._note(len(self.stages) - 1, touched)


def _join(kernel: KernelStage, nest: Nest, dependent: bool) -> bool:
    for k, other in enumerate(kernel.nests):
        needed = nest_reads(nest) & {
            b for n in kernel.nests if n is not other for b in nest_writes(n)
        }
        if needed:
            continue
        merged = _merge(other, nest)
        if merged is not None:
            kernel.nests[k] = merged
            return True
    if dependent or not _small(nest) or len(kernel.nests) >= MAX_NESTS:
        return False
    if any(isinstance(n, ScatterNest) and n.repeats for n in (nest, *kernel.nests)):
        return False  # a serial nest would hold up the others
    kernel.nests.append(nest)
    return True


def _small(nest: Nest) -> bool:
    if isinstance(nest, PrintNest):
        return sum(prod(array.shape) for array in nest.arguments) <= SMALL
    return prod((*nest.space, *(nest.loop if isinstance(nest, ReduceNest) else ()))) <= SMALL


def _merge(first: Nest, second: Nest) -> Nest | None:
    """One nest that does both, or None."""
    if first.space != second.space or not isinstance(first, MapNest | ReduceNest):
        return None
    if nest_writes(first) & nest_writes(second) or nest_conditions(first) & nest_conditions(second):
        return None
    if not isinstance(second, MapNest | ReduceNest):
        return None
    if isinstance(second, ReduceNest) and not isinstance(first, ReduceNest):
        return None
    forwarded = _forward(first, second)
    if forwarded is None:
        return None
    result = _union(first, forwarded)
    if result is None or len(subexpressions(nest_roots(result))) > MAX_EXPRESSIONS:
        return None
    return result


def _forward(first: Nest, second: Nest) -> Nest | None:
    """`second` with what `first` stores taken from there; None if it reads that at other points."""
    stores = {store.buffer: store for store in nest_stores(first)}
    own_point = space_index(first.space)
    replacement: dict[Expr, Expr] = {}
    for load in loads(nest_roots(second)):
        store = stores.get(load.buffer)
        if store is None:
            continue
        if load.guard is not None or load.indices != own_point or store.indices != own_point:
            return None
        if store.guard is not None:
            return None
        replacement[load] = store.value
    if not replacement:
        return second
    if isinstance(second, ReduceNest) and any(
        load in replacement for load in loads([a.value for a in second.accumulators])
    ):
        return None
    if isinstance(second, ReduceNest):
        return None  # accumulators of both would have to be renumbered inside forwarded values
    return map_nest(second, replacement)


def _union(first: Nest, second: Nest) -> Nest | None:
    assert isinstance(first, MapNest | ReduceNest)
    assert isinstance(second, MapNest | ReduceNest)
    accumulators: tuple[Accumulator, ...] = ()
    if isinstance(second, ReduceNest):
        assert isinstance(first, ReduceNest)
        if first.loop != second.loop:
            return None
        shift = len(first.accumulators)
        second = _renumbered(second, shift)
        accumulators = second.accumulators
    stores = (*first.stores, *second.stores)
    signals = (*first.signals, *second.signals)
    if isinstance(first, ReduceNest):
        return replace(
            first,
            accumulators=(*first.accumulators, *accumulators),
            stores=stores,
            signals=signals,
        )
    return replace(first, stores=stores, signals=signals)


def _renumbered(nest: ReduceNest, shift: int) -> ReduceNest:
    replacement: dict[Expr, Expr] = {
        expr: Accumulated.make(expr.number + shift, expr.dtype)
        for expr in subexpressions(nest_roots(nest))
        if isinstance(expr, Accumulated)
    }
    shifted = map_nest(nest, replacement)
    assert isinstance(shifted, ReduceNest)
    return shifted


def is_own_point(load: Load, space: tuple[int, ...]) -> bool:
    """Whether a load reads, unguarded, the point of the space that is computed."""
    return load.guard is None and load.indices == space_index(space)
