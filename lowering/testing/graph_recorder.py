"""Graphs under construction, as plain data."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field

from lowering.cuda.interface import GraphMemory, Launch, NodesView, NodeView
from lowering.plan.conditional_nodes import ConditionalKind
from lowering.plan.owners import SlotTable
from lowering.testing.memory_recorder import MemoryRecorder
from lowering.testing.recorded_objects import RecordedGraph, RecordedGraphMemory, RecordedNode
from tracegraph.generated.dataclass import dataclass

KINDS = {
    "copy": "memcpy",
    "event": "event_record",
    "if_else": "conditional",
    "library": "kernel",
    "switch": "conditional",
    "while": "conditional",
}
"""CUDA's names of the kinds that are called otherwise here."""


@dataclass(eq=False, repr=False)
class GraphRecorder(MemoryRecorder):
    """The calls that build graphs.

    `foreign_graphs` has the kinds of the nodes of others' graphs by handle; without an entry, one
    kernel.
    """

    graphs: list[RecordedGraph] = field(default_factory=list, init=False)
    foreign_graphs: defaultdict[int, tuple[str, ...]] = field(
        default_factory=lambda: defaultdict(lambda: ("kernel",)), init=False
    )
    _conditions: Iterator[int] = field(default_factory=lambda: itertools.count(1000), init=False)

    def new_graph(self) -> RecordedGraph:
        self._log("new_graph")
        graph = RecordedGraph()
        self.graphs.append(graph)
        return graph

    @property
    def stored_conditions(self) -> None:
        """None: graphs have conditions."""

    def create_condition(self, graph: RecordedGraph) -> tuple[int, int]:
        """A number that serves as condition and as handle."""
        self._log("create_condition")
        condition = next(self._conditions)
        graph.conditions.append(condition)
        return condition, condition

    def add_kernel(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        launch: Launch,
        values: Sequence[int],
        pdl: Sequence[RecordedNode] = (),
    ) -> RecordedNode:
        """A node; its edges come with it. Those that are `pdl` come from kernels of the graph."""
        self._log("add_kernel", launch.kernel, len(dependencies) + len(pdl))
        if any(node.kind != "kernel" for node in pdl):
            raise RuntimeError("a programmatic edge begins at a node that is no kernel")
        node = RecordedNode(
            "kernel",
            launch.kernel,
            (*dependencies, *pdl),
            launch=launch,
            values=list(values),
            pdl=frozenset(pdl),
        )
        graph.nodes.append(node)
        return node

    def add_memory(self, graph: RecordedGraph, nbytes: int) -> RecordedGraphMemory:
        self._log("add_memory", nbytes)
        node = RecordedNode("memory", f"allocate {nbytes}", ())
        graph.nodes.append(node)
        return RecordedGraphMemory(node, next(self._addresses) << 32, nbytes)

    def add_free(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        memory: GraphMemory,
    ) -> RecordedNode:
        """A node behind the last ones."""
        self._log("add_free", memory.nbytes)
        node = RecordedNode("memory", f"free {memory.nbytes}", tuple(dependencies))
        graph.nodes.append(node)
        graph.allocated += memory.nbytes
        return node

    def add_child(
        self, graph: RecordedGraph, dependencies: Sequence[RecordedNode], handle: int
    ) -> RecordedNode:
        """A node that holds the handle."""
        self._log("add_child", handle)
        node = RecordedNode("graph", "child", tuple(dependencies), values=[handle])
        graph.nodes.append(node)
        return node

    def node_kinds(self, handle: int) -> tuple[str, ...]:
        """Those in `foreign_graphs`."""
        self._log("node_kinds", handle)
        return self.foreign_graphs[handle]

    def add_conditional(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        kind: ConditionalKind,
        condition: int,
        branches: int,
    ) -> tuple[RecordedNode, tuple[RecordedGraph, ...]]:
        """A node with empty bodies; its condition must be one of `graph`, and free."""
        self._log("add_conditional", kind)
        if condition not in graph.conditions:
            raise RuntimeError(f"condition {condition} was not created for the graph of its node")
        graph.conditions.remove(condition)
        inner = tuple(RecordedGraph() for _ in range(branches))
        node = RecordedNode(kind, kind, tuple(dependencies), inner, condition)
        graph.nodes.append(node)
        return node, inner

    def node_key(self, node: RecordedNode) -> RecordedNode:
        return node

    def node_keys(self, graph: RecordedGraph) -> list[RecordedNode]:
        return list(graph.nodes)

    def view(
        self, graph: RecordedGraph, bodies: Mapping[Hashable, Sequence[RecordedGraph]]
    ) -> NodesView:
        """The nodes in the order they were added in, and their edges."""
        nodes: list[NodeView] = []
        self._enter(graph, bodies, None, 0, nodes)
        positions = {view.node: position for position, view in enumerate(nodes)}
        edges: dict[tuple[int, int], bool] = {}
        for view in nodes:
            for before in view.node.dependencies:
                edges[positions[before], positions[view.node]] = before in view.node.pdl
        programmatic = frozenset(edge for edge, kind in edges.items() if kind)
        return NodesView(tuple(nodes), frozenset(edges), programmatic)

    def _enter(
        self,
        graph: RecordedGraph,
        bodies: Mapping[Hashable, Sequence[RecordedGraph]],
        parent: int | None,
        branch: int,
        nodes: list[NodeView],
    ) -> None:
        for node in graph.nodes:
            position, details = len(nodes), {}
            if node.launch is not None:
                launch = node.launch
                details = {
                    "grid": launch.grid,
                    "block": launch.block,
                    "shared_bytes": launch.shared_bytes,
                }
            kind = KINDS.get(node.kind, node.kind)
            nodes.append(NodeView(node, node, kind, details, parent, branch))
            for number, body in enumerate(bodies.get(node, ())):
                self._enter(body, bodies, position, number, nodes)

    def set_priority(self, node: RecordedNode, priority: int) -> None:
        self._log("set_priority", node.name, priority)
        node.priority = priority

    def priority(self, node: RecordedNode) -> int:
        return node.priority

    @property
    def priorities(self) -> tuple[int, int]:
        """Those of today's GPUs."""
        return 0, -5

    def tie(self, graph: RecordedGraph, slots: SlotTable) -> RecordedGraph:
        """Logged; the graph, which executables hold, holds the slots."""
        self._log("tie")
        graph.tied = slots
        return graph

    def release_tied(self, most: int = 0) -> None:
        """Nothing: the slots go with the graph."""
