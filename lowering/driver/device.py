"""CudaDriver: one GPU, as `lowering.cuda.interface.Driver`.

Graphs and conditional nodes are made through cuda.core; kernel nodes by the driver's own call.
"""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any, Literal

import numpy as np
from cuda.bindings import driver
from cuda.core import (
    Device,
    LaunchConfig,
    Stream,
    StreamOptions,
)
from cuda.core import launch as launch_now
from cuda.core.graph import GraphDefinition
from cuda.core.utils import StridedMemoryView

from lowering.cuda.graph.capture_lock import CaptureLock
from lowering.cuda.interface import (
    Event,
    ForeignArray,
    GraphMemory,
    Launch,
    Library,
    ThreadState,
)
from lowering.driver.addresses import locate
from lowering.driver.captured_kernels import (
    CapturedKernel,
    KernelParameters,
    captured_kernels,
    recaptured_parameters,
)
from lowering.driver.checks import SUCCESS, by_core, check, scarce
from lowering.driver.foreign_captures import add_to_capture, relax, relaxed, takes_nodes
from lowering.driver.graphs import (
    allow_shared_memory,
    captured,
    child_node,
    copy_node,
    depend,
    event_node,
    is_capturing,
    is_known,
    node_kinds,
    nodes,
    parameter_cells,
    require_clusters,
    require_cooperation,
)
from lowering.driver.handles import (
    CudaEvent,
    CudaExecutableGraph,
    CudaModule,
    CudaTimer,
    DeviceAllocation,
    GraphMemoryNode,
    KernelNode,
    PinnedAllocation,
)
from lowering.driver.memory import PinnedMemory, PoolMemory
from lowering.driver.thread import Thread
from lowering.driver.user_objects import TiedGraph, UserObjects
from lowering.driver.whole_graphs import instantiated, update_whole
from lowering.plan.conditional_nodes import ConditionalKind
from lowering.plan.owners import SlotTable
from tracegraph.ir.types import row_major_strides

_NO_STREAM = -1
"""What tells a producer, by DLPack, that nothing is to wait for it."""


