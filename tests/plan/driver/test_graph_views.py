"""Views of graphs, and switches of nodes, with stand-ins for the driver's objects."""

from types import SimpleNamespace

import pytest

pytest.importorskip("cuda.bindings")

from cuda.bindings import driver as bindings  # noqa: TID251 - its enumerations alone

from lowering.driver import graph_views
from lowering.driver.error_checks import CudaError

RESULTS, TYPES = bindings.CUresult, bindings.CUgraphNodeType
PLAIN, PROGRAMMATIC = 0, int(bindings.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)


class KernelNode:
    grid, block, shmem_size = (2, 1, 1), (256, 1, 1), 64
    type = TYPES.CU_GRAPH_NODE_TYPE_KERNEL

    def __init__(self, handle):
        self.handle = handle


class MemcpyNode(KernelNode):
    size = 800
    type = TYPES.CU_GRAPH_NODE_TYPE_MEMCPY


class MemsetNode(KernelNode):
    width, element_size, height, value = 100, 4, 1, 7
    type = TYPES.CU_GRAPH_NODE_TYPE_MEMSET


class AllocNode(KernelNode):
    bytesize = 4096
    type = TYPES.CU_GRAPH_NODE_TYPE_MEM_ALLOC


class IfElseNode(KernelNode):
    """As cuda.core gives it with drivers before CUDA 13.2: they do not say which bodies it has."""

    type = TYPES.CU_GRAPH_NODE_TYPE_CONDITIONAL
    branches = ()


class Graph:
    def __init__(self, handle, *nodes):
        self.handle, self._nodes = handle, nodes

    def nodes(self):
        return set(self._nodes)


@pytest.fixture
def graph(monkeypatch):
    """A kernel, a branch with a body of two kernels and an empty one, and copies; its bodies."""
    then, otherwise = Graph(2, KernelNode(21), KernelNode(22)), Graph(3)
    top = Graph(
        1,
        AllocNode(11),
        KernelNode(12),
        IfElseNode(13),
        MemcpyNode(14),
        MemsetNode(15),
    )
    graphs = {1: top, 2: then, 3: otherwise}
    edges = {
        1: [(11, 12, PLAIN), (12, 13, PLAIN), (13, 14, PLAIN), (13, 15, PLAIN)],
        2: [(21, 22, PROGRAMMATIC)],
        3: [],
    }

    def get_edges(handle, count=0):
        found = edges[handle]
        if not count:
            return RESULTS.CUDA_SUCCESS, [], [], [], len(found)
        before, behind, kinds = zip(*found, strict=True)
        data = [SimpleNamespace(type=kind) for kind in kinds]
        return RESULTS.CUDA_SUCCESS, list(before), list(behind), data, len(found)

    monkeypatch.setattr(graph_views, "driver", SimpleNamespace(cuGraphGetEdges=get_edges))
    monkeypatch.setattr(
        graph_views,
        "nodes_of",
        lambda handle: {node.handle: node.handle for node in graphs[handle]._nodes},
    )
    return top, {13: (then, otherwise)}


def test_nodes_of_bodies_follow_their_node(graph):
    found = graph_views.view(*graph)
    assert [(n.key, n.kind, n.parent, n.branch) for n in found.nodes] == [
        (11, "mem_alloc", None, 0),
        (12, "kernel", None, 0),
        (13, "conditional", None, 0),
        (21, "kernel", 2, 0),
        (22, "kernel", 2, 0),
        (14, "memcpy", None, 0),
        (15, "memset", None, 0),
    ]
    assert found.edges == {(0, 1), (1, 2), (2, 5), (2, 6), (3, 4)}
    assert found.programmatic == {(3, 4)}


def test_details_are_those_of_cuda_core(graph):
    details = [dict(node.details) for node in graph_views.view(*graph).nodes]
    kernel = {"grid": (2, 1, 1), "block": (256, 1, 1), "shared_bytes": 64}
    assert details == [
        {"bytes": 4096},
        kernel,
        {},
        kernel,
        kernel,
        {"bytes": 800},
        {"bytes": 400, "value": 7},
    ]


def test_switches_and_priorities_are_calls_of_the_driver(monkeypatch):
    calls = []

    def set_enabled(executable, node, enabled):
        calls.append((executable, node, enabled))
        return (RESULTS.CUDA_SUCCESS,)

    def set_attribute(node, kind, value):
        calls.append((node, kind, value.priority))
        return (RESULTS.CUDA_SUCCESS,)

    fake = SimpleNamespace(
        cuGraphNodeSetEnabled=set_enabled,
        cuGraphNodeGetEnabled=lambda executable, node: (RESULTS.CUDA_SUCCESS, 0),
        CUkernelNodeAttrValue=bindings.CUkernelNodeAttrValue,
        cuGraphKernelNodeSetAttribute=set_attribute,
        cuGraphKernelNodeGetAttribute=lambda node, kind: (
            RESULTS.CUDA_SUCCESS,
            SimpleNamespace(priority=-3),
        ),
    )
    monkeypatch.setattr(graph_views, "driver", fake)
    node = KernelNode(12)
    graph_views.set_enabled(5, node, False)
    graph_views.set_enabled(5, node, True)
    graph_views.set_priority(node, -3)
    kind = bindings.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_PRIORITY
    assert calls == [(5, 12, 0), (5, 12, 1), (12, kind, -3)]
    assert not graph_views.is_enabled(5, node)
    assert graph_views.priority(node) == -3


def test_a_refused_switch_raises(monkeypatch):
    refuse = lambda *arguments: (RESULTS.CUDA_ERROR_INVALID_VALUE,)  # noqa: E731
    monkeypatch.setattr(graph_views, "driver", SimpleNamespace(cuGraphNodeSetEnabled=refuse))
    monkeypatch.setattr("lowering.driver.error_checks.message_of", lambda result: "told")
    with pytest.raises(CudaError, match="cuGraphNodeSetEnabled failed with CUDA_ERROR_INVALID"):
        graph_views.set_enabled(5, KernelNode(12), False)
