"""Graphs by handle: edges, kernel parameters, captures, and kinds of captured nodes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.driver.checks import check
from lowering.errors import NestedCaptureError

_THREAD_LOCAL = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
SHARED_BYTES = 48 * 1024
_MEMORY_TYPE = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE


def depend(
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
            check(
                "cuGraphAddDependencies",
                driver.cuGraphAddDependencies(
                    graph.handle, list(dependencies), [node] * count, kinds, count
                ),
            )
        except BaseException:
            with suppress(Exception):
                check("cuGraphDestroyNode", driver.cuGraphDestroyNode(node))
            raise


@cache
def _programmatic() -> Any:
    """The data of a programmatic edge."""
    edge = driver.CUgraphEdgeData()
    edge.from_port = driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    edge.type = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    return edge


def require_cooperation(node: Any) -> None:
    """Have all blocks of a kernel node resident at the same time."""
    value = driver.CUkernelNodeAttrValue()
    value.cooperative = 1
    kind = driver.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    check("cuGraphKernelNodeSetAttribute", driver.cuGraphKernelNodeSetAttribute(node, kind, value))


def require_clusters(node: Any, cluster: tuple[int, int, int]) -> None:
    """Have the blocks of a kernel node launched in clusters."""
    value = driver.CUkernelNodeAttrValue()
    value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
    kind = driver.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    check("cuGraphKernelNodeSetAttribute", driver.cuGraphKernelNodeSetAttribute(node, kind, value))


def allow_shared_memory(kernel: Any, nbytes: int, device: Any) -> None:
    """Let a kernel have this much dynamic shared memory; without asking it may have 48 KiB."""
    if nbytes > SHARED_BYTES:
        kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        handle = driver.CUkernel(int(kernel.handle))
        check("cuKernelSetAttribute", driver.cuKernelSetAttribute(kind, nbytes, handle, device))


def parameter_cells(
    values: Sequence[int],
) -> tuple[ctypes.Array[ctypes.c_uint64], ctypes.Array[ctypes.c_void_p]]:
    """Eight-byte cells holding `values`, and the array of their addresses that the driver takes."""
    cells = (ctypes.c_uint64 * len(values))(*values)
    start = ctypes.addressof(cells)
    addresses = (ctypes.c_void_p * len(values))(*(start + 8 * i for i in range(len(values))))
    return cells, addresses


def captured(
    graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None], stream: Any
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Capture what `issue` does on a stream: the last nodes, and the kinds of all."""
    tails, added = capture_nodes(graph, dependencies, issue, stream)
    return tails, tuple(map(node_kind, added.values()))


def capture_nodes(
    graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None], stream: Any
) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """Capture what `issue` does on a stream: the last nodes, and all nodes by address."""
    before = nodes(graph.handle)
    if is_capturing(stream):
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
        if is_capturing(stream):
            driver.cuStreamEndCapture(stream)
        raise
    check("cuStreamEndCapture", driver.cuStreamEndCapture(stream))
    return tails, {at: node for at, node in nodes(graph.handle).items() if at not in before}


def child_node(graph: Any, dependencies: Sequence[Any], child: Any) -> Any:
    """Add a node that runs a clone of a graph."""
    before = list(dependencies)
    return check(
        "cuGraphAddChildGraphNode",
        driver.cuGraphAddChildGraphNode(graph, before or None, len(before), child),
    )


def copy_node(
    graph: Any, dependencies: Sequence[Any], target: int, source: int, nbytes: int, context: Any
) -> Any:
    """Add a node that copies bytes within the device."""
    params = driver.CUDA_MEMCPY3D()
    params.srcMemoryType = params.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    params.srcDevice, params.dstDevice = source, target
    params.WidthInBytes, params.Height, params.Depth = nbytes, 1, 1
    before = list(dependencies)
    return check(
        "cuGraphAddMemcpyNode",
        driver.cuGraphAddMemcpyNode(graph, before or None, len(before), params, context),
    )


def event_node(
    graph: Any, dependencies: Sequence[Any], action: Literal["record", "wait"], handle: int
) -> Any:
    """Add a node that records an event, or waits for it."""
    name = f"cuGraphAddEvent{action.capitalize()}Node"
    before = list(dependencies)
    add = getattr(driver, name)
    return check(name, add(graph, before or None, len(before), driver.CUevent(handle)))


def node_kinds(graph: Any) -> tuple[str, ...]:
    """The kinds of all nodes of a graph, and of those of its child graphs."""
    kinds = []
    for node in nodes(graph).values():
        kinds.append(node_kind(node))
        if kinds[-1] == "graph":
            child = driver.cuGraphChildGraphNodeGetGraph(node)
            kinds += node_kinds(check("cuGraphChildGraphNodeGetGraph", child))
    return tuple(kinds)


def is_capturing(stream: Any) -> bool:
    """Whether a capture is open, valid or failed: of the legacy stream, on any blocking stream."""
    answer = driver.cuStreamIsCapturing(stream)
    if answer[0] == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
        return True
    status = check("cuStreamIsCapturing", answer)
    return bool(status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)


def nodes(graph: Any) -> dict[int, Any]:
    """The nodes of a graph by address."""
    _, count = check("cuGraphGetNodes", driver.cuGraphGetNodes(graph))
    if not count:
        return {}
    nodes, _ = check("cuGraphGetNodes", driver.cuGraphGetNodes(graph, count))
    return {int(node): node for node in nodes}


def node_kind(node: Any) -> str:
    """The kind of a node; copies that a conditional body may not hold are ``pageable_memcpy``."""
    found = check("cuGraphNodeGetType", driver.cuGraphNodeGetType(node))
    kind = str(found.name).removeprefix("CU_GRAPH_NODE_TYPE_").lower()
    return "pageable_memcpy" if kind == "memcpy" and _is_pageable(node) else kind


def _is_pageable(node: Any) -> bool:
    """Whether a copy has an end in host memory that is not pinned."""
    copy = check("cuGraphMemcpyNodeGetParams", driver.cuGraphMemcpyNodeGetParams(node))
    host = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    ends = ((copy.srcMemoryType, copy.srcHost), (copy.dstMemoryType, copy.dstHost))
    return any(kind == host and not is_known(int(address)) for kind, address in ends)


def is_known(address: int) -> bool:
    """Whether host memory is pinned. The plural form of the call accepts any address."""
    (kind,) = check(
        "cuPointerGetAttributes", driver.cuPointerGetAttributes(1, [_MEMORY_TYPE], address)
    )
    return bool(int(kind))
