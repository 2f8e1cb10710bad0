"""The CUDA driver, as `lowering.cuda.interface.Driver`: the only file that calls cuda.bindings.

Nodes are added through cuda.core, which retains what they point to, and are named by the driver's
handles. The rest are thin calls of the driver: edges, capture at given dependencies, updates of
executables, copies.
"""

from __future__ import annotations

import copy
import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Stream,
    StreamOptions,
)
from cuda.core import launch as launch_now
from cuda.core.graph import GraphDefinition
from cuda.core.utils import StridedMemoryView

from lowering.cuda.interface import ConditionalKind, Event, ForeignArray, Launch, Library
from lowering.cuda.turns import CaptureTurns
from lowering.errors import ClosedGraphError, NestedCaptureError
from lowering.slots import SlotTable

_SUCCESS = driver.CUresult.CUDA_SUCCESS
_THREAD_LOCAL = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
_MEMORY_TYPE = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE


class CudaError(RuntimeError):
    """A call of the CUDA driver failed.

    Attributes:
        name: the driver's name of the error, such as ``"CUDA_ERROR_INVALID_VALUE"``.
        operation: the driver function that was called.
    """

    def __init__(self, name: str, message: str, operation: str) -> None:
        super().__init__(f"{operation} failed with {name}: {message}")
        self.name = name
        self.operation = operation


def check(operation: str, answer: tuple[Any, ...]) -> Any:
    """The values of a driver call's `answer`: none, one, or a tuple.

    Raises:
        CudaError: the call did not succeed.
    """
    result, *values = answer
    if result != _SUCCESS:
        raise CudaError(result.name, _message(result), operation)
    return values[0] if len(values) == 1 else tuple(values) or None


def _message(result: Any) -> str:
    found, text = driver.cuGetErrorString(result)
    return text.decode() if found == _SUCCESS and text else "the driver has no description"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeviceAllocation:
    """Memory from the device's pool; cuda.core frees it, in stream order, when it is collected."""

    buffer: Any
    pointer: int
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class PinnedAllocation:
    """Pinned host memory, mapped for the device; cuda.core frees it when it is collected.

    `bytes` does not keep it alive.
    """

    buffer: Any
    pointer: int
    bytes: np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True, eq=False)
class KernelNode:
    """A kernel node with a cached parameter struct, which reads `values` at each update."""

    node: Any
    values: ctypes.Array[ctypes.c_uint64]
    addresses: ctypes.Array[ctypes.c_void_p]
    params: Any


@dataclass(frozen=True, slots=True, eq=False)
class CudaEvent:
    """An event of cuda.core, which is destroyed when it is collected."""

    event: Any

    def __call__(self) -> bool:
        """Whether it has been passed."""
        return bool(self.event.is_done)


