"""CudaDevice: one GPU, its code and its graphs, as all of its streams share them.

Graphs and conditional nodes are made through cuda.core; kernel nodes by the driver's own call.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, StreamOptions
from cuda.core.graph import GraphDefinition

from lowering.cuda.interface import GraphMemory, Launch, Library, NodesView, ThreadState
from lowering.cuda.libraries.capture_lock import CaptureLock
from lowering.driver.addresses import locate
from lowering.driver.captured_kernels import (
    CapturedKernel,
    KernelParameters,
    captured_aside,
    captured_kernels,
    copied,
    recaptured_parameters,
)
from lowering.driver.core_buffers import retained
from lowering.driver.error_checks import called, check, scarce
from lowering.driver.executables import updater
from lowering.driver.foreign_captures import relax, relaxed, takes_nodes
from lowering.driver.graph_nodes import (
    DriverKernelNode,
    GraphMemoryNode,
    allow_shared_memory,
    child_node,
    conditional_node,
    copy_node,
    event_node,
    free_node,
    host_node,
    kernel_node,
    memory_node,
)
from lowering.driver.graph_views import is_enabled, priority, set_enabled, set_priority, view
from lowering.driver.graphs import captured, is_capturing, node_kinds, nodes
from lowering.driver.handles import CudaExecutableGraph, CudaModule, CudaTimer, PinnedAllocation
from lowering.driver.memory_resources import PinnedMemory
from lowering.driver.thread import Thread
from lowering.driver.user_objects import TiedGraph, UserObjects
from lowering.driver.whole_graphs import instantiated, update_whole
from lowering.plan.owners import SlotTable
from tracegraph.concurrency.hold_ups import alone_in_driver

if TYPE_CHECKING:
    from lowering.plan.conditional_nodes import ConditionalKind


class CudaDevice:
    """One GPU, through its primary context, with a stream to capture on.

    That stream is not ordered with CUDA's legacy default stream, which other libraries use.
    """

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._device = Device(ordinal)
        self._device.set_current()
        self._context = called(driver.cuCtxGetCurrent)
        self.thread: ThreadState = Thread(self._context)
        self._pinned = PinnedMemory()
        self.name = str(self._device.name)
        self.arch = f"sm_{self._device.arch}"
        version = int(called(driver.cuDriverGetVersion))
        self.cuda_version = (version // 1000, version % 1000 // 10)
        self.multiprocessors = int(self._device.properties.multiprocessor_count)
        self._handle = called(driver.cuDeviceGet, ordinal)
        self._capture_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
        self.capture_lock = CaptureLock()
        self._libraries: dict[Callable[[int], Library], Library] = {}
        self._user_objects = UserObjects(self._enter_watcher)

    def activate(self) -> None:
        self.thread.ready  # noqa: B018 - the first read does it

    def _enter_watcher(self) -> None:
        """Prepare a thread that frees memory at any time, while others capture."""
        self.activate()
        relax()

    def create_stream(self, priority: int | None = None) -> Any:
        """A blocking stream: it is ordered with the legacy default stream, as ours is."""
        options = StreamOptions(nonblocking=False, priority=priority)
        return self._device.create_stream(options=options)

    @property
    def priorities(self) -> tuple[int, int]:
        found = driver.cuCtxGetStreamPriorityRange()
        lowest, highest = check("cuCtxGetStreamPriorityRange", found)
        return int(lowest), int(highest)

    # Memory

    def trim(self) -> None:
        """Shrink the device's pool to what is in use: cuda.core lets it keep what was freed."""
        pool = called(driver.cuDeviceGetMemPool, self._handle)
        with alone_in_driver():
            called(driver.cuMemPoolTrimTo, pool, 0)
            called(driver.cuDeviceGraphMemTrim, self._handle)

    def trim_host(self) -> None:
        """Free the pieces of pinned memory that are not in use."""
        with alone_in_driver():
            self._pinned.trim()

    def graph_memory(self) -> int:
        """The bytes that the driver has reserved."""
        reserved = driver.CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
        answer = driver.cuDeviceGetGraphMemAttribute(self._handle, reserved)
        return int(check("cuDeviceGetGraphMemAttribute", answer))

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes as the driver counts: memory that the device's pool keeps is not
        free.
        """
        free, total = called(driver.cuMemGetInfo)
        return int(free), int(total)

    def allocate_host(self, nbytes: int) -> PinnedAllocation:
        """Pinned host memory, at the same address on the device by unified addressing."""
        with scarce(f"{nbytes} bytes of host memory cannot be pinned"):
            buffer = self._pinned.allocate(nbytes)
        pointer = int(buffer.handle)
        memory = (ctypes.c_uint8 * nbytes).from_address(pointer)
        return PinnedAllocation(buffer, pointer, np.ctypeslib.as_array(memory))

    def locate(self, address: int) -> str | None:
        return locate(address)

    def retained(self, owner: Any) -> Any:
        """By cuda.core, of its own Buffers."""
        return retained(owner)

    # Captures by other code

    def is_capturing(self, stream: int) -> bool:
        """By the driver's call, which is allowed in captures of any mode."""
        return is_capturing(driver.CUstream(stream))

    def takes_nodes(self, stream: int) -> bool:
        """By the driver's call, which is allowed in captures of any mode."""
        return takes_nodes(driver.CUstream(stream))

    def beside_captures(self) -> AbstractContextManager[None]:
        """Relax the thread's capture mode meanwhile."""
        return relaxed()

    # Code

    def load(self, code: Any) -> CudaModule:
        """Code is loaded by the driver when its first kernel is asked for."""
        return CudaModule([code])

    def kernel(self, module: CudaModule, name: str) -> Any:
        """A kernel, which keeps its module loaded."""
        scarcity = scarce(f"cuda:{self.ordinal} has not enough free memory for the code of {name}")
        with alone_in_driver(), scarcity:
            return module.code[0].get_kernel(name)

    def parameter_sizes(self, kernel: Any) -> tuple[int, ...]:
        return tuple([info.size for info in kernel.arguments_info])

    def resident_blocks(self, launch: Launch) -> int:
        """The blocks that the occupancy of the kernel allows."""
        allow_shared_memory(launch.kernel, launch.shared_bytes, self._handle)
        each = launch.kernel.occupancy.max_active_blocks_per_multiprocessor(
            prod(launch.block), launch.shared_bytes
        )
        return int(each) * self.multiprocessors

    # Graphs

    def new_graph(self) -> GraphDefinition:
        return GraphDefinition()

    @property
    def stored_conditions(self) -> None:
        """None: graphs have conditional handles."""

    def create_condition(self, graph: GraphDefinition) -> tuple[Any, int]:
        """Without a default value: a kernel sets it before each run of the node."""
        condition = graph.create_condition()
        return condition, int(condition.handle)

    def add_kernel(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        launch: Launch,
        values: Sequence[int],
        pdl: Sequence[Any] = (),
    ) -> DriverKernelNode:
        context, device = self._context, self._handle
        return kernel_node(graph, dependencies, launch, values, pdl, context=context, device=device)

    def add_memory(self, graph: GraphDefinition, nbytes: int) -> GraphMemoryNode:
        return memory_node(graph.handle, nbytes, self.ordinal)

    def add_free(
        self, graph: GraphDefinition, dependencies: Sequence[Any], memory: GraphMemory
    ) -> Any:
        return free_node(graph.handle, dependencies, memory.pointer)

    def add_host(
        self, graph: GraphDefinition, dependencies: Sequence[Any], function: int, argument: int
    ) -> Any:
        return host_node(graph.handle, dependencies, function, argument)

    def add_copy(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        target: int,
        source: int,
        nbytes: int,
    ) -> Any:
        return copy_node(graph.handle, dependencies, target, source, nbytes, self._context)

    def add_child(self, graph: GraphDefinition, dependencies: Sequence[Any], handle: int) -> Any:
        return child_node(graph.handle, dependencies, driver.CUgraph(handle))

    def add_event(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        action: Literal["record", "wait"],
        handle: int,
    ) -> Any:
        return event_node(graph.handle, dependencies, action, handle)

    def create_timer(self) -> CudaTimer:
        """An event of the driver with its timing enabled."""
        return CudaTimer.create()

    def node_kinds(self, handle: int) -> tuple[str, ...]:
        return node_kinds(driver.CUgraph(handle))

    def add_conditional(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        kind: ConditionalKind,
        condition: Any,
        branches: int,
    ) -> tuple[Any, tuple[Any, ...]]:
        return conditional_node(graph, dependencies, kind, condition, branches)

    def capture(
        self, graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return captured(graph, dependencies, issue, self._capture_stream.handle)

    def capture_kernels(
        self, graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[CapturedKernel, ...]:
        return captured_kernels(graph, dependencies, issue, self._capture_stream.handle)

    def capture_aside(self, issue: Callable[[], None]) -> Sequence[CapturedKernel]:
        return captured_aside(issue, self._capture_stream.handle)

    def add_captured(
        self, graph: GraphDefinition, dependencies: Sequence[Any], kernel: CapturedKernel
    ) -> Any:
        return copied(graph, dependencies, kernel)

    def recapture(
        self, kernels: Sequence[CapturedKernel], issue: Callable[[], None]
    ) -> Sequence[KernelParameters]:
        """Capture into a graph aside, which its parameters keep."""
        return recaptured_parameters(kernels, issue, self._capture_stream.handle)

    def library(self, kind: Callable[[int], Library]) -> Library:
        """One handle of each kind, on the capture stream."""
        if kind not in self._libraries:
            self._libraries[kind] = kind(int(self._capture_stream.handle))
        return self._libraries[kind]

    def synchronize_capture_stream(self) -> None:
        self._capture_stream.sync()

    def tie(self, graph: GraphDefinition, slots: SlotTable) -> TiedGraph:
        """As `Driver.tie`, by a user object."""
        return self._user_objects.tie(graph, slots)

    def release_tied(self, most: int = sys.maxsize) -> None:
        self._user_objects.release(most)

    # Executables

    def instantiate(self, graph: TiedGraph, *, hosts: bool = False) -> CudaExecutableGraph:
        """Instantiate; the result holds the graph, whose nodes identify those to update.

        It has no reference to the user object, which would make launches slower: by 1.2 µs of the
        CPU with a kernel, by 12 with a conditional node, by 17 with a memset. Where the executable
        is freed while it runs, its memory is freed in the order of the stream. That of the host is
        not, so with `hosts` there is a reference.
        """
        # Executables made by cuda.core were measured to take a microsecond more to launch.
        untied = nullcontext(graph.definition.handle) if hosts else graph.untied()
        with alone_in_driver(), untied as source:
            return CudaExecutableGraph(instantiated(source), graph)

    def instantiate_given(
        self,
        graph: GraphDefinition,
        *,
        upload_stream: int | None = None,
        use_node_priority: bool = False,
    ) -> CudaExecutableGraph:
        """Instantiate; the result has a reference to the user object."""
        stream = None if upload_stream is None else self._own(upload_stream)
        made = instantiated(graph.handle, stream, use_node_priority)
        return CudaExecutableGraph(made, None)

    def view(
        self, graph: GraphDefinition, bodies: Mapping[Hashable, Sequence[GraphDefinition]]
    ) -> NodesView:
        return view(graph, bodies)

    def set_enabled(self, executable: CudaExecutableGraph, node: Any, enabled: bool) -> None:
        executable.require_open()
        set_enabled(executable.handle, node, enabled)

    def is_enabled(self, executable: CudaExecutableGraph, node: Any) -> bool:
        executable.require_open()
        return is_enabled(executable.handle, node)

    def set_priority(self, node: Any, priority: int) -> None:
        set_priority(node, priority)

    def priority(self, node: Any) -> int:
        return priority(node)

    def _own(self, stream: int) -> Any:
        """The handle of a stream, which must be of this device."""
        handle = driver.CUstream(stream)
        context = called(driver.cuStreamGetCtx, handle)
        if int(context) != int(self._context):
            raise ValueError(
                f"stream {stream:#x} is not of cuda:{self.ordinal}; choose a stream of the device "
                "that the function runs on"
            )
        return handle

    def update_whole(self, executable: Any, graph: GraphDefinition) -> None:
        """By the driver's call, which also transfers the references to user objects."""
        if isinstance(executable, CudaExecutableGraph):
            executable.require_open()
        update_whole(int(executable.handle), int(graph.handle))

    def node_key(self, node: Any) -> int:
        return int(node)

    def node_keys(self, graph: GraphDefinition) -> Collection[int]:
        return nodes(graph.handle)

    def updater(
        self, executable: CudaExecutableGraph, kernel: DriverKernelNode | CapturedKernel
    ) -> Callable[[], None]:
        return updater(executable, kernel)

    def close(self, executable: CudaExecutableGraph) -> None:
        executable.close()
