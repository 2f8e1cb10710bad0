"""Merging nests into kernels: a node of a graph costs about a microsecond, however little it does.

A nest joins an earlier kernel
- *point by point*: it reads what a nest of the same space stored, at the very same point, so that
  the value is forwarded in a register;
- *side by side*: it is independent of all that the kernel does, and has the same space or is small.

No kernel prints or checks twice: those stay in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod

from lowering.draft.context import Context
from lowering.draft.dependences import Accesses, Resource, accesses_of, nest_accesses
from lowering.draft.stage import Block, KernelStage, Stage
from lowering.fusion.dead_stores import without_dead
from lowering.fusion.pointwise import MAX_EXPRESSIONS, Growing
from lowering.fusion.row_passes import agree, join_rows
from lowering.plan.buffer import Buffer
from lowering.plan.construct import Path
from lowering.plan.kernel import (
    Nest,
    PrintNest,
    ReduceNest,
    RowNest,
    ScatterNest,
    Store,
    exclusive,
)
from lowering.plan.nest_analysis import nest_conditions, nest_size, nest_writes
from lowering.plan.target import FusionPolicy, Target
from tracegraph.ir.record import replace
from tracegraph.user_source import Source

WINDOW = 12
"""How many of the latest stages are tried: keeps merging linear."""

MAX_NESTS = 8

SMALL = 1 << 16
"""Points of a nest that may run beside another of a different space."""


@dataclass(slots=True, eq=False)
class _Kernel:
    """A kernel that nests join, the most buffers that these touch, and what they come from: lines,
    and inlined loops and branches.
    """

    nests: list[Growing]
    buffers: int
    sources: dict[Source, None]
    within: dict[Path, None]


def fuse(block: Block, context: Context) -> None:
    """Merge the nests of a block's kernels, in place, as the target's policy and limits have it.

    The sinks of the block are stored in any case.
    """
    if len(block.stages) < 2 or not context.fusion:
        return  # nothing to merge with; `drop_dead_stores` drops what is never read
    merged = _Merged(context.target, frozenset(block.sinks))
    waiting = block.stages[::-1]
    block.stages = []  # what has been merged goes: fewer objects for garbage collections to visit
    while waiting:
        stage = waiting.pop()
        if isinstance(stage, KernelStage):
            for nest in stage.nests:
                merged.place(nest, stage)
        else:
            merged.append(stage, accesses_of(stage))
    needed = merged.loaded | merged.kept

    def alive(store: Store) -> bool:
        return store.buffer in needed or store.buffer not in block.owned

    block.stages = [_finished(stage, alive) for stage in merged.stages]


def _finished(stage: Stage | _Kernel, alive: Callable[[Store], bool]) -> Stage:
    """The stage as it is once all that has joined it is known.

    What has only been forwarded need not be stored: to drop it here, before anyone looks at all
    expressions of a kernel, spares `drop_dead_stores` most of its work.
    """
    if not isinstance(stage, _Kernel):
        return stage
    nests = [without_dead(growing.whole(), alive) for growing in stage.nests]
    kept = [nest for nest in nests if nest is not None]
    return KernelStage(kept, tuple(stage.sources), tuple(stage.within))


class _Merged:
    def __init__(self, target: Target, kept: frozenset[Buffer]) -> None:
        self.target = target
        self.kept = kept
        self.stages: list[Stage | _Kernel] = []
        self.written: dict[Resource, int] = {}  # position of the last stage that wrote, or read
        self.read: dict[Resource, int] = {}
        self.loaded: set[Resource] = set()  # what is read and has not been forwarded

    def append(self, stage: Stage | _Kernel, touched: Accesses) -> None:
        self.stages.append(stage)
        self.loaded |= touched.reads
        self._note(len(self.stages) - 1, touched)

    def _note(self, position: int, touched: Accesses) -> None:
        read, written = self.read, self.written
        for resource in touched.reads:
            if read.get(resource, -1) < position:
                read[resource] = position
        for resource in touched.writes:
            if written.get(resource, -1) < position:
                written[resource] = position

    def place(self, nest: Nest, stage: KernelStage) -> None:
        touched = nest_accesses(nest)
        reads, writes = touched.reads, touched.writes
        buffers = len(reads) + len(writes)
        after = _latest(self.written, reads)
        free_of = max(_latest(self.read, writes), _latest(self.written, writes))
        if not self._exclude(free_of, nest, writes):
            free_of += 1
        most = self.target.limits.kernel_buffers
        first = max(after, free_of, len(self.stages) - WINDOW, 0)
        for position in range(first, len(self.stages)):
            kernel = self.stages[position]
            if type(kernel) is not _Kernel or kernel.buffers + buffers > most:
                continue
            awaited = reads if position == after else None
            joined = _join(kernel, nest, awaited, self.kept, self.target.fusion)
            if joined is not None:
                # forwarded is what was stored before it joined, not what it stores itself
                stored = joined.stores
                self.loaded.update([r for r in reads if r not in stored or r in writes])
                kernel.sources.update(dict.fromkeys(stage.sources))
                if stage.within:
                    kernel.within.update(dict.fromkeys(stage.within))
                kernel.buffers += buffers
                self._note(position, touched)
                return
        within = dict.fromkeys(stage.within)
        own = _Kernel([Growing(nest)], buffers, dict.fromkeys(stage.sources), within)
        self.append(own, touched)

    def _exclude(self, position: int, nest: Nest, writes: frozenset[Resource]) -> bool:
        """Whether no nest at a position that accesses what a nest writes runs together with it."""
        if position < 0 or not nest.predicates:
            return False
        kernel = self.stages[position]
        if type(kernel) is not _Kernel:
            return False
        for growing in kernel.nests:
            touched = nest_accesses(growing.whole())
            common = writes & (touched.writes | touched.reads)
            if common and not exclusive(growing.nest.predicates, nest.predicates):
                return False
            if not all(isinstance(resource, Buffer) for resource in common):
                return False
        return True


def _latest(positions: dict[Resource, int], resources: Collection[Resource]) -> int:
    latest = -1
    for resource in resources:
        if resource in positions and positions[resource] > latest:
            latest = positions[resource]
    return latest


def _join(
    kernel: _Kernel,
    nest: Nest,
    awaited: frozenset[Resource] | None,
    kept: frozenset[Buffer],
    policy: FusionPolicy,
) -> Growing | None:
    """What a nest has become a part of, or as which it stands beside the others, if it can.

    What it reads is `awaited` if the kernel stores some of that.
    """
    needed = [other for other in kernel.nests if other.stores_any(awaited)] if awaited else []
    # what reads from two nests of one kernel cannot become part of either
    for other in (needed or kernel.nests) if len(needed) < 2 else ():
        if other.merge(nest) or _merge_rows(other, nest, bool(needed), kept, policy):
            return other
    if awaited or len(kernel.nests) >= MAX_NESTS:
        return None
    if not _small(nest) and not any(_is_alternative(other.nest, nest) for other in kernel.nests):
        return None
    if _is_serial(nest) or any(_is_serial(growing.nest) for growing in kernel.nests):
        return None  # it would hold up the others
    kernel.nests.append(Growing(nest))
    return kernel.nests[-1]


def _is_alternative(first: Nest, second: Nest) -> bool:
    """Whether two nests of one space exclude each other: only one of them does its work."""
    return first.space == second.space and exclusive(first.predicates, second.predicates)


def _is_serial(nest: Nest) -> bool:
    return isinstance(nest, ScatterNest) and nest.repeats > 0


def _small(nest: Nest) -> bool:
    if isinstance(nest, PrintNest):
        return sum(prod(array.shape) for array in nest.arguments) <= SMALL
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    return prod((*nest.space, *loop)) <= SMALL


def _of_the_same_rows(first: Nest, second: Nest) -> bool:
    """Whether both have the same rows; not if they have been tried point by point."""
    if isinstance(first, ReduceNest):
        return first.space != second.space and agree(first.space, second.space)
    return isinstance(first, RowNest) and agree(first.space, second.space)


def _merge_rows(
    first: Growing, second: Nest, needed: bool, kept: frozenset[Buffer], policy: FusionPolicy
) -> bool:
    """Whether both can be one nest of passes over rows, which `first` then is.

    `needed` says that `second` reads what `first` stores.
    """
    if first.nest.predicates != second.predicates:
        return False
    if not needed and not _of_the_same_rows(first.nest, second):
        return False
    if first.stores_any(nest_writes(second)):
        return False
    nest = first.whole()
    if nest_conditions(nest) & nest_conditions(second):
        return False
    result = join_rows(nest, second, policy, kept)
    if result is None:
        return False
    if second.predicates:
        result = replace(result, predicates=second.predicates)
    most = first.most + nest_size(second)
    if most > MAX_EXPRESSIONS:
        most = nest_size(result)
    if most > MAX_EXPRESSIONS:
        return False
    first.become(result, most)
    return True