class CudaDriver:
    """One GPU, through its primary context.

    The launch stream is a blocking one: work on the legacy default stream, which other libraries
    use unless told otherwise, is ordered with it. The capture stream must not be. Memory for other
    streams is allocated and freed on a stream that never runs anything else.
    """

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._device = Device(ordinal)
        self._current = threading.local()
        self.activate()
        self.arch = f"sm_{self._device.arch}"
        self._context = check("cuCtxGetCurrent", driver.cuCtxGetCurrent())
        self._handle = check("cuDeviceGet", driver.cuDeviceGet(ordinal))
        self._stream = self.create_stream()
        self._memory_stream: Any = None
        self._capture_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
        self._stream_handle = self._stream.handle
        self.stream = int(self._stream_handle)
        self.captures = CaptureTurns()
        self._library: Library | None = None
        self._stop_stream: Any = None
        self._one: PinnedAllocation | None = None

    def activate(self) -> None:
        """Make the primary context current in this thread."""
        if not getattr(self._current, "ready", False):
            Device(self.ordinal).set_current()
            self._current.ready = True

    # Streams

    def create_stream(self) -> Any:
        """A blocking stream: it is ordered with the legacy default stream, as ours is."""
        return self._device.create_stream(options=StreamOptions(nonblocking=False))

    def on(self, stream: int) -> CudaDriver:
        """The same by another stream; all else is shared."""
        handle = driver.CUstream(stream)
        context = check("cuStreamGetCtx", driver.cuStreamGetCtx(handle))
        if int(context) != int(self._context):
            raise ValueError(
                f"stream {stream:#x} is not of cuda:{self.ordinal}; choose a stream of the device "
                "that the function runs on"
            )
        other = copy.copy(self)
        other._stream = Stream.from_handle(stream)
        other._stream_handle = handle
        other.stream = stream
        other._memory_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
        return other

    def record(self) -> CudaEvent:
        """Record a new event."""
        return CudaEvent(self._stream.record())

    def wait(self, event: Event) -> None:
        """Wait on the device."""
        self.hand_over(event, self.stream)

    def hand_over(self, event: Event, stream: int) -> None:
        """Let a stream wait."""
        assert isinstance(event, CudaEvent), "events come from this driver"
        handle = driver.CUstream(stream)
        check("cuStreamWaitEvent", driver.cuStreamWaitEvent(handle, event.event.handle, 0))

    # Memory

    def allocate(self, nbytes: int) -> DeviceAllocation:
        """Device memory, usable by work on the launch stream from now on."""
        try:
            buffer = self._device.allocate(
                max(nbytes, 1), stream=self._memory_stream or self._stream
            )
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise MemoryError(
                f"cuda:{self.ordinal} has not enough free memory for {nbytes} bytes"
            ) from error
        if self._memory_stream is not None:
            self._stream.wait(self._memory_stream)
        return DeviceAllocation(buffer, int(buffer.handle), nbytes)

    def trim(self) -> None:
        """Shrink the device's pool to what is in use: cuda.core lets it keep what was freed."""
        pool = check("cuDeviceGetMemPool", driver.cuDeviceGetMemPool(self._handle))
        check("cuMemPoolTrimTo", driver.cuMemPoolTrimTo(pool, 0))

    def memory_info(self) -> tuple[int, int]:
        """As the driver sees it: what the device's pool keeps is not free."""
        free, total = check("cuMemGetInfo", driver.cuMemGetInfo())
        return int(free), int(total)

    def allocate_host(self, nbytes: int) -> PinnedAllocation:
        """Pinned host memory. With unified addressing the device knows it by the same address."""
        try:
            buffer = LegacyPinnedMemoryResource().allocate(nbytes)
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise MemoryError(f"{nbytes} bytes of host memory cannot be pinned") from error
        pointer = int(buffer.handle)
        memory = (ctypes.c_uint8 * nbytes).from_address(pointer)
        return PinnedAllocation(buffer, pointer, np.ctypeslib.as_array(memory))

    def raise_flag(self, pointer: int) -> None:
        """Copy a 1 on a stream of its own, and wait for this copy.

        The source is pinned: so the copy is one of the copy engine, for which no kernel has to end.
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
        """Copy a host array. Pageable memory is staged by the driver before the call returns;
        memory that the driver knows is read later.
        """
        address = source.ctypes.data
        check(
            "cuMemcpyHtoDAsync",
            driver.cuMemcpyHtoDAsync(pointer, address, source.nbytes, self._stream_handle),
        )
        return _is_known(address)

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Copy into a host array and wait."""
        check(
            "cuMemcpyDtoHAsync",
            driver.cuMemcpyDtoHAsync(
                target.ctypes.data, pointer, target.nbytes, self._stream_handle
            ),
        )
        self.synchronize()

    def synchronize(self) -> None:
        """Wait for the launch stream."""
        self._stream.sync()

    def foreign(self, array: object) -> ForeignArray | None:
        """View another library's array; the launch stream waits for its producer's."""
        if not (hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")):
            return None
        if isinstance(array, np.ndarray | np.generic):
            return None
        view = StridedMemoryView.from_any_interface(array, stream_ptr=self.stream)
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

    def load(self, code: Any) -> Any:
        """Code is loaded by the driver when its first kernel is asked for."""
        return code

    def kernel(self, module: Any, name: str) -> Any:
        """A kernel, which keeps its module loaded."""
        return module.get_kernel(name)

    def launch_kernel(self, launch: Launch, values: Sequence[int]) -> None:
        """Launch on the stream."""
        config = LaunchConfig(grid=launch.grid, block=launch.block, shmem_size=launch.shared_bytes)
        launch_now(self._stream, config, launch.kernel, *(np.uint64(value) for value in values))

    # Graphs

    def new_graph(self) -> GraphDefinition:
        """An empty definition."""
        return GraphDefinition()

    def create_condition(self, graph: GraphDefinition) -> tuple[Any, int]:
        """Without a default value: a kernel sets it each time before the node is reached."""
        condition = graph.create_condition()
        return condition, int(condition.handle)

    def add_kernel(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        launch: Launch,
        values: Sequence[int],
        owned: Sequence[bool],
        slots: SlotTable,
    ) -> KernelNode:
        """Add a kernel node. Owned addresses go in as Buffers that belong to `slots`: cuda.core
        retains the arguments of a node, and so the table, until the graph and its executables are
        gone. A node without any carries the table by its first argument: so every kernel node
        answers for the captured ones, which cuda.core knows nothing of.
        """
        carriers = owned if any(owned) else [True, *owned[1:]]
        arguments = [
            Buffer.from_handle(value, 1, owner=slots) if keep else np.uint64(value)
            for value, keep in zip(values, carriers, strict=True)
        ]
        config = LaunchConfig(grid=launch.grid, block=launch.block, shmem_size=launch.shared_bytes)
        node = graph.launch(config, launch.kernel, *arguments)
        _depend(graph, node, dependencies)
        return self._with_parameters(node.handle, launch, values)

    def _with_parameters(self, node: Any, launch: Launch, values: Sequence[int]) -> KernelNode:
        cells, addresses = _parameters(values)
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.kern = launch.kernel.handle
        params.ctx = self._context
        params.gridDimX, params.gridDimY, params.gridDimZ = launch.grid
        params.blockDimX, params.blockDimY, params.blockDimZ = launch.block
        params.sharedMemBytes = launch.shared_bytes
        params.kernelParams = ctypes.addressof(addresses)
        return KernelNode(node, cells, addresses, params)

    def add_conditional(
        self,
        graph: GraphDefinition,
        dependencies: Sequence[Any],
        kind: ConditionalKind,
        condition: Any,
        branches: int,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Add an if, if-else, switch or while node."""
        bodies: tuple[Any, ...]
        match kind:
            case "if":
                node = graph.if_then(condition)
                bodies = (node.then,)
            case "if_else":
                node = graph.if_else(condition)
                bodies = (node.then, node.else_)
            case "switch":
                node = graph.switch(condition, branches)
                bodies = tuple(node.branches)
            case "while":
                node = graph.while_loop(condition)
                bodies = (node.body,)
        _depend(graph, node, dependencies)
        return node.handle, bodies

    def capture(
        self, graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Capture into a graph or a body, behind `dependencies`."""
        before = _nodes(graph)
        stream = self._capture_stream.handle
        if _is_capturing(stream):
            raise NestedCaptureError
        try:
            check(
                "cuStreamBeginCaptureToGraph",
                driver.cuStreamBeginCaptureToGraph(
                    stream,
                    graph.handle,
                    list(dependencies) or None,
                    None,
                    len(dependencies),
                    _THREAD_LOCAL,
                ),
            )
            issue()
            info = check("cuStreamGetCaptureInfo", driver.cuStreamGetCaptureInfo(stream))
            tails = tuple(info[3])
        except BaseException:
            if _is_capturing(stream):
                driver.cuStreamEndCapture(stream)
            raise
        check("cuStreamEndCapture", driver.cuStreamEndCapture(stream))
        added = [node for address, node in _nodes(graph).items() if address not in before]
        return tails, tuple(_kind(node) for node in added)

    def library(self) -> Library:
        """The products of cuBLAS, on the capture stream."""
        if self._library is None:
            from lowering.cuda.library import Cublas

            self._library = Cublas(int(self._capture_stream.handle))
        return self._library

    def synchronize_capture_stream(self) -> None:
        """Wait for the library's warm-up calls."""
        self._capture_stream.sync()

    # Executables

    def instantiate(self, graph: GraphDefinition) -> CudaExecutableGraph:
        """Instantiate; the result holds the definition, whose nodes name those to update."""
        executable = graph.instantiate()
        return CudaExecutableGraph(graph, executable, executable.handle)

    def update_kernel(self, executable: CudaExecutableGraph, kernel: KernelNode) -> None:
        """Pass a node's present values, in a body too."""
        result = driver.cuGraphExecKernelNodeSetParams(
            executable.handle, kernel.node, kernel.params
        )
        if result[0] != _SUCCESS:
            executable.require_open()
            check("cuGraphExecKernelNodeSetParams", result)

    def launch(self, executable: CudaExecutableGraph) -> None:
        """Launch on the stream."""
        result = driver.cuGraphLaunch(executable.handle, self._stream_handle)
        if result[0] != _SUCCESS:
            executable.require_open()
            check("cuGraphLaunch", result)

    def close(self, executable: CudaExecutableGraph) -> None:
        """Free the executable, after its launches."""
        self.synchronize()
        executable.handle = None
        executable.graph.close()


@dataclass(slots=True, eq=False)
class CudaExecutableGraph:
    """An executable graph, the definition it came from, and its cached handle.

    A closed one has no handle, which the driver refuses: so nothing is asked before a launch.
    """

    definition: Any
    graph: Any
    handle: Any

    def require_open(self) -> None:
        """Raise ClosedGraphError if it is closed."""
        if self.handle is None:
            raise ClosedGraphError


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous row-major array.

    >>> row_major_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def _depend(graph: GraphDefinition, node: Any, dependencies: Sequence[Any]) -> None:
    """Add the edges into a new node of cuda.core, in one call; without them, no node stays."""
    if dependencies:
        count = len(dependencies)
        try:
            check(
                "cuGraphAddDependencies",
                driver.cuGraphAddDependencies(
                    graph.handle, list(dependencies), [node.handle] * count, None, count
                ),
            )
        except BaseException:
            node.destroy()
            raise


def _is_capturing(stream: Any) -> bool:
    """Whether a capture is open, be it one that has failed."""
    status = check("cuStreamIsCapturing", driver.cuStreamIsCapturing(stream))
    return bool(status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)


def _nodes(graph: GraphDefinition) -> dict[int, Any]:
    """The nodes of a graph by address."""
    _, count = check("cuGraphGetNodes", driver.cuGraphGetNodes(graph.handle))
    if not count:
        return {}
    nodes, _ = check("cuGraphGetNodes", driver.cuGraphGetNodes(graph.handle, count))
    return {int(node): node for node in nodes}


def _kind(node: Any) -> str:
    """The kind of a node; a copy that a conditional body may not hold has one of its own."""
    found = check("cuGraphNodeGetType", driver.cuGraphNodeGetType(node))
    kind = str(found.name).removeprefix("CU_GRAPH_NODE_TYPE_").lower()
    return "pageable_memcpy" if kind == "memcpy" and _is_pageable(node) else kind


def _is_pageable(node: Any) -> bool:
    """Whether a copy has an end in host memory that is not pinned."""
    copy = check("cuGraphMemcpyNodeGetParams", driver.cuGraphMemcpyNodeGetParams(node))
    host = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    ends = ((copy.srcMemoryType, copy.srcHost), (copy.dstMemoryType, copy.dstHost))
    return any(kind == host and not _is_known(int(address)) for kind, address in ends)


def _is_known(address: int) -> bool:
    """Whether host memory is pinned. Asked in the plural form, which takes any address."""
    (kind,) = check(
        "cuPointerGetAttributes", driver.cuPointerGetAttributes(1, [_MEMORY_TYPE], address)
    )
    return bool(int(kind))


def _parameters(
    values: Sequence[int],
) -> tuple[ctypes.Array[ctypes.c_uint64], ctypes.Array[ctypes.c_void_p]]:
    """Eight-byte cells holding `values`, and the array of their addresses that the driver takes."""
    cells = (ctypes.c_uint64 * len(values))(*values)
    start = ctypes.addressof(cells)
    addresses = (ctypes.c_void_p * len(values))(*(start + 8 * i for i in range(len(values))))
    return cells, addresses
