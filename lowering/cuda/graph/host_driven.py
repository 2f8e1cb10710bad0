"""Host-driven control flow: loops and branches without conditional nodes.

It is used on request: to debug a loop, and where other processes run WHILE nodes on the same GPU,
which then fail now and then. A graph is cut at its conditional nodes into segments without
conditionals, which are launched one by one. At a conditional the host waits, reads the condition
from pinned memory, where kernels store it, and launches the chosen body.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from inspect import isfunction, signature
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.effects.print_ring import PrintRing
from lowering.cuda.interface import (
    CapturedKernelHandle,
    Driver,
    KernelNodeHandle,
    Launch,
    SharedWords,
    Words,
)
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.calls.rendezvous import place
from lowering.plan.owners import SlotTable
from tracegraph import limits
from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from lowering.plan.conditional_nodes import ConditionalKind

STORED_CONDITIONS = "#define TRACEGRAPH_STORED_CONDITIONS\n"
"""Put before a unit, it makes kernels store a condition at the address given as its handle."""

WORD = 4
"""Bytes of a stored condition."""


def host_driven(
    driver: Driver, conditions: int, check: Callable[[], None] = limits.check
) -> Driver:
    """A driver like this one, whose graph may hold this many conditionals.

    A launch returns when the last condition is known; the segments after it still run then. While
    it waits, it calls `check`, which may end it by an exception.
    """
    return cast(Driver, _HostDriven(driver, conditions, check))


def begin_segment(driver: Driver, graph: CutGraph) -> None:
    """Let what is added to a graph from here on be in a segment of its own; `driver` is one that
    `host_driven` has made.
    """
    cast(_HostDriven, driver).begin_segment(graph)


def drive(
    launch: Callable[[], None],
    effects: Effects | None,
    prints: PrintRing | None,
    timeline: Timeline,
) -> None:
    """Launch a host-driven graph, and show its progress and prints meanwhile.

    Raises:
        TimeLimitError: the time of a `time_limit` was up.
        Exception: what a callback raised.
    """
    if effects is None:
        launch()
        return
    ended: list[Callable[[], bool]] = []
    timeline.watcher.follow(effects, lambda: bool(ended) and ended[0](), prints)
    try:
        launch()
    except BaseException as error:
        if place.together is None:  # else it is ended together with the other devices
            if effects.waits:
                timeline.stop(error)
            timeline.driver.synchronize()  # what was launched ends by itself
            effects.ignore_failure()
        raise
    finally:
        ended.append(timeline.driver.record())


@dataclass(slots=True, eq=False)
class Segment:
    """Consecutive nodes without conditionals, as one graph."""

    graph: Any


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """A conditional node: the number of its condition, and its bodies."""

    kind: ConditionalKind
    condition: int
    bodies: tuple[CutGraph, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CutGraph:
    """A graph or a body as segments and conditionals that run one after the other."""

    parts: list[Segment | Conditional] = field(default_factory=list)

    def segments(self) -> Iterator[Segment]:
        """Every segment, those of bodies included."""
        for part in self.parts:
            if isinstance(part, Segment):
                yield part
            else:
                for body in part.bodies:
                    yield from body.segments()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CutExecutable:
    """An executable: of each segment of a graph an own one, and what launches that."""

    graph: CutGraph
    executables: Mapping[Segment, Any]
    launches: Mapping[Segment, Callable[[], None]]


@dataclass(frozen=True, slots=True, eq=False)
class CutNode:
    """A node and the segment that it is in."""

    segment: Segment
    node: Any


_Handle = TypeVar("_Handle", KernelNodeHandle, CapturedKernelHandle)


@dataclass(frozen=True, slots=True, eq=False)
class _CutHandle(Generic[_Handle]):
    segment: Segment
    kernel: _Handle

    @property
    def node(self) -> CutNode:
        """The node, as a dependency of others."""
        return CutNode(self.segment, self.kernel.node)


class CutKernel(_CutHandle[KernelNodeHandle]):
    """A kernel node, with its parameters."""

    __slots__ = ()

    @property
    def values(self) -> Words:
        """Its parameters; an update passes their values at that time."""
        return self.kernel.values

    def share(self, position: int, words: SharedWords, number: int) -> None:
        """As the kernel node in the segment."""
        self.kernel.share(position, words, number)


class CutCapturedKernel(_CutHandle[CapturedKernelHandle]):
    """A kernel node that a library's call was captured as."""

    __slots__ = ()

    def take(self, parameters: Any) -> None:
        """As the kernel node in the segment."""
        self.kernel.take(parameters)


_ADDING = frozenset(
    name
    for name, call in vars(Driver).items()
    if isfunction(call) and {"graph", "dependencies"} <= signature(call).parameters.keys()
)
"""The calls that add nodes to a graph."""


