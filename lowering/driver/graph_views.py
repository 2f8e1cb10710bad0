"""Views of graphs: their nodes as cuda.core has them, and their edges, for people to look at."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.cuda.interface import NodesView, NodeView
from lowering.driver.error_checks import called, check
from lowering.driver.graphs import nodes as nodes_of

_PREFIX = "CU_GRAPH_NODE_TYPE_"
_PROGRAMMATIC = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
_PRIORITY = driver.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_PRIORITY


Bodies = Mapping[Hashable, Sequence[GraphDefinition]]
"""The bodies of each conditional node, by its address."""


def view(graph: GraphDefinition, bodies: Bodies) -> NodesView:
    """The nodes and edges of a graph, and of the bodies in it."""
    nodes: list[NodeView] = []
    edges: dict[tuple[int, int], bool] = {}
    _enter(graph, bodies, None, 0, nodes, edges)
    programmatic = frozenset(edge for edge, kind in edges.items() if kind)
    return NodesView(tuple(nodes), frozenset(edges), programmatic)


def _enter(
    graph: GraphDefinition,
    bodies: Bodies,
    parent: int | None,
    branch: int,
    nodes: list[NodeView],
    edges: dict[tuple[int, int], bool],
) -> None:
    positions = {}
    found = {int(node.handle): node for node in graph.nodes()}
    for key in nodes_of(graph.handle):  # in the order of the driver
        node = found[key]
        position = positions[key] = len(nodes)
        kind = str(node.type.name).removeprefix(_PREFIX).lower()
        nodes.append(NodeView(node, key, kind, _details(node), parent, branch))
        for number, body in enumerate(bodies.get(key, ())):
            _enter(body, bodies, position, number, nodes, edges)
    for before, behind, programmatic in _edges(graph.handle):
        edges[positions[before], positions[behind]] = programmatic


def _edges(graph: Any) -> Iterator[tuple[int, int, bool]]:
    """Those of cuda.core's `edges` come without their data, which CUDA refuses if they have any."""
    *_, count = called(driver.cuGraphGetEdges, graph)
    if not count:
        return
    before, behind, data, _ = called(driver.cuGraphGetEdges, graph, count)
    for first, second, edge in zip(before, behind, data, strict=True):
        yield int(first), int(second), edge.type == int(_PROGRAMMATIC)


def _details(node: Any) -> Mapping[str, Any]:
    """What cuda.core's class of the node says of it."""
    match type(node).__name__:
        case "KernelNode":
            return {"grid": node.grid, "block": node.block, "shared_bytes": node.shmem_size}
        case "AllocNode":
            return {"bytes": node.bytesize}
        case "MemcpyNode":
            return {"bytes": node.size}
        case "MemsetNode":
            return {"bytes": node.width * node.element_size * node.height, "value": node.value}
    return {}


def set_enabled(executable: Any, node: Any, enabled: bool) -> None:
    """Let launches run a node of the graph that the executable was made of, or leave it out."""
    set_ = driver.cuGraphNodeSetEnabled(executable, node.handle, int(enabled))
    check("cuGraphNodeSetEnabled", set_)


def is_enabled(executable: Any, node: Any) -> bool:
    """Whether they run it."""
    found = driver.cuGraphNodeGetEnabled(executable, node.handle)
    return bool(check("cuGraphNodeGetEnabled", found))


def set_priority(node: Any, priority: int) -> None:
    """Give a kernel node a priority."""
    value = driver.CUkernelNodeAttrValue()
    value.priority = priority
    set_ = driver.cuGraphKernelNodeSetAttribute(node.handle, _PRIORITY, value)
    check("cuGraphKernelNodeSetAttribute", set_)


def priority(node: Any) -> int:
    """That of a kernel node."""
    found = driver.cuGraphKernelNodeGetAttribute(node.handle, _PRIORITY)
    return int(check("cuGraphKernelNodeGetAttribute", found).priority)
