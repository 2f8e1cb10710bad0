"""Refusals of the driver become errors with a reason and the address of the node."""

import ctypes
from types import SimpleNamespace

import pytest

pytest.importorskip("cuda.bindings")

from cuda.bindings import driver as bindings  # noqa: TID251 - its enumerations alone

from lowering.driver import error_checks, whole_graphs
from lowering.driver.error_checks import CudaError, CudaMemoryError
from lowering.errors import RefusedGraphError

RESULTS, MADE = bindings.CUresult, bindings.CUgraphInstantiateResult
UPDATED = bindings.CUgraphExecUpdateResult


@pytest.fixture
def driver(monkeypatch):
    """cuda.bindings with functions of the test in place of some."""
    fake = SimpleNamespace(
        CUresult=RESULTS,
        CUdriverProcAddress_flags=bindings.CUdriverProcAddress_flags,
        CUDA_GRAPH_INSTANTIATE_PARAMS=lambda: SimpleNamespace(
            result_out=MADE.CUDA_GRAPH_INSTANTIATE_SUCCESS, hErrNode_out=0
        ),
    )
    errors = SimpleNamespace(cuGetErrorString=lambda result: (RESULTS.CUDA_SUCCESS, b"told"))
    monkeypatch.setattr(error_checks, "driver", errors)
    monkeypatch.setattr(whole_graphs, "driver", fake)
    whole_graphs._exec_update.cache_clear()
    yield fake
    whole_graphs._exec_update.cache_clear()


def instantiating(driver, result, made=MADE.CUDA_GRAPH_INSTANTIATE_SUCCESS, node=0):
    def call(graph, params):
        params.result_out, params.hErrNode_out = made, node
        return (result, None) if result != RESULTS.CUDA_SUCCESS else (result, graph + 1)

    driver.cuGraphInstantiateWithParams = call


def test_an_executable(driver):
    instantiating(driver, RESULTS.CUDA_SUCCESS)
    assert whole_graphs.instantiated(7) == 8


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, None),
        ({"upload_stream": 5}, 2),
        ({"use_node_priority": True}, 8),
        ({"upload_stream": 5, "use_node_priority": True}, 10),
    ],
)
def test_options_are_flags_of_the_driver(driver, options, flags):
    given = []
    driver.CUgraphInstantiate_flags = bindings.CUgraphInstantiate_flags
    driver.cuuint64_t = int
    driver.cuGraphInstantiateWithParams = lambda graph, params: (
        given.append(params) or (RESULTS.CUDA_SUCCESS, graph)
    )
    whole_graphs.instantiated(7, **options)
    (params,) = given
    assert getattr(params, "flags", None) == flags
    assert getattr(params, "hUploadStream", None) == options.get("upload_stream")


@pytest.mark.parametrize("made", [m for m in MADE if m != MADE.CUDA_GRAPH_INSTANTIATE_SUCCESS])
@pytest.mark.parametrize("node", [0, 0x1234])
def test_every_refusal_to_instantiate_has_a_reason(driver, made, node):
    instantiating(driver, RESULTS.CUDA_ERROR_NOT_SUPPORTED, made, node)
    with pytest.raises(RefusedGraphError, match="CUDA_ERROR_NOT_SUPPORTED") as refused:
        whole_graphs.instantiated(7)
    assert refused.value.node == (node or None)
    assert refused.value.reason[0].islower()


def test_a_node_without_a_reason_is_a_refusal_too(driver):
    instantiating(driver, RESULTS.CUDA_ERROR_INVALID_VALUE, node=5)
    with pytest.raises(RefusedGraphError, match="it is refused"):
        whole_graphs.instantiated(7)


def test_other_failures_stay_what_they_are(driver):
    instantiating(driver, RESULTS.CUDA_ERROR_INVALID_VALUE)
    with pytest.raises(CudaError, match="cuGraphInstantiateWithParams failed with"):
        whole_graphs.instantiated(7)
    instantiating(driver, RESULTS.CUDA_ERROR_OUT_OF_MEMORY, MADE.CUDA_GRAPH_INSTANTIATE_ERROR)
    with pytest.raises(CudaMemoryError):
        whole_graphs.instantiated(7)


def updating(driver, result, updated, node=None):
    """A C function in place of the driver's, which writes the structure of cuda.h."""
    layout = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)
    )

    def call(executable, graph, info):
        assert (executable, graph) == (7, 9)
        info[0], info[1], info[2] = int(updated), node or 0, 0
        return int(result)

    function = layout(call)
    address = ctypes.cast(function, ctypes.c_void_p).value
    driver.function = function

    def found(name, version, flags):
        assert (name, version) == (b"cuGraphExecUpdate", 12000)
        return RESULTS.CUDA_SUCCESS, address, None

    driver.cuGetProcAddress = found


def test_an_update(driver):
    updating(driver, RESULTS.CUDA_SUCCESS, UPDATED.CU_GRAPH_EXEC_UPDATE_SUCCESS)
    whole_graphs.update_whole(7, 9)


@pytest.mark.parametrize("updated", [u for u in UPDATED if u.name.partition("_ERROR")[1]])
@pytest.mark.parametrize("node", [None, 0x7FFF_1234_5678])
def test_every_refusal_to_update_has_a_reason_and_the_node(driver, updated, node):
    updating(driver, RESULTS.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, updated, node)
    with pytest.raises(RefusedGraphError) as refused:
        whole_graphs.update_whole(7, 9)
    assert refused.value.node == node
    assert refused.value.reason


def test_an_update_that_fails_otherwise_is_no_refusal(driver):
    updating(driver, RESULTS.CUDA_ERROR_INVALID_VALUE, UPDATED.CU_GRAPH_EXEC_UPDATE_ERROR)
    with pytest.raises(CudaError, match="cuGraphExecUpdate failed with CUDA_ERROR_INVALID_VALUE"):
        whole_graphs.update_whole(7, 9)
