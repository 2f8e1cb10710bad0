"""Races: nodes of a Plan that no edge orders, though they access the same memory.

Planning derives the edges from dependences of draft nodes (`lowering.draft.dependences`). Here they
are checked against the finished Plan: what its nodes access, where that is in the arena, and what a
CUDA graph orders besides. Nothing is taken over from planning, so that tests can compare both.

Edges are followed by bit masks: bit i of the j-th says that node i is over when node j begins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.launch_nodes import AllocationNode, FreeNode, LoadNode, PointersNode, TableNode
from lowering.plan.nests.analysis import nest_reads, nest_signals, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import CallNest, Nest, PrintNest, Publish, Require, SetCondition
from lowering.plan.nests.kernel import exclusive as never_together
from lowering.plan.nodes import (
    Graph,
    KernelNode,
    LibraryNode,
    Node,
    body_graphs,
    launched_by,
    walk,
)
from lowering.plan.plan import Plan
from tracegraph.generated.dataclass import dataclass

Resource = Hashable
"""What nodes access: a buffer, a part of the arena, a condition, or what the host sees in order."""

_Accesses = tuple[frozenset[Resource], frozenset[Resource]]
"""What a node reads and what it writes, bodies included."""

_EFFECTS = "the order of effects"
_PROGRESS = "the progress of loops"
_BARRIER = "what a barrier orders"
_SCRATCH = "the scratch of a launch"


@dataclass(frozen=True, slots=True)
class Race:
    """Two nodes of one graph, in the order of the Plan, and what they would have to be ordered for.

    If `second` is None, `first` races with itself: its nests, or the points of one of them.
    """

    first: Node
    second: Node | None
    shared: str

    def __str__(self) -> str:
        if self.second is None:
            return f"{self.first.title} writes {self.shared}"
        return (
            f"no edge orders {self.first.title} before {self.second.title}, "
            f"which share {self.shared}"
        )


def races(plan: Plan) -> tuple[Race, ...]:
    """All pairs of nodes that may run at the same time, or in either order, and must not.

    >>> import numpy as np
    >>> import tracegraph
    >>> double = tracegraph.jit(lambda x: np.cumsum(x) * 2, device="host")
    >>> races(double.lower(np.ones(4)).plan)
    ()
    """
    return tuple(_Check(plan).races())


class _Check:
    """The accesses of the nodes of one Plan, each computed once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.known: dict[Node, _Accesses] = {}
        self.places = _places(plan.offsets)
        self.by_value = frozenset(plan.by_value) if plan.as_graph else frozenset()
        self.indirect = frozenset(plan.indirect)

    def races(self) -> Iterator[Race]:
        yield from self.between(self.plan.graph, set())
        if self.plan.as_graph:
            yield from self.of_launch(self.plan.launch_graph)

    def between(self, graph: Graph, seen: set[int]) -> Iterator[Race]:
        """The races of the nodes of a graph, and of those in bodies."""
        accesses = [self.accesses(node) for node in graph.nodes]
        yield from _unordered(graph, accesses, self.places.text)
        for node in graph.nodes:
            yield from self.within(node)
            for body in node.bodies:
                if id(body) not in seen:
                    seen.add(id(body))
                    yield from self.between(body, seen)

    def of_launch(self, graph: Graph) -> Iterator[Race]:
        """The races of what a CUDA graph has besides the work: nodes that run one at a time, and
        those that load arguments and allocate memory.
        """
        if graph is not self.plan.graph:
            yield from _unordered(graph, list(map(self.at_launch, graph.nodes)), self.places.text)
            for node in graph.nodes:
                for body in body_graphs(node):
                    yield from self.of_launch(body)

    def accesses(self, node: Node) -> _Accesses:
        """What a node accesses, bodies included."""
        known = self.known.get(node)
        if known is None:
            inside = [self.accesses(inner) for body in node.bodies for inner in body.nodes]
            reads, writes = map(self.places.of, _own(node))
            all_reads = reads.union(*[each for each, _ in inside])
            all_writes = writes.union(*[each for _, each in inside])
            known = self.known[node] = all_reads, all_writes
        return known

    def at_launch(self, node: Node) -> _Accesses:
        """What matters of a node, bodies included, for the order in a CUDA graph."""
        if isinstance(node, AllocationNode | FreeNode):
            return frozenset(), frozenset((_SCRATCH,))
        if isinstance(node, TableNode):
            return frozenset(), frozenset(
                [("the address of", launched) for launched in node.entries]
            )
        if isinstance(node, PointersNode):
            return frozenset(), frozenset([("the pointers of", call) for call in node.calls])
        reads: set[Resource] = set()
        writes: set[Resource] = set()
        if isinstance(node, LoadNode):
            writes |= node.writes
        for launched in launched_by(node):
            if launched.exclusive is not None:
                writes.add(launched.exclusive)
            if isinstance(launched, LibraryNode):
                reads |= {_SCRATCH, ("the pointers of", launched)}
        accessed = {b for launched in _all(node) for b in launched.accessed_buffers}
        reads |= {_SCRATCH for b in accessed if b.space == "scratch"}
        reads |= accessed & self.by_value
        if self.indirect and body_graphs(node):
            reads |= {("the address of", launched) for launched in accessed & self.indirect}
        return frozenset(reads), frozenset(writes)

    def within(self, node: Node) -> Iterator[Race]:
        """The races inside one launch: nests run side by side, and a nest reads no byte of what it
        writes but through the buffer itself.
        """
        nests = node.kernel.nests if isinstance(node, KernelNode) else ()
        for nest in nests:
            yield from self._overlaps(node, nest_reads(nest), nest_writes(nest))
        if not nests:
            yield from self._overlaps(node, node.reads, node.writes)
        for one, other in combinations(nests, 2):
            yield from self._beside(node, one, other)

    def _overlaps(
        self, node: Node, reads: Iterable[Buffer], writes: Iterable[Buffer]
    ) -> Iterator[Race]:
        """Two buffers of one nest, of which one is written, that share bytes."""
        written = [buffer for buffer in writes if buffer in self.places.shared]
        others = [buffer for buffer in {*reads, *writes} if buffer in self.places.shared]
        for one in written:
            for other in others:
                if one is not other and not self.places.of((one,)).isdisjoint(
                    self.places.of((other,))
                ):
                    yield Race(node, None, f"bytes of {one} that are also in {other}")

    def _beside(self, node: Node, one: Nest, other: Nest) -> Iterator[Race]:
        predicates = getattr(one, "predicates", ()), getattr(other, "predicates", ())
        if never_together(*predicates):
            return
        place = self.places.of
        first = place(nest_reads(one)), place(nest_writes(one))
        second = place(nest_reads(other)), place(nest_writes(other))
        for shared in (first[1] & (second[0] | second[1])) | (first[0] & second[1]):
            yield Race(
                node, None, f"{self.places.text(shared)}, which another of its nests accesses"
            )


