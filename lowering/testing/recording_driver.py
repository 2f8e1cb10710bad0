"""Recording backend: the CUDA backend against a driver that only logs.

It needs no GPU, and can fail at its n-th call. So tests see which nodes, edges and owners a graph
would have, and what a failure leaves behind.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from lowering.backends.cuda import CudaBackend
from lowering.cuda.device import OpenDevice
from lowering.cuda.graph.capture_lock import CaptureLock
from lowering.cuda.interface import (
    Event,
    ForeignArray,
    GraphMemory,
    Launch,
    Library,
    ThreadState,
)
from lowering.errors import (
    ClosedGraphError,
    NestedCaptureError,
    RefusedGraphError,
    UnrepeatableCaptureError,
)
from lowering.legalization.features import Feature
from lowering.plan.conditional_nodes import ConditionalKind
from lowering.plan.owners import SlotTable
from lowering.testing.recorded_objects import (
    Call,
    RecordedEvent,
    RecordedExecutable,
    RecordedGraph,
    RecordedGraphMemory,
    RecordedHostMemory,
    RecordedLibrary,
    RecordedMemory,
    RecordedNode,
    RecordedStream,
    RecordedThread,
    RecordedTimer,
)
from tracegraph.weak_set import ConcurrentWeakSet


class InjectedError(RuntimeError):
    """The failure that a `RecordingDriver` injects."""


class RecordingDriver:
    """The driver interface as a log.

    Args:
        fail_at: the number of the call, from 1, that raises; None for never.
        library_kinds: the kinds of nodes that the capture of each call yields; one is recorded.
        memory: the bytes of the device; more cannot be allocated at a time.

    While `busy` is set, no loop ends: events recorded meanwhile are passed when it is reset, by
    hand or because a stop flag is raised. `flags` are the addresses of those that are up.

    `streams` has a driver for each stream, which share one log; each is busy by itself.
    `captured_streams` are the handles of those that other code captures, and `captures` their
    graphs. `relaxed` has the number of blocks of `beside_captures` that are open.
    `foreign_graphs` has the kinds of the nodes of others' graphs by handle; without an entry, one
    kernel.
    """

    def __init__(
        self,
        fail_at: int | None = None,
        library_kinds: Sequence[str] = ("kernel",),
        memory: int = 1 << 40,
    ) -> None:
        self.ordinal = 0
        self.name = "recording driver"
        self.arch = "sm_90"
        self.cuda_version = (13, 0)
        self.multiprocessors = 132
        self.stream = 1
        self.owner: Any = None
        self.calls: list[Call] = []
        self.graphs: list[RecordedGraph] = []
        self.capture_lock = CaptureLock()
        self.thread: ThreadState = RecordedThread()
        self.open_captures = 0
        self.fail_at = fail_at
        self._busy = False
        self._unwritten: list[tuple[int, int]] = []  # words behind what runs
        self.streams: list[RecordingDriver] = [self]
        self.flags: set[int] = set()
        self.captured_streams: set[int] = set()
        self.captures: defaultdict[int, RecordedGraph] = defaultdict(RecordedGraph)
        self.failed_captures: set[int] = set()
        self.relaxed = [0]
        self.foreign_graphs: defaultdict[int, tuple[str, ...]] = defaultdict(lambda: ("kernel",))
        self._logging = threading.RLock()
        self._waits: list[RecordedEvent] = []
        self.live_memory: ConcurrentWeakSet[RecordedMemory | RecordedHostMemory] = (
            ConcurrentWeakSet()
        )
        self.live_executables: ConcurrentWeakSet[RecordedExecutable] = ConcurrentWeakSet()
        self.memory = memory
        self._library_kinds = tuple(library_kinds)
        self._addresses = itertools.count(1)
        self._handles = itertools.count(100)
        self._conditions = itertools.count(1000)
        self._captured: list[list[Call]] = []  # of the open capture, on whichever stream
        self._libraries: dict[Callable[[int], Library], RecordedLibrary] = {}
        self._kept_for_graphs: dict[int, int] = {}  # by stream

    def _log(self, operation: str, *detail: Any) -> int:
        """Enter a call; its position."""
        with self._logging:
            call = Call(operation, detail, self.stream)
            self.calls.append(call)
            if len(self.calls) == self.fail_at:
                raise InjectedError(f"call {self.fail_at} fails as asked: {call}")
            return len(self.calls) - 1

    def on(self, stream: int, owner: Any) -> RecordingDriver:
        """The same, with another stream in the log."""
        other = copy.copy(self)
        other.owner = owner
        other.stream, other._busy, other._waits, other._unwritten = stream, False, [], []
        self.streams.append(other)
        return other

    @property
    def busy(self) -> bool:
        """Whether loops run on the stream."""
        return self._busy

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._busy = busy
        while self._unwritten and not busy:
            self._write(*self._unwritten.pop(0))

    def create_stream(self) -> RecordedStream:
        """A new handle."""
        self._log("create_stream")
        return RecordedStream(next(self._handles))

    def wait(self, event: Event) -> None:
        """Logged with the position of the event."""
        assert isinstance(event, RecordedEvent), "events come from this driver"
        self._log("wait", event.position)
        self._waits = [*(e for e in self._waits if not e()), event]

    def hand_over(self, event: Event, stream: int) -> None:
        """Logged with the position of the event."""
        assert isinstance(event, RecordedEvent), "events come from this driver"
        self._log("hand_over", event.position, stream)

    def count(self, operation: str) -> int:
        """How often an operation was called."""
        return sum(call.operation == operation for call in self.calls)

    def activate(self) -> None:
        """There is no context."""

    def allocate(self, nbytes: int) -> RecordedMemory:
        """A new address; raises MemoryError if the device is full."""
        self._log("allocate", nbytes)
        if nbytes > self.memory_info()[0]:
            raise MemoryError(f"{nbytes} bytes are more than are free")
        memory = RecordedMemory(next(self._addresses) << 32, nbytes)
        self.live_memory.add(memory)
        return memory

    def trim(self) -> None:
        """Freed memory is never kept, but that of graphs' launches."""
        self._log("trim")
        self._kept_for_graphs.clear()

    def trim_host(self) -> None:
        """Host memory is never kept."""
        self._log("trim_host")

    def graph_memory(self) -> int:
        """What launches on all streams have used since memory was trimmed, each stream its own."""
        return sum(self._kept_for_graphs.values())

    def memory_info(self) -> tuple[int, int]:
        """What is not allocated, and all there is."""
        used = sum(m.nbytes for m in self.live_memory if isinstance(m, RecordedMemory))
        return self.memory - used - self.graph_memory(), self.memory

    def allocate_host(self, nbytes: int) -> RecordedHostMemory:
        """Memory that Python can read and write."""
        self._log("allocate_host", nbytes)
        memory = RecordedHostMemory(np.zeros(nbytes, np.uint8))
        self.live_memory.add(memory)
        return memory

    def raise_flag(self, pointer: int) -> None:
        """Loops that are in flight end."""
        self._log("raise_flag", pointer)
        self.flags.add(pointer)
        for stream in self.streams:
            stream.busy = False

    def clear(self, pointer: int, nbytes: int) -> None:
        """Logged."""
        self._log("clear", pointer, nbytes)
        self.flags.discard(pointer)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Logged."""
        self._log("copy", target, source, nbytes)

    def copy_to_device(self, pointer: int, source: np.ndarray[Any, Any]) -> bool:
        """Logged."""
        self._log("copy_to_device", pointer, source.nbytes)
        return False

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Zeros, for there is no memory."""
        self._log("copy_to_host", pointer, target.nbytes)
        target[...] = 0

    def write_word(self, pointer: int, value: int) -> None:
        """Written once the stream is not busy."""
        self._log("write_word", pointer)
        if self.busy:
            self._unwritten.append((pointer, value))
        else:
            self._write(pointer, value)

    def _write(self, pointer: int, value: int) -> None:
        for memory in self.live_memory:
            at = pointer - memory.pointer
            if isinstance(memory, RecordedHostMemory) and 0 <= at < memory.bytes.nbytes:
                memory.bytes[at : at + 4].view(np.uint32)[0] = value

    def synchronize(self) -> None:
        """Logged."""
        self._log("synchronize")

    def record(self) -> RecordedEvent:
        """An event of the present end of the stream."""
        position = self._log("record")
        before = tuple(event for event in self._waits if not event())
        return RecordedEvent(position, self, self.busy, before)

    def locate(self, address: int) -> str | None:
        """In which of the memory that is alive."""
        for memory in self.live_memory:
            on_device = isinstance(memory, RecordedMemory)
            nbytes = memory.nbytes if isinstance(memory, RecordedMemory) else memory.bytes.nbytes
            if memory.pointer <= address < memory.pointer + nbytes:
                return f"cuda:{self.ordinal}" if on_device else "host"
        return None

    def is_capturing(self, stream: int) -> bool:
        """Whether the stream is among `captured_streams`."""
        return stream in self.captured_streams

    def takes_nodes(self, stream: int) -> bool:
        """Whether the stream is among `captured_streams`, but not among `failed_captures`."""
        return stream in self.captured_streams - self.failed_captures

    @contextmanager
    def beside_captures(self) -> Iterator[None]:
        """Counted."""
        self.relaxed[0] += 1
        try:
            yield
        finally:
            self.relaxed[0] -= 1

    def add_to_capture(self, stream: int, graph: RecordedGraph) -> None:
        """A node of the graph in `captures`, which holds the child."""
        self._log("add_to_capture", stream)
        nodes = self.captures[stream].nodes
        nodes.append(RecordedNode("graph", "child", tuple(nodes[-1:]), (graph,)))

    def foreign(self, array: object, *, ordered: bool = True) -> ForeignArray | None:
        """What `__cuda_array_interface__` says, believed."""
        described = getattr(array, "__cuda_array_interface__", None)
        if described is None:
            return None
        self._log("foreign", ordered)
        dtype, shape = np.dtype(described["typestr"]), tuple(described["shape"])
        strides = described.get("strides") or np.empty(shape, dtype).strides
        return ForeignArray(
            described["data"][0],
            dtype,
            shape,
            tuple(stride // dtype.itemsize for stride in strides),
            0,
            array,
        )

    def load(self, code: Any) -> Any:
        """Logged."""
        self._log("load")
        return code

    def kernel(self, module: Any, name: str) -> str:
        """A kernel is its name."""
        return name

    def parameter_sizes(self, kernel: Any) -> tuple[int, ...] | None:
        """Those of an object that has cuda.core's description of them."""
        infos = getattr(kernel, "arguments_info", None)
        return None if infos is None else tuple([info.size for info in infos])

    def resident_blocks(self, launch: Launch) -> int:
        """By threads alone, 2048 in a multiprocessor."""
        return self.multiprocessors * (2048 // prod(launch.block))

    def launch_kernel(self, launch: Launch, values: Sequence[int]) -> None:
        """Logged."""
        self._log("launch_kernel", launch.kernel, *values)

    def new_graph(self) -> RecordedGraph:
        """Logged."""
        self._log("new_graph")
        graph = RecordedGraph()
        self.graphs.append(graph)
        return graph

    @property
    def stored_conditions(self) -> None:
        """None: graphs have conditions."""

    def create_condition(self, graph: RecordedGraph) -> tuple[int, int]:
        """A number that serves as condition and as handle."""
        self._log("create_condition")
        condition = next(self._conditions)
        graph.conditions.append(condition)
        return condition, condition

    def add_kernel(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        launch: Launch,
        values: Sequence[int],
        pdl: Sequence[RecordedNode] = (),
    ) -> RecordedNode:
        """A node; its edges come with it. Those that are `pdl` come from kernels of the graph."""
        self._log("add_kernel", launch.kernel, len(dependencies) + len(pdl))
        if any(node.kind != "kernel" for node in pdl):
            raise RuntimeError("a programmatic edge begins at a node that is no kernel")
        node = RecordedNode(
            "kernel",
            launch.kernel,
            (*dependencies, *pdl),
            launch=launch,
            values=list(values),
            pdl=frozenset(pdl),
        )
        graph.nodes.append(node)
        return node

    def add_memory(self, graph: RecordedGraph, nbytes: int) -> RecordedGraphMemory:
        """A root node."""
        self._log("add_memory", nbytes)
        node = RecordedNode("memory", f"allocate {nbytes}", ())
        graph.nodes.append(node)
        return RecordedGraphMemory(node, next(self._addresses) << 32, nbytes)

    def add_free(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        memory: GraphMemory,
    ) -> RecordedNode:
        """A node behind the last ones."""
        self._log("add_free", memory.nbytes)
        node = RecordedNode("memory", f"free {memory.nbytes}", tuple(dependencies))
        graph.nodes.append(node)
        graph.allocated += memory.nbytes
        return node

    def add_host(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        function: int,
        argument: int,
    ) -> RecordedNode:
        """A node that holds the addresses."""
        self._log("add_host", function, argument)
        return self._add(graph, dependencies, "host", "host", function, argument)

    def add_copy(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        target: int,
        source: int,
        nbytes: int,
    ) -> RecordedNode:
        """A node that holds both addresses and the size."""
        self._log("add_copy", target, source, nbytes)
        return self._add(graph, dependencies, "copy", "copy", target, source, nbytes)

    def add_child(
        self, graph: RecordedGraph, dependencies: Sequence[RecordedNode], handle: int
    ) -> RecordedNode:
        """A node that holds the handle."""
        self._log("add_child", handle)
        return self._add(graph, dependencies, "graph", "child", handle)

    def add_event(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        action: str,
        handle: int,
    ) -> RecordedNode:
        """A node that holds the handle."""
        self._log("add_event", action, handle)
        return self._add(graph, dependencies, "event", action, handle)

    def _add(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        kind: str,
        name: str,
        *values: int,
    ) -> RecordedNode:
        """A node that holds these values."""
        node = RecordedNode(kind, name, tuple(dependencies), values=list(values))
        graph.nodes.append(node)
        return node

    def create_timer(self) -> RecordedTimer:
        """A new handle."""
        self._log("create_timer")
        return RecordedTimer(next(self._handles))

    def node_kinds(self, handle: int) -> tuple[str, ...]:
        """Those in `foreign_graphs`."""
        self._log("node_kinds", handle)
        return self.foreign_graphs[handle]

    def add_conditional(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        kind: ConditionalKind,
        condition: int,
        branches: int,
    ) -> tuple[RecordedNode, tuple[RecordedGraph, ...]]:
        """A node with empty bodies; its condition must be one of `graph`, and free."""
        self._log("add_conditional", kind)
        if condition not in graph.conditions:
            raise RuntimeError(f"condition {condition} was not created for the graph of its node")
        graph.conditions.remove(condition)
        inner = tuple(RecordedGraph() for _ in range(branches))
        node = RecordedNode(kind, kind, tuple(dependencies), inner, condition)
        graph.nodes.append(node)
        return node, inner

    def capture(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        issue: Callable[[], None],
    ) -> tuple[tuple[RecordedNode, ...], tuple[str, ...]]:
        """One node for each product that is issued."""
        captured = self._issued(issue)
        nodes = tuple(RecordedNode("library", str(c), tuple(dependencies)) for c in captured)
        graph.nodes.extend(nodes)
        return nodes, self._library_kinds * max(len(nodes), 1)

    def capture_kernels(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        issue: Callable[[], None],
    ) -> tuple[RecordedNode, ...]:
        """A chain of nodes, whose values are what the library was given."""
        nodes: list[RecordedNode] = []
        for call in self._kernels(issue):
            before = tuple(nodes[-1:] or dependencies)
            node = RecordedNode("library", call.operation, before, values=list(call.detail))
            nodes.append(node)
        graph.nodes.extend(nodes)
        return tuple(nodes)

    def recapture(
        self, kernels: Sequence[RecordedNode], issue: Callable[[], None]
    ) -> list[tuple[int, ...]]:
        """What the library was given; it must be as many calls of the same names."""
        found = self._kernels(issue)
        if [call.operation for call in found] != [kernel.name for kernel in kernels]:
            raise UnrepeatableCaptureError("at other addresses it is other kernels")
        return [call.detail for call in found]

    def _kernels(self, issue: Callable[[], None]) -> list[Call]:
        """The calls that are issued, each captured as one kernel."""
        found = self._issued(issue)
        if set(self._library_kinds) != {"kernel"}:
            raise UnrepeatableCaptureError(f"it is {', '.join(self._library_kinds)} nodes")
        return found

    def _issued(self, issue: Callable[[], None]) -> list[Call]:
        """The calls of a library that a capture has."""
        if self.open_captures:
            raise NestedCaptureError
        self._log("begin_capture")
        self.open_captures += 1
        captured: list[Call] = []
        self._captured.append(captured)
        try:
            issue()
        finally:
            self._captured.pop()
            self.open_captures -= 1
        self._log("end_capture")
        return captured

    def library(self, kind: Callable[[int], Library]) -> RecordedLibrary:
        """A handle that records the calls of any library."""
        if kind not in self._libraries:
            self._libraries[kind] = RecordedLibrary(kind, self._call_library)
        return self._libraries[kind]

    def _call_library(self, operation: str, detail: tuple[Any, ...]) -> None:
        """Captured, or logged as a warm-up."""
        self._log(operation, *detail)
        if self._captured and operation != "use_workspace":
            self._captured[-1].append(Call(operation, detail))

    def synchronize_capture_stream(self) -> None:
        """Logged."""
        self._log("synchronize_capture_stream")

    def instantiate(self, graph: RecordedGraph, *, hosts: bool = False) -> RecordedExecutable:
        """Logged."""
        self._log("instantiate")
        executable = RecordedExecutable(graph)
        self.live_executables.add(executable)
        return executable

    def instantiate_given(self, graph: RecordedGraph) -> RecordedExecutable:
        """The same: the graph holds what it keeps alive."""
        return self.instantiate(graph)

    def update_whole(self, executable: RecordedExecutable, graph: RecordedGraph) -> None:
        """Logged; the executable becomes one of the graph, if that has the same nodes."""
        if executable.closed:
            raise ClosedGraphError
        self._log("update_whole")
        if len(executable.graph.nodes) != len(graph.nodes):
            raise RefusedGraphError("the graphs have other nodes or edges")
        for old, new in zip(executable.graph.walk(), graph.walk(), strict=False):
            if old.kind != new.kind:
                raise RefusedGraphError("the node was of another type", new)
            if len(old.dependencies) != len(new.dependencies):
                raise RefusedGraphError("the graphs have other nodes or edges", new)
        executable.become(graph)

    def node_key(self, node: RecordedNode) -> RecordedNode:
        """The node itself."""
        return node

    def node_keys(self, graph: RecordedGraph) -> list[RecordedNode]:
        """The nodes themselves."""
        return list(graph.nodes)

    def tie(self, graph: RecordedGraph, slots: SlotTable) -> RecordedGraph:
        """Logged; the graph, which executables hold, holds the slots."""
        self._log("tie")
        graph.tied = slots
        return graph

    def release_tied(self, most: int = 0) -> None:
        """Nothing: the slots go with the graph."""

    def updater(self, executable: RecordedExecutable, kernel: RecordedNode) -> Callable[[], None]:
        """A function that logs the update."""
        return lambda: self._update(executable, kernel)

    def _update(self, executable: RecordedExecutable, kernel: RecordedNode) -> None:
        """Logged with the parameter values."""
        if executable.closed:
            raise ClosedGraphError
        kernel.read_shared()
        self._log("update_kernel", kernel.name, *kernel.values)
        executable.values[kernel] = tuple(kernel.values)

    def upload(self, executable: RecordedExecutable) -> None:
        """Logged."""
        if executable.closed:
            raise ClosedGraphError
        self._log("upload")

    def launcher(self, executable: RecordedExecutable) -> Callable[[], None]:
        """A function that logs the launch."""
        return lambda: self._launch(executable)

    def _launch(self, executable: RecordedExecutable) -> None:
        """Logged."""
        if executable.closed:
            raise ClosedGraphError
        self._log("launch")
        allocated, kept = executable.graph.allocated, self._kept_for_graphs
        if allocated > kept.get(self.stream, 0):
            kept[self.stream] = allocated
            if self.memory_info()[0] < 0:
                raise MemoryError("the launch found no memory, and took all that there is")

    def close(self, executable: RecordedExecutable) -> None:
        """Logged."""
        self._log("close")
        executable.close()


class RecordingDevice(OpenDevice):
    """A device that compiles nothing, and has all features but those in `lacks`."""

    driver: RecordingDriver

    def __init__(self, driver: RecordingDriver, lacks: Collection[Feature] = ()) -> None:
        super().__init__(driver)
        self.compilers = 2
        self._lacks = frozenset(lacks)

    def supports(self, feature: Feature) -> bool:
        """Nothing runs, so nothing is tried."""
        return feature not in self._lacks

    def code_bytes(self, code: Any) -> int:
        """The length of the text."""
        return len(getattr(code, "source", code))

    def compile(self, source: str) -> str:
        """The source, in place of code."""
        return source

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> str:
        """The source, in place of code."""
        return source


class RecordingBackend(CudaBackend):
    """Compiles Plans against a `RecordingDriver`, in `device.driver`."""

    name = "recording"

    def __init__(
        self, driver: RecordingDriver | None = None, lacks: Collection[Feature] = ()
    ) -> None:
        super().__init__()
        self.device = self._opened = RecordingDevice(driver or RecordingDriver(), lacks)

    def _device(self) -> OpenDevice:
        return self.device
