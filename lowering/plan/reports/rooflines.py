"""Rooflines: what each node of a Plan must move and compute, and the least time for that.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", 2009.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.lane_nests import LaneNests, kept_by_lanes
from lowering.plan.nests.work import Work, least_seconds, nests_work
from lowering.plan.nodes import Graph, KernelNode, Node, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.rates import Rates
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tables import Report, ReportSection, TextTable
from tracegraph.user_source import lines_of


@dataclass(frozen=True, slots=True)
class NodeWork:
    """The work of a node in one run, and how often a launch runs it.

    `runs` is None where that depends on data; `depth` counts the loops and branches around it.
    """

    node: Node
    work: Work
    runs: float | None
    depth: int

    @property
    def depends_on_data(self) -> bool:
        """Whether how often it works is not known before."""
        return self.runs is None and self.work != Work()

    @property
    def least_runs(self) -> float:
        """How often it runs; once where that depends on data."""
        return 1 if self.runs is None else self.runs


def works(plan: Plan) -> tuple[NodeWork, ...]:
    """The nodes of a Plan that move or compute anything, and its loops and branches.

    Those in bodies follow their loop. What runs inside of a kernel counts like nodes.
    """
    users: dict[Buffer, set[Node]] = {}
    for node in walk(plan.graph):
        for buffer in node.accessed_buffers:
            users.setdefault(buffer, set()).add(node)
    found = _works(plan.launch_graph, 1, 0, users)
    return tuple([each for each in found if each.work != Work() or each.node.bodies])


def work_inside(node: Node) -> tuple[Work, bool]:
    """The work of a node in one run, phases of a kernel included, and whether it is all.

    Phases that run as often as data say count once.
    """
    bodies, lanes = node.bodies if node.is_kernel else (), _lanes_of(node)
    kept = frozenset(kept_by_lanes(lanes)) if lanes is not None else frozenset()
    inside = [each for body in bodies for each in _works(body, 1, 0, {}, kept)]
    is_all = not any(each.depends_on_data for each in inside)
    return sum([each.work * each.least_runs for each in inside], node.work), is_all


def _alike(known: Sequence[NodeWork]) -> list[NodeWork]:
    """Copies of a node in the body of an unrolled loop as one, which runs as often as all."""
    found: dict[tuple[object, ...], NodeWork] = {}
    place = 0
    for each in known:
        if each.node.bodies and _work_of_exchange(each.node) is None:
            place += 1
            found[place,] = each
            continue
        key = place, each.depth, each.node.title, each.node.sources
        first = found.get(key)
        if first is None:
            found[key] = each
        elif first.runs is not None and each.runs is not None:
            found[key] = replace(first, runs=first.runs + each.runs)
    return [*found.values()]


def total_work(plan: Plan) -> Work | None:
    """The sum over all nodes; None if how often some of them run depends on data."""
    known = works(plan)
    return None if any(each.depends_on_data for each in known) else _sum(known)


def least_time(plan: Plan, rates: Rates) -> float | None:
    """The seconds that the nodes of a Plan take at least, one after the other; None if how often
    some of them run depends on data.
    """
    known = works(plan)
    return None if any(each.depends_on_data for each in known) else _least(known, rates)


def border_bytes(plan: Plan) -> int:
    """The bytes of arguments, results and constants, which a launch must move however it is
    planned.
    """
    constants = [buffer for buffer, _ in plan.constants]
    return sum([buffer.type.nbytes for buffer in (*plan.inputs, *plan.outputs, *constants)])


def rooflines(plan: Plan, rates: Rates | None = None) -> Report:
    """A table of the work of each node in one run, with the least time for it; empty without work.

    The sum is over all runs. Where the number of runs depends on data, they count once.
    """
    known = works(plan)
    if not any(each.work != Work() for each in known):
        return Report.of([])
    alike = _alike(known)
    name = "at least" if any(each.depends_on_data for each in known) else "sum"
    last = (name, "", "", *_cells(_sum(known), rates, _least(known, rates)))
    columns = _COLUMNS if rates is None else (*_COLUMNS, "least µs")
    border = f"arguments, results and constants: {bytes_text(border_bytes(plan))}"
    if rates is not None:
        seconds = border_bytes(plan) / rates.copy
        border += f", {microseconds(seconds)} µs; limits of {rates.name}"
    table = TextTable(
        columns,
        [_row(each, rates) for each in alike],
        _FIRST_NUMBER,
        [_cost(each, rates) for each in alike],
        last,
    )
    return Report.of([ReportSection("", table, (border,), "nodes")])


def _cost(each: NodeWork, rates: Rates | None) -> float:
    """What orders the nodes of a long table: the least time of all runs, or the bytes moved."""
    once = each.work.required if rates is None else least_seconds(each.work, rates)
    return each.least_runs * once


_COLUMNS = ("work of", "line", "runs", "must move", "moves", "operations", "special")


def _works(
    graph: Graph,
    runs: float | None,
    depth: int,
    users: Mapping[Buffer, Set[Node]],
    kept: Set[Buffer] = frozenset(),
) -> Iterator[NodeWork]:
    """The work of nodes, inside of a kernel that keeps some buffers in registers."""
    for node in graph.nodes:
        if (together := _work_of_exchange(node)) is not None:
            yield NodeWork(node, together, runs, depth)
            continue
        work = node.work
        if kept and isinstance(node, KernelNode):
            work = nests_work(node.kernel.nests, kept)
        in_body, lanes = kept, _lanes_of(node)
        if lanes is not None:
            in_body = frozenset(kept_by_lanes(lanes))
            own = {inner for body in node.bodies for inner in walk(body)}
            moved = [b for b in in_body if lanes.places[b] and not users[b] <= own]
            nbytes = 2 * sum([buffer.type.nbytes for buffer in moved])
            work = Work(nbytes, nbytes)
        yield NodeWork(node, work, runs, depth)
        inside = _runs_inside(node, runs)
        for body in node.bodies:
            yield from _works(body, inside, depth + 1, users, in_body)


def _work_of_exchange(node: Node) -> Work | None:
    """The work of a kernel that exchanges, and of the map beside, if there is one."""
    if isinstance(node, PersistentKernelNode) and (node.scope.beside or node.exchange is not None):
        return sum([each.work for each in node.graph.nodes], Work())
    return None


def _lanes_of(node: Node) -> LaneNests | None:
    """The lanes of a kernel with a thread for each; None of other nodes."""
    if isinstance(node, PersistentKernelNode) and node.scope.lanes:
        return node.lane_nests
    return None


def _runs_inside(node: Node, runs: float | None) -> float | None:
    """How often the bodies of a node run, if that is known."""
    if node.kind != "while":  # a branch runs or not; phases run with their kernel
        return runs if node.is_kernel else None
    known = node.construct
    if runs is None or known is None or known.steps is None:
        return None
    return runs * known.steps / max(known.copies, 1)


def _sum(known: Sequence[NodeWork]) -> Work:
    return sum([each.work * each.least_runs for each in known], Work())


def _least(known: Sequence[NodeWork], rates: Rates | None) -> float:
    if rates is None:
        return 0.0
    return sum([each.least_runs * least_seconds(each.work, rates) for each in known])


def _row(each: NodeWork, rates: Rates | None) -> tuple[str, ...]:
    node, work = each.node, each.work
    time = None if rates is None else least_seconds(work, rates)
    runs = "?" if each.runs is None else f"{each.runs:,.0f}"
    first = f"{'  ' * each.depth}{node.title}", lines_of(node.sources) or "-", runs
    if work == Work():
        return (*first, *[""] * (4 if rates is None else 5))
    return (*first, *_cells(work, rates, time or 0.0))


def _cells(work: Work, rates: Rates | None, seconds: float) -> tuple[str, ...]:
    cells = (
        bytes_text(work.required),
        bytes_text(work.moved),
        _operations(work),
        _by_dtype(work.special),
    )
    return cells if rates is None else (*cells, microseconds(seconds))


def _operations(work: Work) -> str:
    """Operations, products of libraries among them."""
    return _by_dtype(Counter(work.operations) + Counter(work.products))


def _by_dtype(counts: Mapping[str, float]) -> str:
    """``"2.1 G float32"``."""
    return ", ".join([f"{_count(n).rstrip()} {dtype}" for dtype, n in counts.items()]) or "-"


def bytes_text(count: float) -> str:
    """``"134 MB"``: three digits."""
    return f"{_count(count)}B"


def _count(count: float) -> str:
    """``"134 M"``: three digits and a prefix, none below a thousand."""
    for prefix, unit in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 0.9995 * unit:
            return f"{_number(count / unit)} {prefix}"
    return f"{count:.0f} "


def _number(x: float) -> str:
    """Three significant digits."""
    return f"{x:,.0f}" if x >= 99.95 else f"{x:.3g}"


def microseconds(seconds: float) -> str:
    """Three digits: ``"12.5"``."""
    return "< 0.001" if 0 < seconds < 1e-9 else _number(seconds * 1e6)


_FIRST_NUMBER = 2
"""The first column of numbers."""