class CudaDriver:
    """One GPU, through its primary context.

    The launch stream is a blocking one: it is ordered with CUDA's legacy default stream, which
    other libraries use by default. The capture stream must not be. Memory for other streams is
    allocated and freed on a stream that never runs anything else.
    """

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._device = Device(ordinal)
        self.thread: ThreadState = Thread(ordinal)
        self._pool, self._pinned = PoolMemory(self._device), PinnedMemory()
        self.name = str(self._device.name)
        self.arch = f"sm_{self._device.arch}"
        version = int(check("cuDriverGetVersion", driver.cuDriverGetVersion()))
        self.cuda_version = (version // 1000, version % 1000 // 10)
        self.multiprocessors = int(self._device.properties.multiprocessor_count)
        self._context = check("cuCtxGetCurrent", driver.cuCtxGetCurrent())
        self._handle = check("cuDeviceGet", driver.cuDeviceGet(ordinal))
        self._stream = self.create_stream()
        self._stream_owner: Any = None
        self._memory_stream: Any = None
        self._capture_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
        self._stream_handle = self._stream.handle
        self.stream = int(self._stream_handle)
        self.capture_lock = CaptureLock()
        self._libraries: dict[Callable[[int], Library], Library] = {}
        self._user_objects = UserObjects(self._enter_watcher)
        self._stop_stream: Any = None
        self._one: PinnedAllocation | None = None

    def activate(self) -> None:
        """Make the primary context current in this thread."""
        self.thread.ready  # noqa: B018 - the first read does it

    def _enter_watcher(self) -> None:
        """Prepare a thread that frees memory at any time, while others capture."""
        self.activate()
        relax()

    # Streams

    def create_stream(self) -> Any:
        """A blocking stream: it is ordered with the legacy default stream, as ours is."""
        return self._device.create_stream(options=StreamOptions(nonblocking=False))

    def on(self, stream: int, owner: Any) -> CudaDriver:
        """The same device by another stream; all else is shared."""
        handle = self._own(stream)
        other = copy.copy(self)
        other._stream = Stream.from_handle(stream)
        other._stream_handle = handle
        other.stream = stream
        other._stream_owner = owner
        other._memory_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
        return other

    def _own(self, stream: int) -> Any:
        """The handle of a stream, which must be of this device."""
        handle = driver.CUstream(stream)
        context = check("cuStreamGetCtx", driver.cuStreamGetCtx(handle))
        if int(context) != int(self._context):
            raise ValueError(
                f"stream {stream:#x} is not of cuda:{self.ordinal}; choose a stream of the device "
                "that the function runs on"
            )
        return handle

    def record(self) -> CudaEvent:
        """Record a new event."""
        event = by_core(self._stream.record)
        return CudaEvent(event, event.handle)

    def wait(self, event: Event) -> None:
        """Wait on the device."""
        self.hand_over(event, self.stream)

    def hand_over(self, event: Event, stream: int) -> None:
        """Let a stream wait."""
        assert isinstance(event, CudaEvent), "events come from this driver"
        handle = driver.CUstream(stream)
        check("cuStreamWaitEvent", driver.cuStreamWaitEvent(handle, event.handle, 0))

    # Memory

    def allocate(self, nbytes: int) -> DeviceAllocation:
        """Device memory, usable by work on the launch stream from now on."""
        stream = self._memory_stream or self._stream
        with scarce(f"cuda:{self.ordinal} has not enough free memory for {nbytes} bytes"):
            buffer = self._pool.allocate(max(nbytes, 1), stream=stream)
        if self._memory_stream is not None:
            self._stream.wait(self._memory_stream)
        return DeviceAllocation(buffer, int(buffer.handle), nbytes)

    def trim(self) -> None:
        """Shrink the device's pool to what is in use: cuda.core lets it keep what was freed."""
        pool = check("cuDeviceGetMemPool", driver.cuDeviceGetMemPool(self._handle))
        check("cuMemPoolTrimTo", driver.cuMemPoolTrimTo(pool, 0))
        check("cuDeviceGraphMemTrim", driver.cuDeviceGraphMemTrim(self._handle))

    def trim_host(self) -> None:
        """Free the pieces of pinned memory that are not in use."""
        self._pinned.trim()

    def graph_memory(self) -> int:
        """The bytes that the driver has reserved."""
        reserved = driver.CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
        answer = driver.cuDeviceGetGraphMemAttribute(self._handle, reserved)
        return int(check("cuDeviceGetGraphMemAttribute", answer))

    def memory_info(self) -> tuple[int, int]:
        """As the driver counts: memory that the device's pool keeps is not free."""
        free, total = check("cuMemGetInfo", driver.cuMemGetInfo())
        return int(free), int(total)

    def allocate_host(self, nbytes: int) -> PinnedAllocation:
        """Pinned host memory, at the same address on the device by unified addressing."""
        with scarce(f"{nbytes} bytes of host memory cannot be pinned"):
            buffer = self._pinned.allocate(nbytes)
        pointer = int(buffer.handle)
        memory = (ctypes.c_uint8 * nbytes).from_address(pointer)
        return PinnedAllocation(buffer, pointer, np.ctypeslib.as_array(memory))

    def raise_flag(self, pointer: int) -> None:
        """Copy a 1 on a separate stream, and wait for this copy.

        The source is pinned, so that the copy engine does it, which waits for no kernel.
        """
        if self._one is None:
            one = self.allocate_host(4)
            one.bytes.view(np.uint32)[:] = 1
            self._stop_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
            self._one = one
        check(
            "cuMemcpyHtoDAsync",
            driver.cuMemcpyHtoDAsync(pointer, self._one.pointer, 4, self._stop_stream.handle),
        )
        self._stop_stream.sync()

    def clear(self, pointer: int, nbytes: int) -> None:
        """Set bytes to zero, in stream order."""
        check(
            "cuMemsetD8Async",
            driver.cuMemsetD8Async(pointer, 0, nbytes, self._stream_handle),
        )

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes within the device, in stream order."""
        check(
            "cuMemcpyDtoDAsync",
            driver.cuMemcpyDtoDAsync(target, source, nbytes, self._stream_handle),
        )

    def copy_to_device(self, pointer: int, source: np.ndarray[Any, Any]) -> bool:
        """Copy a host array. The driver stages pageable memory before the call returns, and reads
        pinned memory later.
        """
        address = source.ctypes.data
        check(
            "cuMemcpyHtoDAsync",
            driver.cuMemcpyHtoDAsync(pointer, address, source.nbytes, self._stream_handle),
        )
        return is_known(address)

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Copy into a host array and wait."""
        check(
            "cuMemcpyDtoHAsync",
            driver.cuMemcpyDtoHAsync(
                target.ctypes.data, pointer, target.nbytes, self._stream_handle
            ),
        )
        self.synchronize()

    def write_word(self, pointer: int, value: int) -> None:
        """By a memory operation of the stream, which makes earlier writes visible first."""
        written = driver.cuStreamWriteValue32(self._stream_handle, pointer, value, 0)
        check("cuStreamWriteValue32", written)

    def synchronize(self) -> None:
        """Wait for the launch stream."""
        by_core(self._stream.sync)

    def locate(self, address: int) -> str | None:
        """As the driver knows it."""
        return locate(address)

    def is_capturing(self, stream: int) -> bool:
        """By the driver's call, which is allowed in captures of any mode."""
        return is_capturing(driver.CUstream(stream))

    def takes_nodes(self, stream: int) -> bool:
        """By the driver's call, which is allowed in captures of any mode."""
        return takes_nodes(driver.CUstream(stream))

    def beside_captures(self) -> AbstractContextManager[None]:
        """By the thread's own capture mode, which is relaxed meanwhile."""
        return relaxed()

    def add_to_capture(self, stream: int, graph: TiedGraph) -> None:
        """By a child graph node, which has the graph's references to user objects."""
        add_to_capture(self._own(stream), graph.definition.handle)

    def foreign(self, array: object, *, ordered: bool = True) -> ForeignArray | None:
        """View another library's array; the launch stream waits for its producer's."""
        if not (hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")):
            return None
        if isinstance(array, np.ndarray | np.generic):
            return None
        stream = self.stream if ordered else _NO_STREAM
        view = StridedMemoryView.from_any_interface(array, stream_ptr=stream)
        if not view.is_device_accessible:
            return None
        if view.dtype is None:
            raise TypeError(
                f"a device array of type {type(array).__qualname__} has a dtype that NumPy lacks; "
                "convert it to one that NumPy or ml_dtypes has"
            )
        shape = tuple(view.shape)
        strides = tuple(view.strides) if view.strides is not None else row_major_strides(shape)
        return ForeignArray(
            view.ptr, np.dtype(view.dtype), shape, strides, view.device_id, (view, array)
        )

    # Code

    def load(self, code: Any) -> CudaModule:
        """Code is loaded by the driver when its first kernel is asked for."""
        return CudaModule([code])

    def kernel(self, module: CudaModule, name: str) -> Any:
        """A kernel, which keeps its module loaded."""
        with scarce(f"cuda:{self.ordinal} has not enough free memory for the code of {name}"):
            return module.code[0].get_kernel(name)

    def parameter_sizes(self, kernel: Any) -> tuple[int, ...]:
        """As the driver knows them."""
        return tuple([info.size for info in kernel.arguments_info])

    def resident_blocks(self, launch: Launch) -> int:
        """By the occupancy of the kernel."""
        allow_shared_memory(launch.kernel, launch.shared_bytes, self._handle)
        each = launch.kernel.occupancy.max_active_blocks_per_multiprocessor(
            prod(launch.block), launch.shared_bytes
        )
        return int(each) * self.multiprocessors

    def launch_kernel(self, launch: Launch, values: Sequence[int]) -> None:
        """Launch on the stream."""
        config = LaunchConfig(grid=launch.grid, block=launch.block, shmem_size=launch.shared_bytes)
        launch_now(self._stream, config, launch.kernel, *(np.uint64(value) for value in values))

    # Graphs

    def new_graph(self) -> GraphDefinition:
        """An empty definition."""
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
    ) -> KernelNode:
        """Add a kernel node.

        By the driver's call: cuda.core would tie the arguments of each node to the graph by a user
        object, to which executables have a reference; see `instantiate`.
        """
        allow_shared_memory(launch.kernel, launch.shared_bytes, self._handle)
        cells, addresses = parameter_cells(values)
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.kern = launch.kernel.handle
        params.ctx = self._context
        params.gridDimX, params.gridDimY, params.gridDimZ = launch.grid
        params.blockDimX, params.blockDimY, params.blockDimZ = launch.block
        params.sharedMemBytes = launch.shared_bytes
        params.kernelParams = ctypes.addressof(addresses)
        node = check(
            "cuGraphAddKernelNode",
            driver.cuGraphAddKernelNode(
                graph.handle, list(dependencies) or None, len(dependencies), params
            ),
        )
        if launch.cooperative:
            require_cooperation(node)
        if launch.cluster is not None:
            require_clusters(node, launch.cluster)
        depend(graph, node, pdl, pdl=True)
        return KernelNode(node, cells, addresses, params)

    def add_memory(self, graph: GraphDefinition, nbytes: int) -> GraphMemoryNode:
        """Add an allocation from the device's graph memory, before all other nodes."""
        params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
        params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        params.poolProps.location.id = self.ordinal
        params.bytesize = nbytes
        node = check(
            "cuGraphAddMemAllocNode", driver.cuGraphAddMemAllocNode(graph.handle, None, 0, params)
        )
        return GraphMemoryNode(node, int(params.dptr), nbytes)

    def add_free(
        self, graph: GraphDefinition, dependencies: Sequence[Any], memory: GraphMemory
    ) -> Any:
        """Add a node that frees it."""
        return check(
            "cuGraphAddMemFreeNode",
            driver.cuGraphAddMemFreeNode(
                graph.handle, list(dependencies), len(dependencies), memory.pointer
            ),
        )

    def add_host(
        self, graph: GraphDefinition, dependencies: Sequence[Any], function: int, argument: int
    ) -> Any:
        """Add a host node."""
        params = driver.CUDA_HOST_NODE_PARAMS()
        params.fn = driver.CUhostFn(function)
        params.userData = argument
        return check(
            "cuGraphAddHostNode",
            driver.cuGraphAddHostNode(
                graph.handle, list(dependencies) or None, len(dependencies), params
            ),
        )

    def add_copy(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        target: int,
        source: int,
        nbytes: int,
    ) -> Any:
        """Add a memcpy node."""
        return copy_node(graph.handle, dependencies, target, source, nbytes, self._context)

    def add_child(self, graph: GraphDefinition, dependencies: Sequence[Any], handle: int) -> Any:
        """Add a child graph node."""
        return child_node(graph.handle, dependencies, driver.CUgraph(handle))

    def add_event(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        action: Literal["record", "wait"],
        handle: int,
    ) -> Any:
        """Add an event record node or an event wait node."""
        return event_node(graph.handle, dependencies, action, handle)

    def create_timer(self) -> CudaTimer:
        """An event of the driver with its timing enabled."""
        return CudaTimer.create()

    def node_kinds(self, handle: int) -> tuple[str, ...]:
        """By the driver's calls."""
        return node_kinds(driver.CUgraph(handle))

    def add_conditional(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        kind: ConditionalKind,
        condition: Any,
        branches: int,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Add an if-else, switch or while node."""
        bodies: tuple[Any, ...]
        match kind:
            case "if_else":
                node = graph.if_else(condition)
                bodies = (node.then, node.else_)
            case "switch":
                node = graph.switch(condition, branches)
                bodies = tuple(node.branches)
            case "while":
                node = graph.while_loop(condition)
                bodies = (node.body,)
        depend(graph, node.handle, dependencies)
        return node.handle, bodies

    def capture(
        self, graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Capture into a graph or a body, behind `dependencies`."""
        return captured(graph, dependencies, issue, self._capture_stream.handle)

    def capture_kernels(
        self, graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[CapturedKernel, ...]:
        """Capture into a graph, behind `dependencies`."""
        return captured_kernels(graph, dependencies, issue, self._capture_stream.handle)

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
        """Wait for the library's warm-up calls."""
        self._capture_stream.sync()

    def tie(self, graph: GraphDefinition, slots: SlotTable) -> TiedGraph:
        """As `Driver.tie`, by a user object."""
        return self._user_objects.tie(graph, slots)

    def release_tied(self, most: int = sys.maxsize) -> None:
        """As `Driver.release_tied`."""
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
        with nullcontext(graph.definition.handle) if hosts else graph.untied() as source:
            return CudaExecutableGraph(instantiated(source), graph)

    def instantiate_given(self, graph: GraphDefinition) -> CudaExecutableGraph:
        """Instantiate; the result has a reference to the user object."""
        return CudaExecutableGraph(instantiated(graph.handle), None)

    def update_whole(self, executable: Any, graph: GraphDefinition) -> None:
        """By the driver's call, which hands the references to user objects over, too."""
        if isinstance(executable, CudaExecutableGraph):
            executable.require_open()
        update_whole(int(executable.handle), int(graph.handle))

    def node_key(self, node: Any) -> int:
        """Its address."""
        return int(node)

    def node_keys(self, graph: GraphDefinition) -> Collection[int]:
        """Their addresses."""
        return nodes(graph.handle)

    def updater(
        self, executable: CudaExecutableGraph, kernel: KernelNode | CapturedKernel
    ) -> Callable[[], None]:
        """The driver's call with its arguments, for nodes in bodies too; it keeps their values."""
        update = driver.cuGraphExecKernelNodeSetParams

        def run() -> None:
            result = update(executable.handle, kernel.node, kernel.params)
            if result[0] != SUCCESS:
                executable.require_open()
                check("cuGraphExecKernelNodeSetParams", result)

        return run

    def upload(self, executable: CudaExecutableGraph) -> None:
        """By the driver's call."""
        executable.require_open()
        check("cuGraphUpload", driver.cuGraphUpload(executable.handle, self._stream_handle))

    def launcher(self, executable: CudaExecutableGraph) -> Callable[[], None]:
        """The driver's call with its arguments; it refuses the handle of a closed executable."""
        launch, stream = driver.cuGraphLaunch, self._stream_handle

        def run() -> None:
            result = launch(executable.handle, stream)
            if result[0] != SUCCESS:
                executable.require_open()
                check("cuGraphLaunch", result)

        return run

    def close(self, executable: CudaExecutableGraph) -> None:
        """Free the executable."""
        executable.close()
