"""Nodes of graphs: what is added to a graph, its edges and its parameters."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.cuda.interface import Launch, SharedWords
from lowering.driver.error_checks import called, check
from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from lowering.plan.conditional_nodes import ConditionalKind

_SHARED_BYTES = 48 * 1024
"""Dynamic shared memory that a kernel may have without asking."""


@dataclass(frozen=True, slots=True, eq=False)
class DriverKernelNode:
    """A kernel node with a cached parameter struct.

    An update reads the parameters at `addresses`: in `values`, or in shared words.
    """

    node: Any
    values: ctypes.Array[ctypes.c_uint64]
    addresses: ctypes.Array[ctypes.c_void_p]
    params: Any
    _shared: list[Any] = field(default_factory=list, repr=False)

    def share(self, position: int, words: SharedWords, number: int) -> None:
        """Read a parameter from one of these words, which it keeps alive."""
        self._shared.append(words)
        self.addresses[position] = ctypes.addressof(words) + 8 * number


@dataclass(frozen=True, slots=True, eq=False)
class GraphMemoryNode:
    """A node that allocates memory for each launch, and the addresses that it reserves."""

    node: Any
    pointer: int
    nbytes: int


def kernel_node(
    graph: GraphDefinition,
    dependencies: Sequence[Any],
    launch: Launch,
    values: Sequence[int],
    pdl: Sequence[Any],
    *,
    context: Any,
    device: Any,
) -> DriverKernelNode:
    """Add a node that launches a kernel.

    By the driver's call: cuda.core would tie the arguments of each node to the graph by a user
    object, to which executables have a reference; see `CudaDevice.instantiate`.
    """
    allow_shared_memory(launch.kernel, launch.shared_bytes, device)
    cells, addresses = parameter_cells(values)
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.kern = launch.kernel.handle
    params.ctx = context
    params.gridDimX, params.gridDimY, params.gridDimZ = launch.grid
    params.blockDimX, params.blockDimY, params.blockDimZ = launch.block
    params.sharedMemBytes = launch.shared_bytes
    params.kernelParams = ctypes.addressof(addresses)
    node = called(
        driver.cuGraphAddKernelNode,
        graph.handle,
        list(dependencies) or None,
        len(dependencies),
        params,
    )
    if launch.cooperative:
        _require_cooperation(node)
    if launch.cluster is not None:
        _require_clusters(node, launch.cluster)
    _depend(graph, node, pdl, pdl=True)
    return DriverKernelNode(node, cells, addresses, params)


def memory_node(graph: Any, nbytes: int, ordinal: int) -> GraphMemoryNode:
    """Add a node that allocates from a device's graph memory, before all other nodes."""
    params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    params.poolProps.location.id = ordinal
    params.bytesize = nbytes
    node = called(driver.cuGraphAddMemAllocNode, graph, None, 0, params)
    return GraphMemoryNode(node, int(params.dptr), nbytes)


def free_node(graph: Any, dependencies: Sequence[Any], pointer: int) -> Any:
    """Add a node that frees memory of the graph."""
    before = list(dependencies)
    return called(driver.cuGraphAddMemFreeNode, graph, before, len(before), pointer)


def host_node(graph: Any, dependencies: Sequence[Any], function: int, argument: int) -> Any:
    """Add a node that calls a C function."""
    params = driver.CUDA_HOST_NODE_PARAMS()
    params.fn = driver.CUhostFn(function)
    params.userData = argument
    before = list(dependencies)
    return called(driver.cuGraphAddHostNode, graph, before or None, len(before), params)


def child_node(graph: Any, dependencies: Sequence[Any], child: Any) -> Any:
    """Add a node that runs a clone of a graph."""
    before = list(dependencies)
    return called(driver.cuGraphAddChildGraphNode, graph, before or None, len(before), child)


def copy_node(
    graph: Any, dependencies: Sequence[Any], target: int, source: int, nbytes: int, context: Any
) -> Any:
    """Add a node that copies bytes within the device."""
    params = driver.CUDA_MEMCPY3D()
    params.srcMemoryType = params.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    params.srcDevice, params.dstDevice = source, target
    params.WidthInBytes, params.Height, params.Depth = nbytes, 1, 1
    before = list(dependencies)
    return called(driver.cuGraphAddMemcpyNode, graph, before or None, len(before), params, context)


def event_node(
    graph: Any, dependencies: Sequence[Any], action: Literal["record", "wait"], handle: int
) -> Any:
    """Add a node that records an event, or waits for it."""
    name = f"cuGraphAddEvent{action.capitalize()}Node"
    before = list(dependencies)
    add = getattr(driver, name)
    return check(name, add(graph, before or None, len(before), driver.CUevent(handle)))


def conditional_node(
    graph: Any, dependencies: Sequence[Any], kind: ConditionalKind, condition: Any, branches: int
) -> tuple[Any, tuple[Any, ...]]:
    """Add an if-else, switch or while node; the node and its bodies."""
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
    _depend(graph, node.handle, dependencies)
    return node.handle, bodies


def allow_shared_memory(kernel: Any, nbytes: int, device: Any) -> None:
    """Let a kernel have this much dynamic shared memory."""
    if nbytes > _SHARED_BYTES:
        kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        handle = driver.CUkernel(int(kernel.handle))
        called(driver.cuKernelSetAttribute, kind, nbytes, handle, device)


def parameter_cells(
    values: Sequence[int],
) -> tuple[ctypes.Array[ctypes.c_uint64], ctypes.Array[ctypes.c_void_p]]:
    """Eight-byte cells holding `values`, and the array of their addresses that the driver takes."""
    cells = (ctypes.c_uint64 * len(values))(*values)
    start = ctypes.addressof(cells)
    addresses = (ctypes.c_void_p * len(values))(*range(start, start + 8 * len(values), 8))
    return cells, addresses


def _require_cooperation(node: Any) -> None:
    """Have all blocks of a kernel node resident at the same time."""
    value = driver.CUkernelNodeAttrValue()
    value.cooperative = 1
    kind = driver.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    called(driver.cuGraphKernelNodeSetAttribute, node, kind, value)


def _require_clusters(node: Any, cluster: tuple[int, int, int]) -> None:
    """Have the blocks of a kernel node launched in clusters."""
    value = driver.CUkernelNodeAttrValue()
    value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
    kind = driver.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    called(driver.cuGraphKernelNodeSetAttribute, node, kind, value)


def _depend(
    graph: GraphDefinition, node: Any, dependencies: Sequence[Any], *, pdl: bool = False
) -> None:
    """Add the edges into a new node, in one call; if that fails, the node is destroyed.

    With `pdl` the edges are programmatic: from kernels to a kernel that may start before they end.
    A graph with memory nodes cannot lose a node: it has to be dropped as a whole.
    """
    if dependencies:
        count = len(dependencies)
        kinds = [_programmatic()] * count if pdl else None
        try:
            called(
                driver.cuGraphAddDependencies,
                graph.handle,
                list(dependencies),
                [node] * count,
                kinds,
                count,
            )
        except BaseException:
            with suppress(Exception):
                called(driver.cuGraphDestroyNode, node)
            raise


@cache
def _programmatic() -> Any:
    """The data of a programmatic edge."""
    edge = driver.CUgraphEdgeData()
    edge.from_port = driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    edge.type = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    return edge
