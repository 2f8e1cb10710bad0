"""The driver: one device, its memory, its streams, and graphs that are built and launched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from lowering.cuda.interface.graph_nodes import (
    CapturedKernelHandle,
    GraphMemory,
    KernelNodeHandle,
    NodesView,
    TiedGraph,
)
from lowering.cuda.interface.handles import (
    Allocation,
    Event,
    ForeignArray,
    HostAllocation,
    SharedAllocation,
    Timer,
)
from lowering.cuda.interface.launch import Launch
from lowering.cuda.interface.libraries import Library
from lowering.cuda.libraries.capture_lock import CaptureLock
from lowering.plan.owners import SlotTable

if TYPE_CHECKING:
    from lowering.plan.conditional_nodes import ConditionalKind

__all__ = ["LOOKED_AT", "Driver", "ThreadState"]

LOOKED_AT = 8
"""Exported graphs that a build or an allocation looks at, to release what gone ones kept alive."""


class ThreadState(Protocol):
    """The state of a driver in the thread that reads it."""

    @property
    def ready(self) -> bool:
        """True. The first read in a thread makes the device current there."""


class Driver(Protocol):
    """One device, one stream of launches and copies, and one stream to capture on.

    `on` returns a driver that launches and copies on another stream, and shares all else.
    """

    ordinal: int
    name: str
    arch: str
    cuda_version: tuple[int, int]
    multiprocessors: int
    stream: int
    capture_lock: CaptureLock
    thread: ThreadState

    def activate(self) -> None:
        """Make the device current in this thread."""

    def allocate(self, nbytes: int) -> Allocation:
        """Device memory of at least one byte; raises MemoryError when there is not enough."""

    def trim(self) -> None:
        """Give freed memory back to the device, once the stream has passed the free.

        Also memory that is kept for launches of graphs that allocate.
        """

    def trim_host(self) -> None:
        """Give pinned memory that is kept for later back, which waits for the device.

        So no kernel may be waiting for the host.
        """

    def graph_memory(self) -> int:
        """The bytes that are in use by launches of graphs that allocate, or kept for them."""

    def grant_access(self, ordinals: Sequence[int]) -> None:
        """Let the devices with these numbers access memory of this one, also by later allocations.

        Raises:
            RuntimeError: one of them cannot.
        """

    def allocate_shared(self, nbytes: int) -> SharedAllocation:
        """As `allocate`, of memory that other processes of the machine can open."""

    def open_shared(self, name: bytes) -> int:
        """The address of memory that another process has allocated to be shared, by its name.

        Raises:
            RuntimeError: it cannot be reached.
        """

    def memory_info(self) -> tuple[int, int]:
        """The free bytes of the device, and all of them."""

    def allocate_host(self, nbytes: int) -> HostAllocation:
        """Pinned host memory; raises MemoryError when there is not enough."""

    def raise_flag(self, pointer: int, *, at_once: bool = False) -> None:
        """Set a 32-bit word in device memory to 1 at once, even while the stream is busy; to 2 with
        `at_once`, which also ends loops that devices leave together.
        """

    def clear(self, pointer: int, nbytes: int) -> None:
        """Set bytes to zero, in stream order."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes within the device, in stream order."""

    def copy_to_device(self, pointer: int, source: np.ndarray[Any, Any]) -> bool:
        """Copy a contiguous host array; whether it must stay as it is until the copy has run."""

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Copy into a contiguous host array and wait for it."""

    def write_word(self, pointer: int, value: int) -> None:
        """Write a word of 32 bits of pinned memory, in stream order."""

    def synchronize(self) -> None:
        """Wait for the stream.

        Raises:
            DeviceLostError: a launch has failed on the device, after which every call fails.
        """

    def record(self) -> Event:
        """An event behind all work that is on the stream now."""

    def wait(self, event: Event) -> None:
        """Let later work on the stream wait for an event of any stream; the host does not wait."""

    @property
    def follows_legacy(self) -> bool:
        """Whether CUDA orders the stream with the legacy default stream: what is in either comes
        before what the other is given later.
        """

    def await_stream(self, stream: int) -> None:
        """Let later work wait for what is in the stream with this handle, of the same device."""

    def hand_over(self, event: Event, stream: int) -> None:
        """Let later work on the stream with this handle wait for an event."""

    def on(self, stream: int, owner: Any) -> Driver:
        """The same device by the stream with this handle, which `owner` keeps open.

        Raises:
            ValueError: the stream belongs to another device.
        """

    def create_stream(self, priority: int | None = None) -> Any:
        """A new stream, an object with ``__cuda_stream__``, destroyed when it is collected.

        Its priority is one of `priorities`; the lowest, if none is given.
        """

    def locate(self, address: int) -> str | None:
        """Where an address is: ``"cuda:0"``, ``"host"`` if it is pinned there, None if unknown."""

    def retained(self, owner: Any) -> Any:
        """What keeps the allocation behind an owner, though that is closed; None if the owner does.

        Raises:
            RawMemoryError: it is closed.
        """

    def is_capturing(self, stream: int) -> bool:
        """Whether the stream with this handle is being captured; a capture stays as it is."""

    def takes_nodes(self, stream: int) -> bool:
        """Whether the capture of the stream with this handle can go on.

        It cannot if it has failed, or if the stream is the legacy default one, and another stream
        is captured that is ordered with it.
        """

    def beside_captures(self) -> AbstractContextManager[None]:
        """Let this thread allocate, wait and load code on other streams while some are captured.

        Otherwise those calls would be refused, and would end the captures.
        """

    def add_to_capture(self, stream: int, graph: Any) -> None:
        """Make a graph, which owns what it points to, a child of the one that other code captures
        on a stream, by handle.

        It comes behind what the stream has captured, and before what follows. The child keeps
        alive what the graph does. If this fails, the capture goes on.

        Raises:
            ValueError: the stream belongs to another device.
        """

    def foreign(self, array: object, *, ordered: bool = True) -> ForeignArray | None:
        """The device memory behind DLPack or ``__cuda_array_interface__``; None if `array` has
        neither, or is in host memory.

        If `ordered`, the stream waits for its producer.
        """

    def load(self, code: Any) -> Any:
        """Load compiled code as a module."""

    def kernel(self, module: Any, name: str) -> Any:
        """A kernel of a module."""

    def parameter_sizes(self, kernel: Any) -> tuple[int, ...] | None:
        """The bytes of each parameter of a kernel; None if that is not known."""

    def resident_blocks(self, launch: Launch) -> int:
        """How many blocks of a launch are resident at the same time, at most."""

    def launch_kernel(self, launch: Launch, values: Sequence[int]) -> None:
        """Run a kernel on the stream, outside any graph."""

    def new_graph(self) -> Any:
        """An empty graph."""

    @property
    def stored_conditions(self) -> HostAllocation | None:
        """Memory of conditions for the host to read; None where graphs have conditional handles."""

    def create_condition(self, graph: Any) -> tuple[Any, int]:
        """A condition for a conditional node in `graph`, and its handle as a kernel parameter."""

    def add_kernel(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        launch: Launch,
        values: Sequence[int],
        pdl: Sequence[Any] = (),
    ) -> KernelNodeHandle:
        """Add a kernel node. Nothing that it points to is kept alive: see `tie`.

        `pdl` are further dependencies, by programmatic (PDL) edges: kernel nodes for whose end the
        kernel waits itself, so that it may start before.
        """

    def add_memory(self, graph: Any, nbytes: int) -> GraphMemory:
        """Add a node that allocates memory, of at least one byte, for each launch.

        Such a graph can have one executable, and cannot be a child graph.

        Raises:
            MemoryError: there are not enough addresses. A lack of memory shows only at launch.
        """

    def add_free(self, graph: Any, dependencies: Sequence[Any], memory: GraphMemory) -> Any:
        """Add the node that frees it."""

    def add_host(
        self, graph: Any, dependencies: Sequence[Any], function: int, argument: int
    ) -> Any:
        """Add a node that calls the C function at an address, in a thread of the driver."""

    def add_copy(
        self, graph: Any, dependencies: Sequence[Any], target: int, source: int, nbytes: int
    ) -> Any:
        """Add a node that copies bytes within the device."""

    def add_child(self, graph: Any, dependencies: Sequence[Any], handle: int) -> Any:
        """Add a node that runs a clone of the graph with this handle."""

    def add_event(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        action: Literal["record", "wait"],
        handle: int,
    ) -> Any:
        """Add a node that records the event with this handle, or waits for it."""

    def create_timer(self) -> Timer:
        """A new event, destroyed when it is collected."""

    def node_kinds(self, handle: int) -> tuple[str, ...]:
        """The kind of every node of the graph with this handle, including those of child graphs.

        Names are those of `capture`.
        """

    def add_conditional(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        kind: ConditionalKind,
        condition: Any,
        branches: int,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Add a conditional node; the node and its body graphs."""

    def capture(
        self, graph: Any, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Capture what `issue` puts on the capture stream into `graph`.

        Returns the nodes that later work depends on, and the kind of every node captured. No
        capture is left open, whatever `issue` raises.
        """

    def capture_kernels(
        self, graph: Any, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[CapturedKernelHandle, ...]:
        """As `capture`, of what is kernels alone, each behind the one before, which are returned.

        Raises:
            UnrepeatableCaptureError: it is anything else.
        """

    def capture_aside(self, issue: Callable[[], None]) -> Sequence[Any]:
        """Capture what `issue` puts on the capture stream aside: kernels, each behind the one
        before, which keep what the library has tied to their graph.

        Raises:
            UnrepeatableCaptureError: it is anything else.
        """

    def add_captured(self, graph: Any, dependencies: Sequence[Any], kernel: Any) -> Any:
        """Add a copy of a kernel that was captured aside; the node."""

    def recapture(self, kernels: Sequence[Any], issue: Callable[[], None]) -> Sequence[Any]:
        """Capture what `issue` puts on the capture stream aside, for the parameters that such
        `kernels` would have: something to `take` for each, in order. Nothing else is changed.

        Raises:
            UnrepeatableCaptureError: it is other kernels.
        """

    def library(self, kind: Callable[[int], Library]) -> Library:
        """The handle that `kind` makes for the capture stream; it is made once."""

    def synchronize_capture_stream(self) -> None:
        """Wait for work issued there outside a capture."""

    def tie(self, graph: Any, slots: SlotTable) -> TiedGraph:
        """Let a complete graph keep `slots` alive itself, wherever it goes, by a CUDA user object.

        They live until the result, the graph, all executables and graphs made from it, and all
        launches of those are gone. If the graph was given away, the `release_tied` after that
        releases them.
        """

    def release_tied(self, most: int = ...) -> None:
        """Release what gone graphs kept alive; looks at `most` graphs, round robin."""

    def node_key(self, node: Any) -> Hashable:
        """What identifies a node among all others of its graph and the bodies in it."""

    def node_keys(self, graph: Any) -> Collection[Hashable]:
        """The keys of all nodes of a graph or a body, those of bodies inside not included."""

    def instantiate(self, graph: Any, *, hosts: bool = False) -> Any:
        """An executable of a tied graph, which it holds until it is closed.

        With `hosts`, the graph calls functions of the host, and launches also keep what it holds.

        Raises:
            RefusedGraphError: something about the graph does not do.
        """

    def instantiate_given(
        self, graph: Any, *, upload_stream: int | None = None, use_node_priority: bool = False
    ) -> Any:
        """An executable of a graph that was given away, which itself keeps alive what that does.

        It is uploaded in the order of the stream with this handle, and runs kernels by the
        priorities of their nodes, if that is asked for.

        Raises:
            RefusedGraphError: something about the graph does not do.
            ValueError: the stream belongs to another device.
        """

    def view(self, graph: Any, bodies: Mapping[Hashable, Sequence[Any]]) -> NodesView:
        """The nodes and edges of a complete graph, and of the `bodies` in it, by the key of their
        conditional node: before CUDA 13.2, a driver does not say which they are.
        """

    def set_enabled(self, executable: Any, node: Any, enabled: bool) -> None:
        """Let launches of an executable run a node of the graph it was made of, or leave it out."""

    def is_enabled(self, executable: Any, node: Any) -> bool:
        """Whether they run it."""

    def set_priority(self, node: Any, priority: int) -> None:
        """Give a kernel node, as `view` returns it, a priority."""

    def priority(self, node: Any) -> int:
        """The priority of a kernel node."""

    @property
    def priorities(self) -> tuple[int, int]:
        """The lowest priority of streams and kernels, and the highest, which is less or equal."""

    def update_whole(self, executable: Any, graph: Any) -> None:
        """Give an executable all parameters, and what they keep alive, of a graph given away.

        The executable is one of this driver, or an object whose `handle` is the driver's.

        Raises:
            RefusedGraphError: they differ in what cannot be updated; nothing was changed.
            ClosedGraphError: it is closed.
        """

    def updater(self, executable: Any, kernel: Any) -> Callable[[], None]:
        """A function that updates a kernel node to its parameters at the time of the call."""

    def upload(self, executable: Any) -> None:
        """Bring it to the device, in stream order, as the first launch would."""

    def launcher(self, executable: Any) -> Callable[[], None]:
        """A function that launches on the stream, without waiting."""

    def close(self, executable: Any) -> None:
        """Free the executable; no launch of it may be in flight."""
