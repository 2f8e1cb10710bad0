"""ExportedGraph: a CUDA graph that a function was compiled to, for others to launch."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tabulated import Tabulated
from tracegraph.staging.graph_view import GraphNode

if TYPE_CHECKING:
    from tracegraph.inspection.tables import Report

SWITCHED = frozenset({"kernel", "memcpy", "memset"})
"""The kinds of nodes that an executable can leave out."""


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Whether a whole executable could be updated, and what stood in the way.

    It is true where the update was made. Otherwise nothing was changed.

    >>> print(UpdateResult(False, "the node was of another type", "the kernel node k0", "m.py:7"))
    refused at the kernel node k0, m.py:7: the node was of another type
    """

    ok: bool
    reason: str = ""
    node: str = ""
    """The node of the other graph; "" if the driver names none."""
    line: str = ""
    """The user's line that it comes from."""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            return "updated"
        place = ", ".join(filter(None, (self.node, self.line)))
        return f"refused{f' at {place}' if place else ''}: {self.reason}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExportedNode(GraphNode):
    """A node of an exported graph: what it is to the user, beside cuda.core's node."""

    node: Any = field(default=None, kw_only=True)
    """A ``cuda.core.graph.GraphNode``; ``node.handle`` is the ``CUgraphNode``."""
    programmatic: bool = field(default=False, kw_only=True)
    """Whether an edge to it or from it is a programmatic one."""
    given: Any = field(default=None, kw_only=True)
    """What the backend knows of the graph."""

    @property
    def obstacle(self) -> str:
        """Why executables cannot leave it out; "" if they can."""
        if self.kind not in SWITCHED:
            return f"CUDA leaves out {', '.join(sorted(SWITCHED))} nodes alone"
        if self.parent is not None:
            return "it is in the body of a loop or branch, where CUDA leaves out no nodes"
        if self.programmatic:
            return (
                "an edge to it or from it is programmatic, so that what follows might not wait for "
                "what comes before; export the graph with programmatic_edges=False"
            )
        return ""

    @property
    def priority(self) -> int:
        """The priority of a kernel; lower numbers come first.

        It counts in executables that are made with ``use_node_priority=True`` after it is set.

        Raises:
            NodeError: it is not a kernel.
        """
        return int(self.given.priority(self))

    def set_priority(self, priority: int) -> None:
        """Give a kernel another priority.

        Raises:
            NodeError: it is not a kernel.
            ValueError: the priority is out of the range of the device.
            TypeError: it is not an integer.
        """
        self.given.set_priority(self, priority)


class ExportedNodes(Tabulated, tuple[ExportedNode, ...]):
    """The nodes of an exported graph, those in bodies behind their conditional node.

    It prints as a table.
    """

    __slots__ = ()

    def report(self) -> Report:
        """A row for each node."""
        from tracegraph.inspection.tables import Report, ReportSection, TextTable

        rows = []
        for node in self:
            inside = "" if node.parent is None else f" in {node.parent}"
            rows.append((f"{node.number}{inside}", node.kind, node.name, node.line or "-"))
        return Report.of([ReportSection("", TextTable(("node", "kind", "name", "line"), rows))])


@dataclass(frozen=True, slots=True, eq=False)
class ExportedGraph:
    """A CUDA graph with its arguments and results; made by `Compiled.export_graph`.

    The graph owns all that it points to, by CUDA user objects: code, constants, scratch, arguments
    and results live as long as it, an executable or a graph made from it, or a launch of one.
    """

    definition: Any
    """A ``cuda.core.graph.GraphDefinition``; ``definition.handle`` is the ``CUgraph``."""
    results: Any
    """What the function returns, each Array in memory that every launch writes to."""
    slots: Any = field(repr=False)
    """What each node keeps alive, as in `Compiled.slots`."""
    given: Any = field(repr=False)
    """What the backend knows of the graph, for `nodes`, `instantiate` and `update`."""

    @property
    def nodes(self) -> ExportedNodes:
        """The nodes by our names, with the user's lines and cuda.core's nodes."""
        return ExportedNodes(self.given.nodes())

    def instantiate(self, *, upload_stream: Any = None, use_node_priority: bool = False) -> Any:
        """An executable of the graph, with `launch`, `upload`, `update`, `close` and its `handle`.

        ``definition.instantiate()`` of cuda.core also makes an executable. This one names the node
        and your line if the driver refuses, can be updated, and orders its launches with calls. The
        options are those of cuda.core's ``GraphCompleteOptions``.

        Args:
            upload_stream: a stream, as `tracegraph.stream` takes them, in whose order the
                executable is uploaded at once, so that its first launch need not.
            use_node_priority: run kernels by the priorities of their nodes, instead of that of the
                stream of the launch.

        Raises:
            InstantiationError: the driver refuses, as it does for a second executable of a graph
                with loops or branches.
            MemoryError: the driver has not enough memory.
            TypeError, ValueError: `upload_stream` is not a stream, or one of another device.
        """
        return self.given.instantiate(upload_stream, use_node_priority)

    def update(self, other: ExportedGraph, executable: Any = None) -> UpdateResult:
        """Give executables of this graph all addresses and values of another exported graph.

        Later launches read the arguments of `other` and write to its results; launches in flight go
        on as they are. The executables own what `other` does from then on, and no longer what this
        graph does. CUDA requires the same nodes and edges, as exports of one `Compiled` have; what
        else may differ, it says by a result that names the node.

        Args:
            other: the graph to take over.
            executable: one that other code made of this graph: an object whose ``handle`` is the
                ``CUgraphExec``, such as cuda.core's ``Graph``. Without it, those that `instantiate`
                has made are updated, all that are open.

        Raises:
            NotInstantiatedError: `instantiate` has made none that is open.
            TypeError: `other` is not an exported graph.
            ValueError: `other` is on another device.
        """
        return self.given.update(other, executable)  # type: ignore[no-any-return]
