"""Merging nests into kernels: a node of a graph costs about a microsecond, however little it does.

A nest joins an earlier kernel
- *point by point*: it reads what a nest of the same space stored, at the very same point, so that
  the value is forwarded in a register;
- *side by side*: it is independent of all that the kernel does, and has the same space or is small.

No kernel prints or checks twice: those stay in order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod
from weakref import WeakKeyDictionary

from lowering.buffer import Buffer
from lowering.edges import Access, Resource, access, nest_access
from lowering.kernel import (
    MapNest,
    Nest,
    PrintNest,
    ReduceNest,
    RowNest,
    ScatterNest,
    Store,
)
from lowering.rows import join_rows
from lowering.stage import (
    Block,
    KernelStage,
    Stage,
    loads,
    map_nest,
    nest_conditions,
    nest_loads,
    nest_reads,
    nest_roots,
    nest_stores,
    nest_writes,
    space_index,
)
from tracegraph.scalar import Accumulated, Expr, subexpressions

WINDOW = 12
"""How many of the latest stages are tried: keeps merging linear."""

MAX_EXPRESSIONS = 600
"""Scalar expressions of one nest."""

MAX_NESTS = 8

SMALL = 1 << 16
"""Points of a nest that may run beside another of a different space."""


@dataclass(slots=True)
class _Contents:
    """What a nest holds; handed on as it grows, so that growing costs what is added."""

    stores: dict[Buffer, Store]
    expressions: set[Expr]


_CONTENTS: WeakKeyDictionary[Nest, _Contents] = WeakKeyDictionary()


def _contents(nest: Nest) -> _Contents:
    found = _CONTENTS.get(nest)
    if found is None:
        stores = {store.buffer: store for store in nest_stores(nest)}
        found = _Contents(stores, set(subexpressions(nest_roots(nest))))
        _CONTENTS[nest] = found
    return found


def _stores_any(nest: Nest, buffers: frozenset[Buffer]) -> bool:
    return not _contents(nest).stores.keys().isdisjoint(buffers)


def fuse(block: Block, kept: Collection[Buffer] = ()) -> None:
    """Merge the nests of a block's kernels, in place. `kept` are buffers that are stored anyway."""
    merged = _Merged(frozenset(kept))
    for stage in block.stages:
        if isinstance(stage, KernelStage):
            for nest in stage.nests:
                merged.place(nest, stage)
        else:
            merged.append(stage)
    block.stages = merged.stages


class _Merged:
    def __init__(self, kept: frozenset[Buffer]) -> None:
        self.kept = kept
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
            if _join(kernel, nest, dependent, self.kept):
                kernel.sources = tuple(dict.fromkeys((*kernel.sources, *stage.sources)))
                self._note(position, touched)
                return
        self.stages.append(KernelStage([nest], stage.sources))
        self._note(len(self.stages) - 1, touched)


def _join(kernel: KernelStage, nest: Nest, dependent: bool, kept: frozenset[Buffer]) -> bool:
    for k, other in enumerate(kernel.nests):
        reads = nest_reads(nest)
        if any(_stores_any(n, reads) for n in kernel.nests if n is not other):
            continue
        merged = _merge(other, nest) or _merge_rows(other, nest, kept)
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
    loop = nest.loop if isinstance(nest, ReduceNest | RowNest) else ()
    return prod((*nest.space, *loop)) <= SMALL


def _merge(first: Nest, second: Nest) -> Nest | None:
    """One nest that does both, or None."""
    if first.space != second.space or not isinstance(first, MapNest | ReduceNest):
        return None
    if _stores_any(first, nest_writes(second)):
        return None
    if nest_conditions(first) & nest_conditions(second):
        return None
    if not isinstance(second, MapNest | ReduceNest):
        return None
    if isinstance(second, ReduceNest) and not isinstance(first, ReduceNest):
        return None
    forwarded = _forward(first, second)
    if forwarded is None:
        return None
    if isinstance(forwarded, ReduceNest):
        assert isinstance(first, ReduceNest)
        if first.loop != forwarded.loop:
            return None
        forwarded = _renumbered(forwarded, len(first.accumulators))
    result = _union(first, forwarded)
    return result if _grow(first, forwarded, result) else None


def _grow(first: Nest, added: Nest, result: Nest) -> bool:
    """Hand the contents of `first` on to what it becomes, unless that has too many expressions."""
    contents = _contents(first)
    expressions = subexpressions(nest_roots(added), contents.expressions)
    if len(contents.expressions) > MAX_EXPRESSIONS:
        contents.expressions.difference_update(expressions)
        return False
    contents.stores.update((store.buffer, store) for store in nest_stores(added))
    _CONTENTS[result] = _CONTENTS.pop(first)
    return True


def _merge_rows(first: Nest, second: Nest, kept: frozenset[Buffer]) -> Nest | None:
    """One nest of passes over rows that does both, or None."""
    if _stores_any(first, nest_writes(second)):
        return None
    if nest_conditions(first) & nest_conditions(second):
        return None
    of_one_space = isinstance(first, RowNest) and first.space == second.space
    if not _stores_any(first, nest_reads(second)) and not of_one_space:
        return None
    result = join_rows(first, second, kept)
    return result if result is None or _is_moderate(result) else None


def _is_moderate(nest: Nest) -> bool:
    return len(subexpressions(nest_roots(nest))) <= MAX_EXPRESSIONS


def _forward(first: Nest, second: Nest) -> Nest | None:
    """`second` with what `first` stores taken from there; None if it reads that at other points."""
    stores = _contents(first).stores
    if not _stores_any(first, nest_reads(second)):
        return second
    own_point = space_index(first.space)
    replacement: dict[Expr, Expr] = {}
    for load in nest_loads(second):
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


def _union(first: Nest, second: Nest) -> Nest:
    assert isinstance(first, MapNest | ReduceNest)
    assert isinstance(second, MapNest | ReduceNest)
    accumulators = second.accumulators if isinstance(second, ReduceNest) else ()
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
