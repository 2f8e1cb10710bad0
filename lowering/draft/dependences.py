"""Dependence analysis: true dependences of nodes, and the hazards that reuse of memory creates.

Two nodes conflict if one writes memory, or sets a condition, that the other accesses. Prints,
callbacks, checks and progress also conflict: the host sees them in the order of the program. A
barrier conflicts with everything. Edges
are a transitive reduction: a node has an edge from each earlier node that it conflicts with,
unless other edges imply it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lowering.draft.draft_nodes import (
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    blocks,
    node_reads,
    node_writes,
)
from lowering.plan.nests.analysis import (
    NestAnalysis,
    analyze,
    is_ordered,
    nest_reads,
    nest_signals,
    nest_writes,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, PrintNest, Publish, SetCondition

Resource = Hashable
"""A buffer, ("condition", number), `EFFECTS`, `PROGRESS`, or the number of an arena segment."""

EFFECTS: Resource = "effects"
"""Written by every print, callback and check, read by what reports progress."""

BARRIER: Resource = "barrier"
"""Written by events and calls of C functions, which conflict with all other nodes."""

PROGRESS: Resource = "progress"
"""Written by what reports progress, read by every loop: an outer step ends after inner loops."""

DEPENDENCE_WINDOW = 4096
"""Nodes over which transitive dependences are recorded: bit masks over whole graphs would take
quadratic memory. Beyond it an edge may be redundant, or memory may stay unshared."""

_WINDOW_MASK = (1 << DEPENDENCE_WINDOW) - 1

_NOTHING: frozenset[Resource] = frozenset()


class AccessSets(NamedTuple):
    """What a node reads and writes."""

    reads: frozenset[Resource]
    writes: frozenset[Resource]


Accesses = AccessSets | NestAnalysis
"""A nest that accesses only buffers has its analysis, which has the same two sets."""


def accesses_of(node: DraftNode) -> Accesses:
    """The resources that a node reads and writes, bodies included."""
    return accesses_around(node, [accesses_of(s) for b in blocks(node) for s in b.nodes])


def accesses_around(node: DraftNode, inside: Sequence[Accesses]) -> Accesses:
    """The same, given the accesses of the nodes of its bodies.

    Copies of a body also access what is resident there, though no node of the body may say so.
    """
    own = _NOTHING
    match node:
        case DraftKernel(nests=[nest]):
            return nest_accesses(nest)
        case DraftKernel(nests=nests):
            inside = [nest_accesses(nest) for nest in nests]
        case FinishedNode(plan_node=plan_node):
            ordered = frozenset({EFFECTS}) if plan_node.is_ordered else _NOTHING
            ordered |= frozenset({BARRIER}) if plan_node.is_barrier else _NOTHING
            return AccessSets(node_reads(node), ordered | node_writes(node))
        case DraftBranch(condition=c):
            own = frozenset({("condition", c)})
        case DraftLoop(condition=c, entry=None):
            own = frozenset({("condition", c), PROGRESS})
        case DraftLoop(entry=entry):
            own = frozenset({entry, PROGRESS})
    resident = [block.resident for block in blocks(node)]
    reads, writes = [each.reads for each in inside], [each.writes for each in inside]
    return AccessSets(own.union(*reads), _NOTHING.union(*writes, *resident))


def nest_accesses(nest: Nest) -> Accesses:
    """The resources that a nest reads and writes."""
    signals = nest_signals(nest)
    if not signals and not isinstance(nest, PrintNest):
        return analyze(nest)
    reads: frozenset[Resource] = nest_reads(nest)
    also: list[Resource] = [("condition", s.condition) for s in signals if type(s) is SetCondition]
    if len(also) < len(signals) or not signals:  # it prints, checks or reports progress
        if any(isinstance(signal, Publish) for signal in signals):
            reads |= {EFFECTS}
            also.append(PROGRESS)
        if is_ordered(nest):
            also.append(EFFECTS)
    return AccessSets(reads, frozenset((*nest_writes(nest), *also)))


class Order(NamedTuple):
    """The accesses and dependences of the nodes of one block, before any bytes are shared."""

    accesses: list[Accesses]
    edges: frozenset[tuple[int, int]]
    ancestors: list[int]  # of each node, those it depends on, as a bit mask for `precedes`


def order(accesses: list[Accesses]) -> Order:
    """The order of the nodes of one block, from their accesses."""
    return Order(accesses, *_order(accesses))


def edges(known: Order, offsets: Mapping[Buffer, int]) -> frozenset[tuple[int, int]]:
    """The edges (i, j), i < j, among the nodes of one block.

    `offsets` places buffers in the arena, where some may share bytes.
    """
    accesses = known.accesses
    if len(accesses) < 2:
        return known.edges
    segments = _by_segments(accesses, offsets)
    return known.edges if segments is accesses else _order(segments)[0]


def precedes(ancestors: Sequence[int], earlier: int, later: int) -> bool:
    """Whether dependences are known to order one node before another."""
    return earlier < later and bool(ancestors[later] >> (later - 1 - earlier) & 1)


def _order(accesses: Sequence[Accesses]) -> tuple[frozenset[tuple[int, int]], list[int]]:
    if len(accesses) < 2:
        return frozenset(), [0] * len(accesses)
    writer: dict[Resource, int] = {}  # the last one
    readers: dict[Resource, list[int]] = {}  # since then
    before: list[int] = []  # bit d of the j-th: it depends on node j - 1 - d
    found: set[tuple[int, int]] = set()
    barrier = -1  # the last one
    for j, accessed in enumerate(accesses):
        reached = 0
        conflicts = _conflicts(accessed, writer, readers)
        if barrier >= 0:
            conflicts.add(barrier)
        if BARRIER in accessed.writes:
            conflicts.update(range(max(barrier, 0), j))
            barrier = j
        for i in sorted(conflicts, reverse=True) if len(conflicts) > 1 else conflicts:
            distance = j - 1 - i
            if not reached >> distance & 1:
                found.add((i, j))
                reached |= (before[i] << 1 | 1) << distance
        before.append(reached & _WINDOW_MASK)
        for resource in accessed.writes:
            writer[resource] = j
            readers.pop(resource, None)
        for resource in accessed.reads:
            if resource not in accessed.writes:
                readers.setdefault(resource, []).append(j)
    return frozenset(found), before


def _conflicts(
    accessed: Accesses, writer: Mapping[Resource, int], readers: Mapping[Resource, list[int]]
) -> set[int]:
    """The last writers of what is accessed, and the readers since then of what is written."""
    found = {writer[resource] for resource in accessed.reads if resource in writer}
    for resource in accessed.writes:
        if resource in writer:
            found.add(writer[resource])
        if resource in readers:
            found.update(readers[resource])
    return found


def _by_segments(accesses: Sequence[Accesses], offsets: Mapping[Buffer, int]) -> Sequence[Accesses]:
    """The accesses, with segments of the arena in place of the buffers on them.

    They stay as they are if no two of the buffers share bytes. Segments end wherever some buffer
    starts or ends, so that buffers share whole segments.
    """
    reads, writes = [a.reads for a in accesses], [a.writes for a in accesses]
    accessed = _NOTHING.union(*reads, *writes)
    spans = {
        r: (offsets[r], offsets[r] + max(r.type.nbytes, 1))
        for r in accessed
        if isinstance(r, Buffer) and r in offsets
    }
    if not _any_overlap(spans.values()):
        return accesses
    cuts = sorted({end for span in spans.values() for end in span})
    position = {cut: k for k, cut in enumerate(cuts)}
    segments: dict[Resource, range] = {
        r: range(position[start], position[end]) for r, (start, end) in spans.items()
    }

    def on_segments(resources: frozenset[Resource]) -> frozenset[Resource]:
        if segments.keys().isdisjoint(resources):
            return resources
        return frozenset([segment for r in resources for segment in segments.get(r, (r,))])

    return [AccessSets(on_segments(a.reads), on_segments(a.writes)) for a in accesses]


def _any_overlap(spans: Iterable[tuple[int, int]]) -> bool:
    """Whether any two of the spans [start, end) overlap."""
    end = 0
    for first, last in sorted(spans):
        if first < end:
            return True
        end = last
    return False
