"""Explaining a Plan: its memory, and a table of its control flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from lowering.plan.construct import Construct, Inlined, Path
from lowering.plan.launch_nodes import LaunchKernelNode
from lowering.plan.lockstep import collective_of
from lowering.plan.nodes import Graph, MemcpyNode, Node, body_graphs, launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tables import Report, ReportSection, TextTable
from tracegraph.user_source import Source, lines_of

_COLUMNS = ("line", "construct", "steps", "schedule", "nodes", "why")


def memory(plan: Plan) -> dict[str, int]:
    """Bytes by purpose: arguments, outputs that are not written over one, scratch, constants.

    Executables add what a device needs besides, such as the workspace of a library.
    """
    return {
        "arguments": sum(b.type.nbytes for b in plan.inputs),
        "outputs": sum(b.type.nbytes for b in plan.outputs if b.space == "output"),
        "scratch": plan.arena_bytes,
        "constants": sum(b.type.nbytes for b, _ in plan.constants),
    }


def bytes_held(plan: Plan, needed: Mapping[str, int]) -> int:
    """The bytes kept between calls, among those that a run of a Plan needs by purpose."""
    return needed["constants"] + (0 if plan.per_launch else needed["scratch"])


def explain(plan: Plan) -> Report:
    """A table of every loop and branch: the user's line and construct, and how the graph runs it.

    Steps that depend on data are `?`. The nodes of each body are counted at all levels; for a loop
    or branch that is inlined, the nodes that it became. Indentation shows nesting. Lines about
    donated arguments, and about scratch that each launch was to allocate, follow.

    Other nodes have a row if the program does not say why they are there, as what copies arguments
    and the kernels that factor small matrices, or if they become several nodes of a CUDA graph, as
    a sort. Library calls become as many nodes as they are captured as, which is known once they
    are: until then the number is `?`.
    """
    table = _Table(plan)
    graph = plan.launch_graph
    rows = list(table.rows(_placed(graph), 0))
    kinds = [table.kinds(node) for node in launched(graph)]
    conditional = sum([kind is not None and "conditional" in kind for kind in kinds])
    least = "" if None not in kinds else "at least "
    title = f"{plan.name}: {least}{_size(kinds)} nodes, {conditional} of them conditional"
    notes = (*_donations(plan), *_scratch(plan))
    what = "loops, branches and other nodes"
    return Report.of([ReportSection(title, TextTable(_COLUMNS, rows), notes, what)])


def schedules(plan: Plan) -> tuple[tuple[str, str, str], ...]:
    """The user's line, the construct and the schedule of every loop and branch, outer ones first.

    They are those of `explain`.
    """
    rows = _Table(plan, others=False).rows(_placed(plan.graph), 0)
    return tuple([(lines, name.strip(), schedule) for lines, name, _, schedule, *_ in rows])


def becomes(plan: Plan, node: Node) -> str:
    """The nodes of the CUDA graph that a node becomes: ``"2 memcpy, graph nodes"``.

    It is empty where there is no such graph, and for what is one node, bodies left out, or what the
    host does.
    """
    kinds = plan.graph_nodes(node) if plan.as_graph else ()
    if kinds is None:
        return "its nodes are known once it is compiled"
    return _kinds_text(kinds) if len(kinds) > 1 else ""


def _kinds_text(kinds: Sequence[str]) -> str:
    groups = [(kind, len(tuple(same))) for kind, same in groupby(kinds)]
    named = ", ".join([kind if count == 1 else f"{count} {kind}" for kind, count in groups])
    return f"{named} node{'s' if len(kinds) != 1 else ''}"


def _donations(plan: Plan) -> Iterator[str]:
    for donation in plan.donations:
        source = plan.inputs[donation.input]
        if donation.output is None:
            what = f"not overwritten: {donation.why}"
        else:
            what = f"overwritten by output[{donation.output}]"
        yield f"donated {source} {source.type}: {what}"


def _scratch(plan: Plan) -> Iterator[str]:
    if plan.per_launch:
        yield "scratch: allocated and freed by each launch"
    elif plan.kept_because:
        yield f"scratch: kept between launches: {plan.kept_because}"


_Placed = tuple[Node, Path]
"""A node, and one of the paths of inlined loops and branches that it is on."""

_Kinds = tuple[str, ...] | None
"""The kinds of the nodes that a node of the Plan becomes; None if they are not known yet."""

_Row = tuple[str, ...]


def _placed(graph: Graph) -> list[_Placed]:
    return [(node, path) for node in graph.nodes for path in node.within or ((),)]


def _size(kinds: Iterable[_Kinds]) -> int:
    """How many nodes there are, at least."""
    return sum([1 if kind is None else len(kind) for kind in kinds])


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows of a Plan, with `others` also those of nodes that are neither loops nor branches;
    `inside` of a kernel that runs them all.
    """

    plan: Plan
    others: bool = True
    inside: bool = False

    def kinds(self, node: Node) -> _Kinds:
        """The nodes that are launched for one of the Plan, which itself is one on the host.

        What is inside of a kernel counts as if it were launched; what a library does elsewhere is
        one part of it.
        """
        if self.inside and node.graph_nodes is None and not node.bodies:
            return ("part",)
        if self.plan.as_graph:
            return self.plan.graph_nodes(node)
        return ("conditional",) if body_graphs(node) else ("node",)

    def rows(self, placed: Sequence[_Placed], depth: int) -> Iterator[_Row]:
        """The rows of the loops and branches that nodes are, or are a part of, and of others."""
        seen: set[Inlined] = set()
        others = self.other_rows(placed, depth)
        for node, path in placed:
            if path:
                if path[0].inlined not in seen:
                    seen.add(path[0].inlined)
                    yield from self.inlined_rows(path[0].inlined, placed, depth)
            elif node in others:
                yield others.pop(node)
            elif isinstance(node, PersistentKernelNode):
                if node.exchange is None and not node.scope.beside:
                    yield from self.rows_inside(node, depth)
            elif node.bodies:
                known = node.construct or Construct("-", why="-")
                counts = [self.count(launched(body)) for body in node.bodies]
                schedule = schedule_text(known, node.kind)
                yield _row(known, schedule, node.kind == "while", node.sources, counts, depth)
                for body in node.bodies:
                    yield from self.rows(_placed(body), depth + 1)

    def rows_inside(self, node: PersistentKernelNode, depth: int) -> Iterator[_Row]:
        """The rows of what runs inside of a kernel; the first says by which threads."""
        first, *others = replace(self, inside=True).rows(_placed(node.graph), depth)
        lines, construct, steps, schedule, *rest = first
        yield (lines, construct, steps, f"{schedule}, {node.scope}", *rest)
        yield from others

    def inlined_rows(
        self, inlined: Inlined, placed: Sequence[_Placed], depth: int
    ) -> Iterator[_Row]:
        """The rows of a loop or branch without a node of its own, and of what is inside."""
        parts: list[list[_Placed]] = [[] for _ in range(inlined.parts)]
        for node, path in placed:
            if path and path[0].inlined is inlined:
                parts[path[0].number].append((node, path[1:]))
        counts = [self.count(dict.fromkeys([node for node, _ in part])) for part in parts]
        known = inlined.construct
        yield _row(known, known.schedule, inlined.is_loop, inlined.sources, counts, depth)
        for part in parts:
            yield from self.rows(part, depth + 1)

    def other_rows(self, placed: Sequence[_Placed], depth: int) -> dict[Node, _Row]:
        """The rows of other nodes; copies of a loop's body have one row, that of the first."""
        alike: dict[tuple[str, ...], list[Node]] = {}
        here = [node for node, path in placed if not path] if self.others else ()
        for node in dict.fromkeys(here):
            if (not node.bodies or node.purpose) and (node.purpose or becomes(self.plan, node)):
                serves_others = isinstance(node, LaunchKernelNode | MemcpyNode)
                lines = "" if serves_others and node.purpose else lines_of(node.sources)
                alike.setdefault((lines, node.title, becomes(self.plan, node)), []).append(node)
        return {
            nodes[0]: self.other_row(lines, nodes, depth) for (lines, *_), nodes in alike.items()
        }

    def other_row(self, lines: str, nodes: Sequence[Node], depth: int) -> _Row:
        """The row of a node, and of others like it."""
        first, kinds = nodes[0], self.kinds(nodes[0])
        if self.inside and collective_of(first) is not None:
            name, why = "  " * depth + first.title, "devices store into the memory of one another"
            return lines or "-", name, "-", "part of the kernel", str(len(nodes)), why
        name = first.title if len(nodes) == 1 else f"{first.title}, {len(nodes)} times"
        what = f"{first.kind} node" if kinds is None else _kinds_text(kinds)
        what = what if self.plan.as_graph else "-"
        why = first.purpose or first.noun
        if kinds is None:
            why = f"{why}; {becomes(self.plan, first)}"
        count = "?" if kinds is None else str(len(nodes) * len(kinds))
        return lines or "-", "  " * depth + name, "-", what, count, why

    def count(self, nodes: Iterable[Node]) -> str:
        """How many nodes are launched for these, bodies left out."""
        kinds = list(map(self.kinds, nodes))
        return f">={_size(kinds)}" if None in kinds else str(_size(kinds))


def schedule_text(known: Construct, kind: str) -> str:
    """The schedule of a loop or branch that has a node of this kind: ``"WHILE node"``."""
    if known.schedule in ("one_kernel", "per_lane"):
        return "one kernel"
    if known.schedule == "conditional":
        return "host-driven" if known.host_driven else f"{kind.replace('_', '/').upper()} node"
    name = known.schedule if known.copies == 1 else f"{known.schedule} x{known.copies}"
    return f"host-driven, {name}" if known.host_driven else name


def _row(
    known: Construct,
    schedule: str,
    is_loop: bool,
    sources: Sequence[Source],
    counts: Sequence[str],
    depth: int,
) -> _Row:
    lines = lines_of(sources) or "-"
    steps = _steps(known) if is_loop else "-"
    return lines, "  " * depth + known.name, steps, schedule, "+".join(counts), known.why


def _steps(known: Construct) -> str:
    if known.steps is not None:
        return str(known.steps)
    return "?" if known.max_steps is None else f"<= {known.max_steps}"
