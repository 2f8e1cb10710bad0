"""Persistent kernels: one launch that runs a whole graph, its loops and branches included.

Or it is a collective, which devices carry out by themselves.

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
    def title(self) -> str:
        what = f"kernel {self.kernel_name}" if self.exchange is None else self.exchange.title
        return f"{what}, {self.scope}"

    @property
    def purpose(self) -> str:
        return "" if self.exchange is None else "devices store into the memory of one another"
