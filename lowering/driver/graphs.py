"""Graphs by handle: what nodes they have, and captures into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.driver.clean_up import freed
from lowering.driver.error_checks import called, check
from lowering.errors import NestedCaptureError

_THREAD_LOCAL = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
_BROKEN_OFF = {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"}
"""What ending a capture says that what was captured has broken off: it is ended nevertheless."""

_MEMORY_TYPE = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE


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
        called(
            driver.cuStreamBeginCaptureToGraph,
            stream,
            graph.handle,
            list(dependencies) or None,
            None,
            len(dependencies),
            _THREAD_LOCAL,
        )
        issue()
        info = called(driver.cuStreamGetCaptureInfo, stream)
        tails = tuple(info[3])
    except BaseException:
        if is_capturing(stream):
            ended = driver.cuStreamEndCapture(stream)
            if ended[0].name not in _BROKEN_OFF:
                freed("a capture that has failed", "cuStreamEndCapture", ended)
        raise
    called(driver.cuStreamEndCapture, stream)
    return tails, {at: node for at, node in nodes(graph.handle).items() if at not in before}


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
    _, count = called(driver.cuGraphGetNodes, graph)
    if not count:
        return {}
    nodes, _ = called(driver.cuGraphGetNodes, graph, count)
    return {int(node): node for node in nodes}


def node_kind(node: Any) -> str:
    """The kind of a node; copies that a conditional body may not hold are ``pageable_memcpy``."""
    found = called(driver.cuGraphNodeGetType, node)
    kind = str(found.name).removeprefix("CU_GRAPH_NODE_TYPE_").lower()
    return "pageable_memcpy" if kind == "memcpy" and _is_pageable(node) else kind


def _is_pageable(node: Any) -> bool:
    """Whether a copy has an end in host memory that is not pinned."""
    copy = called(driver.cuGraphMemcpyNodeGetParams, node)
    host = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    ends = ((copy.srcMemoryType, copy.srcHost), (copy.dstMemoryType, copy.dstHost))
    return any(kind == host and not is_known(int(address)) for kind, address in ends)


def is_known(address: int) -> bool:
    """Whether host memory is pinned. The plural form of the call accepts any address."""
    (kind,) = called(driver.cuPointerGetAttributes, 1, [_MEMORY_TYPE], address)
    return bool(int(kind))
