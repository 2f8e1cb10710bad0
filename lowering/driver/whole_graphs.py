"""Whole graphs: instantiation and updates, whose refusals name the node."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from cuda.bindings import driver

from lowering.driver.error_checks import CudaError, CudaMemoryError, called, check
from lowering.errors import RefusedGraphError

_SINCE = 12000
"""The CUDA version since which an update takes its info in a structure."""

_MADE = driver.CUgraphInstantiateResult
_INSTANTIATION = {
    _MADE.CUDA_GRAPH_INSTANTIATE_ERROR: "the driver gives no reason",
    _MADE.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: "the structure of the graph is not valid",
    _MADE.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: (
        "this device does not support what the node does"
    ),
    _MADE.CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: (
        "nodes of several contexts are not supported"
    ),
    _MADE.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: (
        "a condition belongs to no conditional node"
    ),
}

_UPDATED = driver.CUgraphExecUpdateResult
_UPDATE = {
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR: "the driver gives no reason",
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: "the graphs have other nodes or edges",
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: "the node was of another type",
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: "the node ran another function",
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: (
        "the node ran a function that cannot be exchanged for this one"
    ),
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: (
        "the node had parameters that cannot change"
    ),
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED: (
        "the node had attributes that cannot change"
    ),
    _UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: "the node cannot be updated",
}


def instantiated(graph: Any, upload_stream: Any = None, use_node_priority: bool = False) -> Any:
    """The handle of an executable, which is uploaded in the order of a stream if there is one.

    Raises:
        RefusedGraphError: something about the graph does not do.
        CudaMemoryError: the driver has not enough memory.
        CudaError: it fails for another reason.
    """
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    flags = 0
    if upload_stream is not None:
        flags |= int(driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
        params.hUploadStream = upload_stream
    if use_node_priority:
        flags |= int(driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
    if flags:
        params.flags = driver.cuuint64_t(flags)
    answer = driver.cuGraphInstantiateWithParams(graph, params)
    try:
        return check("cuGraphInstantiateWithParams", answer)
    except CudaMemoryError:
        raise
    except CudaError as error:
        reason, node = _INSTANTIATION.get(params.result_out), int(params.hErrNode_out)
        if reason is None and not node:
            raise
        raise RefusedGraphError(
            f"{reason or 'it is refused'} ({error.name})", node or None
        ) from error


class _UpdateInfo(ctypes.Structure):
    """`CUgraphExecUpdateResultInfo` of cuda.h."""

    _fields_ = (
        ("result", ctypes.c_int),
        ("node", ctypes.c_void_p),
        ("from_node", ctypes.c_void_p),
    )


def update_whole(executable: int, graph: int) -> None:
    """Give an executable all parameters of a graph, both by their handles.

    Raises:
        RefusedGraphError: they differ in what cannot be updated; nothing was changed.
        CudaError: it fails for another reason.
    """
    info = _UpdateInfo()
    result = driver.CUresult(_exec_update()(executable, graph, ctypes.byref(info)))
    try:
        check("cuGraphExecUpdate", (result,))
    except CudaError as error:
        reason = _UPDATE.get(_UPDATED(info.result))
        if result != driver.CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE or reason is None:
            raise
        raise RefusedGraphError(reason, info.node) from error


@cache
def _exec_update() -> Callable[..., int]:
    """The C function: that of cuda.bindings returns no info about a failure."""
    flags = driver.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    address, _ = called(driver.cuGetProcAddress, b"cuGraphExecUpdate", _SINCE, flags)
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_UpdateInfo)
    )
    return prototype(int(address))
