"""What the recording driver hands out: graphs, memory, streams, events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from lowering.cuda.interface import Gemm, Launch, SharedWords
from lowering.plan.owners import SlotTable
from tracegraph.generated.dataclass import dataclass


class Busy(Protocol):
    """A stream whose loops end when the test says so."""

    busy: bool


@dataclass(slots=True, eq=False)
class RecordedNode:
    """A node: kind ``"kernel"``, ``"library"`` or that of a conditional, a name, and its edges, of
    which some are `pdl`.

    `values` are what an update of an executable passes; the graph has those it was `added` with.
    """

    kind: str
    name: str
    dependencies: tuple[RecordedNode, ...]
    bodies: tuple[RecordedGraph, ...] = ()
    condition: int | None = None
    launch: Launch | None = None
    values: list[int] = field(default_factory=list)
    pdl: frozenset[RecordedNode] = frozenset()
    shared: dict[int, tuple[SharedWords, int]] = field(default_factory=dict)
    priority: int = 0
    added: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.added = tuple(self.values)

    @property
    def node(self) -> RecordedNode:
        """A kernel node is its own handle."""
        return self

    def behind(self) -> set[RecordedNode]:
        """The node and all that it waits for."""
        return {self}.union(*(before.behind() for before in self.dependencies))

    def share(self, position: int, words: SharedWords, number: int) -> None:
        """From its next update on, the value at a position is a word of others."""
        self.shared[position] = words, number

    def take(self, parameters: Sequence[int]) -> None:
        """Let updates pass these values."""
        self.values[:] = parameters

    def read_shared(self) -> None:
        """Take what is in shared words now."""
        for position, (words, number) in self.shared.items():
            self.values[position] = words[number]


@dataclass(slots=True, eq=False, weakref_slot=True)
class RecordedGraph:
    """A graph or a body, its nodes in the order they were added, and its conditions.

    `tied` is what the graph itself keeps alive, `allocated` the bytes that its launches allocate.
    """

    nodes: list[RecordedNode] = field(default_factory=list)
    conditions: list[int] = field(default_factory=list)
    tied: SlotTable | None = None
    allocated: int = 0

    @property
    def definition(self) -> RecordedGraph:
        """A tied graph is its own handle."""
        return self

    @property
    def edges(self) -> set[tuple[int, int]]:
        """Edges as positions in `nodes`."""
        return {
            (self.nodes.index(before), position)
            for position, node in enumerate(self.nodes)
            for before in node.dependencies
        }

    def walk(self) -> Iterator[RecordedNode]:
        """Every node, those of bodies included."""
        for node in self.nodes:
            yield node
            for body in node.bodies:
                yield from body.walk()


@dataclass(slots=True, eq=False, weakref_slot=True)
class RecordedExecutable:
    """An instantiated graph: it holds the graph, which has what both point to, and the values."""

    graph: RecordedGraph
    closed: bool = False
    values: dict[RecordedNode, tuple[int, ...]] = field(init=False)
    source: RecordedGraph = field(init=False)  # what it was made of, whose nodes are switched
    disabled: set[RecordedNode] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.source = RecordedGraph(self.graph.nodes)
        self.become(self.graph)

    def become(self, graph: RecordedGraph) -> None:
        """Take over the values of a graph, and what it keeps alive."""
        self.graph = graph
        self.values = {node: node.added for node in graph.walk()}

    @property
    def slots(self) -> SlotTable | None:
        """What it keeps alive."""
        return self.graph.tied

    def close(self) -> None:
        """Let go of the graph."""
        self.closed, self.graph, self.source = True, RecordedGraph(), RecordedGraph()


@dataclass(slots=True, eq=False, weakref_slot=True)
class RecordedMemory:
    """Memory that does not exist, at an address that is used once."""

    pointer: int
    nbytes: int

    @property
    def name(self) -> bytes:
        """By which others open it."""
        return self.pointer.to_bytes(8, "big")


@dataclass(frozen=True, slots=True, eq=False)
class RecordedGraphMemory:
    """Memory that launches of a graph have."""

    node: RecordedNode
    pointer: int
    nbytes: int


@dataclass(slots=True, eq=False, weakref_slot=True)
class RecordedHostMemory:
    """Host memory, which stands for pinned memory: tests write to it what kernels would."""

    bytes: np.ndarray[Any, np.dtype[np.uint8]]

    @property
    def pointer(self) -> int:
        return int(self.bytes.ctypes.data)


@dataclass(frozen=True, slots=True)
class RecordedThread:
    """There is no context."""

    ready: bool = True


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class RecordedStream:
    """A stream by its handle."""

    handle: int
    priority: int = 0

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle."""
        return 0, self.handle


@dataclass(frozen=True, slots=True, eq=False)
class RecordedEvent:
    """An event: the position in the log at which it was recorded, and what has to happen first."""

    position: int
    driver: Busy
    was_busy: bool
    before: tuple[RecordedEvent, ...]

    def __call__(self) -> bool:
        """Whether the stream is done with its loops, and with what it waits for."""
        return not (self.was_busy and self.driver.busy) and all(event() for event in self.before)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class RecordedTimer:
    """An event whose time is its handle."""

    handle: int

    def since(self, start: RecordedTimer) -> float:
        """The difference of both handles."""
        return float(self.handle - start.handle)


class RecordedLibrary:
    """Stands for a library's handle: the calls of its methods are recorded with the arguments."""

    def __init__(self, kind: Any, record: Callable[[str, tuple[Any, ...]], None]) -> None:
        self._kind, self._record = kind, record

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        self._record("use_workspace", (pointer, nbytes))

    def prepare(self, call: Any) -> RecordedPrepared:
        """Recorded; the handle stands for one of the library's class `prepared`."""
        self._record("prepare", (str(call.name),))
        return RecordedPrepared(self._kind.prepared, self._record)

    def __getattr__(self, operation: str) -> Callable[..., None]:
        if not hasattr(self._kind, operation):
            raise AttributeError(operation)

        def call(*arguments: Any) -> None:
            sizes = [(a.m, a.n, a.k) if isinstance(a, Gemm) else (a,) for a in arguments]
            self._record(operation, tuple(each for size in sizes for each in size))

        return call


class RecordedPrepared(RecordedLibrary):
    """Stands for the handle of one call of a library that plans its calls."""

    workspace_bytes = 4096
