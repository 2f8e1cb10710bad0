"""Profiles: the time that each node of a Plan took, beside the least that its work takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lowering.plan.nests.work import Work
from lowering.plan.reports.rooflines import bytes_text, least_seconds, microseconds
from lowering.plan.target.rates import Rates
from tracegraph.inspection.tables import Report, ReportSection, Tabulated, TextTable


@dataclass(frozen=True, slots=True)
class NodeTime:
    """What one node took in a call.

    Args:
        title: what it does.
        line: the user's lines that it comes from.
        depth: the loops and branches around it.
        runs: how often it ran.
        seconds: of all its runs; of a loop or branch, what is spent on it besides its nodes.
        work: of one run.
        least: the seconds that all runs take at least on the device; None where that is unknown,
            as of a kernel with a loop inside whose steps depend on data.
    """

    title: str
    line: str
    depth: int
    runs: float
    seconds: float
    work: Work
    least: float | None

    @property
    def part(self) -> float | None:
        """The part of the device's limit that it reaches; above 1 where a cache answers."""
        return self.least / self.seconds if self.least and self.seconds else None


@dataclass(frozen=True, slots=True)
class Profile(Tabulated):
    """The times of all nodes, which ran one after the other.

    It prints as a table, in which copies of a node in an unrolled loop have one row.

    Args:
        name: of the function.
        nodes: a row for each node; those in bodies after their loop.
        launches: of which these are the medians.
        call_seconds: the median of calls without clocks, waits included.
        rates: the limits of the device.
    """

    name: str
    nodes: tuple[NodeTime, ...]
    launches: int
    call_seconds: float
    rates: Rates | None

    @property
    def seconds(self) -> float:
        """The sum of all nodes."""
        return sum([node.seconds for node in self.nodes])

    @property
    def least(self) -> float | None:
        """The seconds that all nodes take at least, one after the other; None if one is unknown."""
        known = [node.least for node in self.nodes if node.least is not None]
        return sum(known) if len(known) == len(self.nodes) else None

    def report(self) -> Report:
        """A row for each node; copies of one in an unrolled loop share theirs."""
        columns = ("node", "line", "runs", "µs a run", "µs", "of all", "must move", *self._limit())
        rows: list[tuple[str, ...]] = []
        whole, alike = self.seconds or 1.0, _alike(self.nodes)
        for node in alike:
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
        table = TextTable(columns, rows, 2, [node.seconds for node in alike])
        call = microseconds(self.call_seconds)
        title = f"{self.name}: {microseconds(self.seconds)} µs in nodes, {call} µs a call"
        limits = (f"limits of {self.rates.name}",) if self.rates else ()
        return Report.of([ReportSection(title, table, limits, "nodes")])

    def _limit(self) -> tuple[str, ...]:
        return ("least µs", "part") if self.rates else ()

    def _parts(self, node: NodeTime) -> tuple[str, ...]:
        if self.rates is None:
            return ()
        if node.least is None:
            return "-", "-"
        part = "-" if node.part is None else f"{node.part:.2f}"
        return microseconds(least_seconds(node.work, self.rates)), part


def _alike(nodes: Sequence[NodeTime]) -> list[NodeTime]:
    """Copies of a node in the body of an unrolled loop as one, with the runs and times of all."""
    found: dict[tuple[object, ...], NodeTime] = {}
    around: list[int] = []  # the number of the last row at each depth
    for number, node in enumerate(nodes):
        del around[node.depth :]
        around.append(number)
        has_nodes = number + 1 < len(nodes) and nodes[number + 1].depth > node.depth
        own = (number,) if has_nodes else (node.title, node.line)
        key = (*around[:-1], *own)
        first = found.get(key)
        if first is None:
            found[key] = node
            continue
        least = None
        if first.least is not None and node.least is not None:
            least = first.least + node.least
        runs, seconds = first.runs + node.runs, first.seconds + node.seconds
        found[key] = replace(first, runs=runs, seconds=seconds, least=least)
    return [*found.values()]