@dataclass(frozen=True, slots=True)
class _Places:
    """The parts of the arena that buffers in `shared` are in, as each shares bytes with another."""

    shared: Mapping[Buffer, range]

    def of(self, buffers: Iterable[Resource]) -> frozenset[Resource]:
        """The parts in place of such buffers, and the other resources."""
        shared = self.shared
        found: list[Resource] = []
        for buffer in buffers:
            if buffer in shared:
                found += shared[buffer]  # type: ignore[index]
            else:
                found.append(buffer)
        return frozenset(found)

    def text(self, resource: Resource) -> str:
        """What a resource is called in messages."""
        if isinstance(resource, int):
            among = [str(buffer) for buffer, parts in self.shared.items() if resource in parts]
            return f"bytes of {' and '.join(sorted(among))}"
        if isinstance(resource, tuple):
            return " ".join(map(str, resource))
        return str(resource)


def _places(offsets: Mapping[Buffer, int]) -> _Places:
    spans = sorted((start, start + max(b.type.nbytes, 1), b.number) for b, start in offsets.items())
    by_number = {buffer.number: buffer for buffer in offsets}
    shared: set[int] = set()
    end, last = -1, -1
    for start, stop, number in spans:
        if start < end:
            shared |= {last, number}
        if stop > end:
            end, last = stop, number
    cuts = sorted({cut for start, stop, n in spans if n in shared for cut in (start, stop)})
    position = {cut: number for number, cut in enumerate(cuts)}
    return _Places(
        {by_number[n]: range(position[a], position[b]) for a, b, n in spans if n in shared}
    )


def _all(node: Node) -> Iterator[Node]:
    """A node, and every node of its bodies."""
    yield node
    for body in node.bodies:
        yield from walk(body)


def _own(node: Node) -> tuple[set[Any], set[Any]]:
    """What a node accesses without its bodies."""
    reads: set[Any] = set(node.reads)
    writes: set[Any] = set(node.writes)
    if node.is_ordered:
        writes.add(_EFFECTS)
    (writes if node.is_barrier else reads).add(_BARRIER)
    if isinstance(node, ConditionalNode):
        reads.add(("condition", node.condition))
    if isinstance(node, WhileNode):
        reads.add(_PROGRESS)
    for nest in node.kernel.nests if isinstance(node, KernelNode) else ():
        if isinstance(nest, PrintNest | CallNest):
            writes.add(_EFFECTS)
        for signal in nest_signals(nest):
            match signal:
                case SetCondition(condition=condition):
                    writes.add(("condition", condition))
                case Require():
                    writes.add(_EFFECTS)
                case Publish():
                    reads.add(_EFFECTS)
                    writes.add(_PROGRESS)
    return reads, writes


def _unordered(
    graph: Graph, accesses: Sequence[_Accesses], text: Callable[[Resource], str]
) -> Iterator[Race]:
    """The pairs that access one resource, which one of them writes, and that no path orders.

    Each node is compared with the last that wrote what it accesses, and with those that have read
    what it writes since then: what is ordered behind these is behind all earlier ones.
    """
    if len(accesses) < 2:
        return
    over = _over(graph)
    writer: dict[Resource, int] = {}
    readers: dict[Resource, list[int]] = {}
    for j, (reads, writes) in enumerate(accesses):
        found: dict[int, set[str]] = {}
        done = over[j]
        for resource in reads:
            i = writer.get(resource, -1)
            if i >= 0 and not done >> i & 1:
                found.setdefault(i, set()).add(text(resource))
        for resource in writes:
            i = writer.get(resource, -1)
            if i >= 0 and not done >> i & 1:
                found.setdefault(i, set()).add(text(resource))
            for i in readers.pop(resource, ()):
                if not done >> i & 1:
                    found.setdefault(i, set()).add(text(resource))
            writer[resource] = j
        for resource in reads - writes if writes else reads:
            readers.setdefault(resource, []).append(j)
        for i, shared in found.items():
            yield Race(graph.nodes[i], graph.nodes[j], ", ".join(sorted(shared)))


def _over(graph: Graph) -> list[int]:
    """For each node, a bit for each node that is over when it begins."""
    before: list[list[int]] = [[] for _ in graph.nodes]
    for i, j in graph.edges:
        before[j].append(i)
    over: list[int] = []
    for earlier in before:
        mask = 0
        for i in earlier:
            mask |= over[i] | 1 << i
        over.append(mask)
    return over
