"""Explicit edges: true dependences, and the hazards that reuse of memory creates.

Two nodes of a graph conflict if one writes memory, or sets a condition, that the other touches.
Prints, checks and progress conflict too: the host learns of them in the order of the program.
Each node is joined to the latest earlier nodes that it conflicts with, unless a path leads there
already.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lowering.draft.stage import (
    BranchStage,
    KernelStage,
    LoopStage,
    NodeStage,
    Stage,
    blocks,
    stage_reads,
    stage_writes,
)
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Nest, PrintNest, Publish, SetCondition
from lowering.plan.nest_analysis import (
    NestAnalysis,
    analyze,
    is_ordered,
    nest_reads,
    nest_signals,
    nest_writes,
)

Resource = Hashable
"""A buffer, ("condition", number), `EFFECTS`, `PROGRESS`, or the number of a piece of the arena."""

EFFECTS: Resource = "effects"
"""What every print and check writes, and what shows progress reads."""

PROGRESS: Resource = "progress"
"""What shows progress writes, and every loop reads: a step is over when its inner loops are."""


REMEMBERED = 4096
"""How far back a dependence is remembered: masks of whole graphs would take quadratic memory. What
is forgotten only costs a redundant edge, or memory that is not shared."""

_RECENT = (1 << REMEMBERED) - 1


_NOTHING: frozenset[Resource] = frozenset()


class Access(NamedTuple):
    """What a stage reads and writes."""

    reads: frozenset[Resource]
    writes: frozenset[Resource]


Touched = Access | NestAnalysis
"""Where what a nest touches is buffers, what is known of it says so."""


def access(stage: Stage) -> Touched:
    """The resources that a stage touches, bodies included."""
    return access_around(stage, [access(s) for block in blocks(stage) for s in block.stages])


def access_around(stage: Stage, inside: Sequence[Touched]) -> Touched:
    """The same, where it is known what the stages of the bodies touch."""
    own = _NOTHING
    match stage:
        case KernelStage(nests=[nest]):
            return nest_access(nest)
        case KernelStage(nests=nests):
            inside = [nest_access(nest) for nest in nests]
        case NodeStage():
            return Access(stage_reads(stage), stage_writes(stage))
        case BranchStage(condition=c):
            own = frozenset({("condition", c)})
        case LoopStage(condition=c):
            own = frozenset({("condition", c), PROGRESS})
    reads, writes = [touched.reads for touched in inside], [touched.writes for touched in inside]
    return Access(own.union(*reads), _NOTHING.union(*writes))


def nest_access(nest: Nest) -> Touched:
    """The resources that a nest touches."""
    signals = nest_signals(nest)
    if not signals and not isinstance(nest, PrintNest):
        return analyze(nest)
    reads: frozenset[Resource] = nest_reads(nest)
    also: list[Resource] = [("condition", s.condition) for s in signals if type(s) is SetCondition]
    if len(also) < len(signals) or not signals:  # it prints, checks or shows progress
        if any(isinstance(signal, Publish) for signal in signals):
            reads |= {EFFECTS}
            also.append(PROGRESS)
        if is_ordered(nest):
            also.append(EFFECTS)
    return Access(reads, frozenset((*nest_writes(nest), *also)))


class Order(NamedTuple):
    """What the stages of one block touch and wait for as long as no memory is shared."""

    accesses: list[Touched]
    edges: frozenset[tuple[int, int]]
    ancestors: list[int]  # of each stage, those it depends on, as a bit mask for `precedes`


def order(accesses: list[Touched]) -> Order:
    """The order of the stages of one block, by what they touch."""
    return Order(accesses, *_order(accesses))


def edges(known: Order, offsets: Mapping[Buffer, int]) -> frozenset[tuple[int, int]]:
    """The edges (i, j), i < j, among the stages of one block, without those that others imply.

    `offsets` places buffers in the arena, where some may share memory.
    """
    accesses = known.accesses
    if len(accesses) < 2:
        return known.edges
    pieces = _by_pieces(accesses, offsets)
    return known.edges if pieces is accesses else _order(pieces)[0]


def precedes(ancestors: Sequence[int], earlier: int, later: int) -> bool:
    """Whether a stage is known to be over, because of dependences, when another one starts."""
    return earlier < later and bool(ancestors[later] >> (later - 1 - earlier) & 1)


def _order(accesses: Sequence[Touched]) -> tuple[frozenset[tuple[int, int]], list[int]]:
    if len(accesses) < 2:
        return frozenset(), [0] * len(accesses)
    writer: dict[Resource, int] = {}  # the last one
    readers: dict[Resource, list[int]] = {}  # since then
    before: list[int] = []  # bit d of the j-th: it depends on stage j - 1 - d
    found: set[tuple[int, int]] = set()
    for j, touched in enumerate(accesses):
        reached = 0
        conflicts = _conflicts(touched, writer, readers)
        for i in sorted(conflicts, reverse=True) if len(conflicts) > 1 else conflicts:
            distance = j - 1 - i
            if not reached >> distance & 1:
                found.add((i, j))
                reached |= (before[i] << 1 | 1) << distance
        before.append(reached & _RECENT)
        for resource in touched.writes:
            writer[resource] = j
            readers.pop(resource, None)
        for resource in touched.reads:
            if resource not in touched.writes:
                readers.setdefault(resource, []).append(j)
    return frozenset(found), before


def _conflicts(
    touched: Touched, writer: Mapping[Resource, int], readers: Mapping[Resource, list[int]]
) -> set[int]:
    """Earlier stages that must be over: writers of what is touched, readers of what is written."""
    found = {writer[resource] for resource in touched.reads if resource in writer}
    for resource in touched.writes:
        if resource in writer:
            found.add(writer[resource])
        if resource in readers:
            found.update(readers[resource])
    return found


def _by_pieces(accesses: Sequence[Touched], offsets: Mapping[Buffer, int]) -> Sequence[Touched]:
    """The accesses with placed buffers replaced by the pieces of the arena that they lie on.

    They stay as they are if no two of the buffers share memory. The pieces end wherever some buffer
    starts or ends, so that buffers share all of one or nothing.
    """
    reads, writes = [a.reads for a in accesses], [a.writes for a in accesses]
    touched = _NOTHING.union(*reads, *writes)
    spans = {
        r: (offsets[r], offsets[r] + max(r.type.nbytes, 1))
        for r in touched
        if isinstance(r, Buffer) and r in offsets
    }
    if not _meet(spans.values()):
        return accesses
    cuts = sorted({end for span in spans.values() for end in span})
    position = {cut: k for k, cut in enumerate(cuts)}
    pieces: dict[Resource, range] = {
        r: range(position[start], position[end]) for r, (start, end) in spans.items()
    }

    def on_pieces(resources: frozenset[Resource]) -> frozenset[Resource]:
        if pieces.keys().isdisjoint(resources):
            return resources
        return frozenset([piece for r in resources for piece in pieces.get(r, (r,))])

    return [Access(on_pieces(a.reads), on_pieces(a.writes)) for a in accesses]


def _meet(spans: Iterable[tuple[int, int]]) -> bool:
    """Whether some of the spans, from a start to an end, have a part in common."""
    end = 0
    for first, last in sorted(spans):
        if first < end:
            return True
        end = last
    return False
