"""GraphView: a CUDA graph as data, to look at and not to edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tabulated import Tabulated

if TYPE_CHECKING:
    from tracegraph.inspection.tables import Report


@dataclass(frozen=True, slots=True, eq=False)
class GraphNode:
    """A node of a CUDA graph."""

    number: int
    """Its position among all nodes of the graph and its bodies."""
    kind: str
    """CUDA's, such as ``"kernel"``, ``"memset"`` or ``"conditional"``."""
    name: str
    """What it is: the function of a kernel, or what a library was called for."""
    line: str
    """The user's lines that it comes from."""
    parent: int | None = None
    """The number of the conditional node whose body it is in; None at the top."""
    branch: int = 0
    """Which of the bodies of that node."""
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What CUDA knows of it: ``"grid"``, ``"block"`` and ``"shared_bytes"`` of a kernel, and
    ``"bytes"`` of memory nodes and copies.
    """

    def __repr__(self) -> str:
        line = f" {self.line}" if self.line else ""
        return f"<{self.kind} node {self.number} {self.name}{line}>"


@dataclass(frozen=True, slots=True, eq=False)
class GraphView(Tabulated):
    """The nodes and edges of the graph behind the calls of a function, those of bodies included.

    It prints as a table. It is a copy: nothing that is done to it concerns the graph, and holding
    it keeps nothing alive.
    """

    name: str
    device: str
    nodes: tuple[GraphNode, ...] = field(repr=False)
    edges: frozenset[tuple[int, int]] = field(repr=False)
    """Pairs of numbers of nodes: the second waits for the first."""
    programmatic: frozenset[tuple[int, int]] = field(repr=False)
    """Those edges behind which a kernel may start before the first has ended."""

    def __repr__(self) -> str:
        nodes = "1 node" if len(self.nodes) == 1 else f"{len(self.nodes)} nodes"
        return f"<graph of {self.name} on {self.device}: {nodes}, {len(self.edges)} edges>"

    def report(self) -> Report:
        """A row for each node."""
        from tracegraph.inspection.tables import Report, ReportSection, TextTable

        rows = []
        for node in self.nodes:
            indent = "  " * self._depth(node)
            before = sorted(first for first, second in self.edges if second == node.number)
            rows.append(
                (
                    f"{indent}{node.number}",
                    node.kind,
                    node.name,
                    node.line or "-",
                    ", ".join(map(str, before)) or "-",
                    ", ".join(f"{key} {_text(value)}" for key, value in node.details.items())
                    or "-",
                )
            )
        table = TextTable(("node", "kind", "name", "line", "waits for", "details"), rows)
        return Report.of([ReportSection(repr(self)[1:-1], table, what="nodes")])

    def dot(self) -> str:
        """The graph in Graphviz's language: bodies are clusters, programmatic edges are dashed."""
        lines = [f"digraph {_quoted(self.name)} {{", "  node [shape=box]"]
        lines += self._boxes(None, "  ")
        for first, second in sorted(self.edges):
            style = " [style=dashed]" if (first, second) in self.programmatic else ""
            lines.append(f"  n{first} -> n{second}{style}")
        return "\n".join((*lines, "}"))

    def _boxes(self, parent: int | None, indent: str) -> list[str]:
        lines = []
        for node in self.nodes:
            if node.parent != parent:
                continue
            label = "\n".join(filter(None, (f"{node.kind} {node.name}", node.line)))
            lines.append(f"{indent}n{node.number} [label={_quoted(label)}]")
            inside = self._boxes(node.number, f"{indent}  ")
            if inside:
                opening = f"{indent}subgraph cluster_{node.number} {{"
                title = f"{indent}  label={_quoted(f'in {node.name}')}"
                lines += [opening, title, *inside, f"{indent}}}"]
        return lines

    def _depth(self, node: GraphNode) -> int:
        return 0 if node.parent is None else 1 + self._depth(self.nodes[node.parent])


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
