"""Profiles: the time that each node of a Plan took, beside the least that its work takes."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from typing import Any

from lowering.plan.nests.work import least_seconds
from lowering.plan.plan import Plan
from lowering.plan.reports.node_times import NodeTime, alike
from lowering.plan.reports.profile_plot import plot
from lowering.plan.reports.rooflines import bytes_text, microseconds
from lowering.plan.reports.trace_events import trace_events, written_events
from lowering.plan.target.rates import Rates
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.drawable import Drawable
from tracegraph.inspection.tables import Report, ReportSection, TextTable
from tracegraph.inspection.tabulated import Tabulated


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Tabulated, Drawable):
    """The times of all nodes, which ran one after the other.

    It prints as a table, in which copies of a node in an unrolled loop have one row.
    `tracegraph.show` draws it: the picture of the plan, with boxes in the colour of their time.

    Args:
        name: of the function.
        nodes: a row for each node; those in bodies after their loop.
        launches: of which these are the medians.
        call_seconds: the median of calls without clocks, waits included.
        rates: the limits of the device.
        plan: what was measured.
    """

    _displayed_by = "lowering.plan.reports.display"

    name: str
    nodes: tuple[NodeTime, ...]
    launches: int
    call_seconds: float
    rates: Rates | None
    plan: Plan | None = field(default=None, repr=False)

    def line(self) -> str:
        """It in a line."""
        return f"of {self.name}: {microseconds(self.seconds)} µs in {len(self.nodes)} nodes"

    @property
    def seconds(self) -> float:
        """The sum of all nodes."""
        return sum([node.seconds for node in self.nodes])

    @property
    def least(self) -> float | None:
        """The seconds that all nodes take at least, one after the other; None if one is unknown."""
        known = [node.least for node in self.nodes if node.least is not None]
        return sum(known) if len(known) == len(self.nodes) else None

    def trace_events(self) -> dict[str, Any]:
        """The times as trace events, which Perfetto and Chrome's tracing read, as data for JSON.

        One call, node after node. What ran several times is one event, as long as all its runs.
        """
        return trace_events(self.name, self.nodes)

    def write_trace(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace events to a file, for https://ui.perfetto.dev; its path.

        Raises:
            OSError: it cannot be written.
        """
        return written_events(path, self.trace_events())

    def plot(self, axes: Any = None) -> Any:
        """A bar for the time of each node, the longest first, with marks at the least it takes.

        Args:
            axes: of matplotlib; by default, those of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
        """
        return plot(self.name, self.nodes, axes)

    def report(self) -> Report:
        """A row for each node; copies of one in an unrolled loop share theirs."""
        columns = ("node", "line", "runs", "µs a run", "µs", "of all", "must move", *self._limit())
        rows: list[tuple[str, ...]] = []
        whole, shown = self.seconds or 1.0, alike(self.nodes)
        for node in shown:
            each = node.seconds / node.runs if node.runs else 0.0
            rows.append(
                (
                    f"{'  ' * node.depth}{node.title}",
                    node.line,
                    f"{node.runs:,.4g}" if node.runs < 1e4 else f"{node.runs:,.0f}",
                    microseconds(each),
                    microseconds(node.seconds),
                    f"{node.seconds / whole:.0%}",
                    bytes_text(node.work.required) if node.work.required else "-",
                    *self._parts(node),
                )
            )
        table = TextTable(columns, rows, 2, [node.seconds for node in shown])
        call = microseconds(self.call_seconds)
        title = f"{self.name}: {microseconds(self.seconds)} µs in nodes, {call} µs a call"
        limits = (f"limits of {self.rates.name}",) if self.rates else ()
        return Report.of([ReportSection(title, table, limits, "nodes")])

    def _limit(self) -> tuple[str, ...]:
        return ("least µs", "part") if self.rates else ("GB/s",)

    def _parts(self, node: NodeTime) -> tuple[str, ...]:
        if self.rates is None:
            return ("-" if node.bandwidth is None else f"{node.bandwidth / 1e9:.3g}",)
        if node.least is None:
            return "-", "-"
        part = "-" if node.part is None else f"{node.part:.2f}"
        return microseconds(least_seconds(node.work, self.rates)), part