class _HostDriven:
    """Handles what concerns graphs, and passes all else to `driver`.

    Calls of the driver that add a node to a graph, and that it lacks, add it to the open segment.
    """

    def __init__(self, driver: Driver, conditions: int, check: Callable[[], None]) -> None:
        self._driver = driver
        self._check = check
        self.stored_conditions = driver.allocate_host(WORD * max(conditions, 1))
        self._conditions = self.stored_conditions.bytes.view(np.uint32)
        self._created = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._driver, name)
        return partial(self._add, call) if name in _ADDING else call

    def _add(
        self, call: Callable[..., Any], graph: CutGraph, dependencies: Sequence[CutNode], *rest: Any
    ) -> CutNode:
        segment = self._open_segment(graph)
        return CutNode(segment, call(segment.graph, _within(segment, dependencies), *rest))

    # Building

    def new_graph(self) -> CutGraph:
        return CutGraph()

    def create_condition(self, graph: CutGraph) -> tuple[int, int]:
        number = self._created
        self._created += 1
        return number, self.stored_conditions.pointer + WORD * number

    def add_kernel(
        self,
        graph: CutGraph,
        dependencies: Sequence[CutNode],
        launch: Launch,
        values: Sequence[int],
        pdl: Sequence[CutNode] = (),
    ) -> CutKernel:
        segment = self._open_segment(graph)
        before, primaries = _within(segment, dependencies), _within(segment, pdl)
        added = self._driver.add_kernel(segment.graph, before, launch, values, primaries)
        return CutKernel(segment, added)

    def capture(
        self, graph: CutGraph, dependencies: Sequence[CutNode], issue: Callable[[], None]
    ) -> tuple[tuple[CutNode, ...], tuple[str, ...]]:
        segment = self._open_segment(graph)
        before = _within(segment, dependencies)
        ends, kinds = self._driver.capture(segment.graph, before, issue)
        return tuple(CutNode(segment, end) for end in ends), kinds

    def capture_kernels(
        self, graph: CutGraph, dependencies: Sequence[CutNode], issue: Callable[[], None]
    ) -> tuple[CutCapturedKernel, ...]:
        segment = self._open_segment(graph)
        before = _within(segment, dependencies)
        kernels = self._driver.capture_kernels(segment.graph, before, issue)
        return tuple(CutCapturedKernel(segment, kernel) for kernel in kernels)

    def recapture(
        self, kernels: Sequence[CutCapturedKernel], issue: Callable[[], None]
    ) -> Sequence[Any]:
        return self._driver.recapture([kernel.kernel for kernel in kernels], issue)

    def add_conditional(
        self,
        graph: CutGraph,
        dependencies: Sequence[CutNode],
        kind: ConditionalKind,
        condition: int,
        branches: int,
    ) -> tuple[Conditional, tuple[CutGraph, ...]]:
        inner = tuple(CutGraph() for _ in range(branches))
        node = Conditional(kind, condition, inner)
        graph.parts.append(node)
        return node, inner

    def begin_segment(self, graph: CutGraph) -> None:
        """Add a new segment."""
        graph.parts.append(Segment(self._driver.new_graph()))

    def _open_segment(self, graph: CutGraph) -> Segment:
        """The segment at the end of a graph."""
        if not graph.parts or not isinstance(graph.parts[-1], Segment):
            self.begin_segment(graph)
        last = graph.parts[-1]
        assert isinstance(last, Segment)
        return last

    def tie(self, graph: CutGraph, slots: SlotTable) -> CutGraph:
        for segment in graph.segments():
            segment.graph = self._driver.tie(segment.graph, slots)
        return graph

    def node_key(self, node: Any) -> Hashable:
        return self._driver.node_key(node.node) if isinstance(node, CutNode) else id(node)

    def node_keys(self, graph: CutGraph) -> Collection[Hashable]:
        parts = (part for part in graph.parts if isinstance(part, Segment))
        return [key for part in parts for key in self._driver.node_keys(part.graph)]

    # Running

    def instantiate(self, graph: CutGraph, *, hosts: bool = False) -> CutExecutable:
        executables, launches = {}, {}
        for segment in graph.segments():
            made = executables[segment] = self._driver.instantiate(segment.graph, hosts=hosts)
            launches[segment] = self._driver.launcher(made)
        return CutExecutable(graph, executables, launches)

    def updater(
        self, executable: CutExecutable, kernel: CutKernel | CutCapturedKernel
    ) -> Callable[[], None]:
        return self._driver.updater(executable.executables[kernel.segment], kernel.kernel)

    def upload(self, executable: CutExecutable) -> None:
        for each in executable.executables.values():
            self._driver.upload(each)

    def launcher(self, executable: CutExecutable) -> Callable[[], None]:
        return partial(self._launch, executable.graph, executable.launches)

    def _launch(self, graph: CutGraph, launches: Mapping[Segment, Callable[[], None]]) -> None:
        for part in graph.parts:
            if isinstance(part, Segment):
                launches[part]()
            elif part.kind == "while":
                while self._condition(part.condition):
                    self._launch(part.bodies[0], launches)
            else:
                chosen = _branch(part.kind, self._condition(part.condition))
                self._launch(part.bodies[chosen], launches)

    def _condition(self, number: int) -> int:
        """The value of a condition, after a wait for all that was launched.

        The wait polls, so that signals and the time limit can end it.
        """
        passed = self._driver.record()
        while not passed():
            self._check()
            time.sleep(0)
        self._check()
        return int(self._conditions[number])

    def close(self, executable: CutExecutable) -> None:
        for each in executable.executables.values():
            self._driver.close(each)


def _branch(kind: ConditionalKind, value: int) -> int:
    """The position of the body that is run."""
    return value if kind == "switch" else int(value == 0)


def _within(segment: Segment, dependencies: Sequence[Any]) -> list[Any]:
    """The dependencies in a segment; stream order keeps those on earlier parts."""
    return [d.node for d in dependencies if isinstance(d, CutNode) and d.segment is segment]
