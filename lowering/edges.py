"""Explicit edges: true dependences, and the hazards that reuse of memory creates.

Two nodes of a graph conflict if one writes memory, or sets a condition, that the other touches.
Prints, checks and progress conflict too: the host learns of them in the order of the program.
Each node is joined to the latest earlier nodes that it conflicts with, unless a path leads there
already.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lowering.buffer import Buffer
from lowering.kernel import Nest, Publish
from lowering.stage import (
    BranchStage,
    KernelStage,
    LoopStage,
    NodeStage,
    Stage,
    blocks,
    is_ordered,
    nest_conditions,
    nest_reads,
    nest_signals,
    nest_writes,
    stage_reads,
    stage_writes,
    walk,
)

Resource = Hashable
"""A buffer, ("condition", number), `EFFECTS`, or `PROGRESS`."""

EFFECTS: Resource = "effects"
"""What every print and check writes, and what shows progress reads."""

PROGRESS: Resource = "progress"
"""What shows progress writes, and every loop reads: a step is over when its inner loops are."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a stage reads and writes."""

    reads: frozenset[Resource]
    writes: frozenset[Resource]


@dataclass(slots=True)
class _History:
    writers: list[int] = field(default_factory=list)  # the last one
    readers: list[int] = field(default_factory=list)  # since then


def access(stage: Stage) -> Access:
    """The resources that a stage touches, bodies included."""
    reads: set[Resource] = set()
    writes: set[Resource] = set()
    for part in (stage, *(s for b in blocks(stage) for s in walk(b))):
        match part:
            case KernelStage(nests=nests):
                for touched in map(nest_access, nests):
                    reads |= touched.reads
                    writes |= touched.writes
            case NodeStage():
                reads |= stage_reads(part)
                writes |= stage_writes(part)
            case BranchStage(condition=c):
                reads.add(("condition", c))
            case LoopStage(condition=c):
                reads |= {("condition", c), PROGRESS}
    return Access(frozenset(reads), frozenset(writes))


def nest_access(nest: Nest) -> Access:
    """The resources that a nest touches."""
    reads: set[Resource] = set(nest_reads(nest))
    writes: set[Resource] = set(nest_writes(nest))
    writes.update(("condition", number) for number in nest_conditions(nest))
    if any(isinstance(signal, Publish) for signal in nest_signals(nest)):
        reads.add(EFFECTS)
        writes.add(PROGRESS)
    if is_ordered(nest):
        writes.add(EFFECTS)
    return Access(frozenset(reads), frozenset(writes))


def edges(stages: Sequence[Stage], offsets: Mapping[Buffer, int]) -> frozenset[tuple[int, int]]:
    """The edges (i, j), i < j, among the stages of one block, without those that others imply."""
    return frozenset(_order(stages, offsets)[0])


def ancestors(stages: Sequence[Stage]) -> list[int]:
    """For each stage, those it depends on, as a bit mask; no memory is shared yet."""
    return _order(stages, {})[1]


def _order(
    stages: Sequence[Stage], offsets: Mapping[Buffer, int]
) -> tuple[set[tuple[int, int]], list[int]]:
    accesses = [access(s) for s in stages]
    shared = _overlaps({r for a in accesses for r in a.reads | a.writes}, offsets)
    history: dict[Resource, _History] = {}
    before: list[int] = []
    found: set[tuple[int, int]] = set()
    for j, touched in enumerate(accesses):
        reached = 0
        for i in sorted(_conflicts(touched, shared, history), reverse=True):
            if not reached >> i & 1:
                found.add((i, j))
                reached |= before[i] | 1 << i
        before.append(reached)
        for resource in touched.writes:
            history[resource] = _History(writers=[j])
        for resource in touched.reads - touched.writes:
            history.setdefault(resource, _History()).readers.append(j)
    return found, before


def _conflicts(
    touched: Access,
    shared: Mapping[Resource, Sequence[Resource]],
    history: Mapping[Resource, _History],
) -> set[int]:
    """Earlier stages that must be over: writers of what is touched, readers of what is written."""
    found: set[int] = set()
    for resource in touched.reads | touched.writes:
        for other in shared.get(resource, (resource,)):
            if other in history:
                found.update(history[other].writers)
                if resource in touched.writes:
                    found.update(history[other].readers)
    return found


def _overlaps(
    resources: Iterable[Resource], offsets: Mapping[Buffer, int]
) -> dict[Resource, list[Buffer]]:
    """For each scratch buffer, those that share bytes with it, itself included."""
    placed = sorted(
        (
            (offsets[r], offsets[r] + max(r.type.nbytes, 1), r.number, r)
            for r in resources
            if isinstance(r, Buffer) and r in offsets
        ),
        key=lambda entry: entry[:3],
    )
    result: dict[Resource, list[Buffer]] = {r: [r] for *_, r in placed}
    open_: list[tuple[int, Buffer]] = []
    for start, end, _, buffer in placed:
        open_ = [(stop, other) for stop, other in open_ if stop > start]
        for _, other in open_:
            result[buffer].append(other)
            result[other].append(buffer)
        open_.append((end, buffer))
    return result
