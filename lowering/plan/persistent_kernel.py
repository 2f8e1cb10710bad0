"""Persistent kernels: one launch that runs a whole graph, its loops and branches included.

Or it is a collective, which devices carry out by themselves. Then it may compute a map as well: the
first blocks carry out the collective, and the points at the ends, which read its results; the other
points are computed by other blocks of the same launch.

Nodes inside are phases of the kernel, with barriers between those that depend on each other. They
are no nodes of the CUDA graph: `launched` does not visit them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.construct import Path
from lowering.plan.lockstep import collective_of
from lowering.plan.nests.division import Division, divided
from lowering.plan.nests.lane_nests import Decisions, LaneNests, lanes_of
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, Node, walk
from lowering.plan.target.scope import Scope
from tracegraph.inspection.palette import Tone
from tracegraph.ir.record import record
from tracegraph.user_source import Source


@record
class PersistentKernelNode(Node):
    """One kernel launch that runs the nodes of a graph."""

    kind: ClassVar[str] = "persistent"
    tone: ClassVar[Tone] = "persistent"
    is_kernel: ClassVar[bool] = True
    graph_nodes: ClassVar[tuple[str, ...]] = ("kernel",)
    noun: ClassVar[str] = "a loop in one kernel"
    body_labels: ClassVar[tuple[str, ...]] = ("stages",)

    kernel_name: str
    graph: Graph
    scope: Scope
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return self.kernel_name

    @property
    def exclusive(self) -> Hashable:
        calls = [node for node in walk(self.graph) if isinstance(node, LibraryNode)]
        return calls[0].exclusive if calls else None

    @property
    def lane_nests(self) -> LaneNests:
        """The nests inside as those of lanes; its scope has a thread for each."""
        extents, nodes = self.scope.lanes, tuple(walk(self.graph))
        choices = [node for node in nodes if isinstance(node, ConditionalNode)]
        apart = [node for node in choices if node.construct and node.construct.lanes == extents]
        loops = [node for node in apart if isinstance(node, WhileNode)]
        entries = frozenset([loop.entry for loop in loops if loop.entry is not None])
        decisions = Decisions(frozenset([node.condition for node in apart]), entries)
        kernels = [node.kernel for node in nodes if isinstance(node, KernelNode)]
        lanes = lanes_of([nest for kernel in kernels for nest in kernel.nests], extents, decisions)
        assert isinstance(lanes, LaneNests), lanes
        return lanes

    @property
    def exchange(self) -> CollectiveCall | None:
        """What devices exchange, if it does nothing else: its blocks wait for those of other
        devices, and not for one another.
        """
        return collective_of(self.graph.nodes[0]) if len(self.graph.nodes) == 1 else None

    @property
    def divided(self) -> Division | None:
        """The map beside an exchange, divided by whether points read what devices exchange; None if
        there is none.
        """
        if not self.scope.beside:
            return None
        exchange, kernel = self.graph.nodes
        assert isinstance(kernel, KernelNode)
        found = divided(kernel.kernel, exchange.writes)
        assert found is not None
        return found

    @property
    def title(self) -> str:
        call = collective_of(self.graph.nodes[0])
        if call is None:
            return f"kernel {self.kernel_name}, {self.scope}"
        beside = f" beside kernel {self.kernel_name}" if self.scope.beside else ""
        return f"{call.title}, {self.scope}{beside}"

    @property
    def purpose(self) -> str:
        if self.scope.beside:
            return "devices store into the memory of one another; only these blocks wait for that"
        return "" if self.exchange is None else "devices store into the memory of one another"
