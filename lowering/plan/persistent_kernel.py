"""Persistent kernels: one launch that runs a whole graph, its loops and branches included.

Nodes inside are phases of the kernel, with barriers between those that depend on each other. They
are no nodes of the CUDA graph: `launched` does not visit them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from lowering.plan.construct import Path
from lowering.plan.nodes import Graph, Node
from lowering.plan.target.scope import Scope
from tracegraph.inspection.palette import Tone
from tracegraph.ir.record import record, replace
from tracegraph.user_source import Source


@record
class PersistentKernelNode(Node):
    """One kernel launch that runs the nodes of a graph."""

    kind: ClassVar[str] = "persistent"
    tone: ClassVar[Tone] = "persistent"
    is_kernel: ClassVar[bool] = True
    graph_nodes: ClassVar[tuple[str, ...]] = ("kernel",)

    kernel_name: str
    graph: Graph
    scope: Scope
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()

    @property
    def noun(self) -> str:
        return "a loop in one kernel"

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.graph,)

    @property
    def body_labels(self) -> tuple[str, ...]:
        return ("stages",)

    @property
    def name(self) -> str:
        return self.kernel_name

    @property
    def title(self) -> str:
        return f"kernel {self.kernel_name}, {self.scope}"

    def with_bodies(self, graphs: Sequence[Graph]) -> Self:
        return replace(self, graph=graphs[0])
