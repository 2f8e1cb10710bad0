"""Explaining a Plan: its memory, and a table of its control flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lowering.plan.construct import Construct, Inlined, Path
from lowering.plan.nodes import Graph, Node, body_graphs, launched, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
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


def explain(plan: Plan) -> str:
    """A table of every loop and branch: the user's line and construct, and how the graph runs it.

    Steps that depend on data are `?`. The nodes of each body are counted at all levels; for a loop
    or branch that is inlined, the nodes that it became. Indentation shows nesting. Lines about
    donated arguments, about scratch that each launch was to allocate, and about arguments that each
    launch copies, follow.
    """
    rows = [_COLUMNS, *_rows(_placed(plan.graph), 0)]
    nodes = tuple(launched(plan.graph))
    conditional = sum(1 for node in nodes if body_graphs(node))
    title = f"{plan.name}: {len(nodes)} nodes, {conditional} of them conditional"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    table = lines if len(rows) > 1 else ()
    return "\n".join((title, *table, *_donations(plan), *_scratch(plan), *_staging(plan)))


def schedules(plan: Plan) -> tuple[tuple[str, str, str], ...]:
    """The user's line, the construct and the schedule of every loop and branch, outer ones first.

    They are those of `explain`.
    """
    rows = _rows(_placed(plan.graph), 0)
    return tuple([(lines, name.strip(), schedule) for lines, name, _, schedule, *_ in rows])


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


def _staging(plan: Plan) -> Iterator[str]:
    for buffer in plan.staged:
        way = "to scratch" if buffer.space == "input" else "from scratch"
        yield (
            f"staged {buffer} {buffer.type}: each launch copies {buffer.type.nbytes:,} B {way}, "
            "as its address moves and a node takes a fixed one"
        )


_Placed = tuple[Node, Path]
"""A node, and one of the paths of inlined loops and branches that it is on."""


def _placed(graph: Graph) -> list[_Placed]:
    return [(node, path) for node in graph.nodes for path in node.within or ((),)]


def _rows(placed: Sequence[_Placed], depth: int) -> Iterator[tuple[str, ...]]:
    """The rows of the loops and branches that nodes are, or are a part of."""
    seen: set[Inlined] = set()
    for node, path in placed:
        if path and path[0].inlined not in seen:
            seen.add(path[0].inlined)
            yield from _inlined_rows(path[0].inlined, placed, depth)
        elif not path and isinstance(node, PersistentKernelNode):
            yield from _rows_inside(node, depth)
        elif not path and node.bodies:
            known = node.construct or Construct("-", why="-")
            counts = [sum(1 for _ in walk(body)) for body in node.bodies]
            schedule = schedule_text(known, node.kind)
            yield _row(known, schedule, node.kind == "while", node.sources, counts, depth)
            for body in node.bodies:
                yield from _rows(_placed(body), depth + 1)


def _rows_inside(node: PersistentKernelNode, depth: int) -> Iterator[tuple[str, ...]]:
    """The rows of what runs inside of a kernel; the first says by which threads."""
    first, *others = _rows(_placed(node.graph), depth)
    lines, construct, steps, schedule, *rest = first
    yield (lines, construct, steps, f"{schedule}, {node.scope}", *rest)
    yield from others


def _inlined_rows(
    inlined: Inlined, placed: Sequence[_Placed], depth: int
) -> Iterator[tuple[str, ...]]:
    parts: list[list[_Placed]] = [[] for _ in range(inlined.parts)]
    for node, path in placed:
        if path and path[0].inlined is inlined:
            parts[path[0].number].append((node, path[1:]))
    counts = [len({id(node) for node, _ in part}) for part in parts]
    known = inlined.construct
    yield _row(known, known.schedule, inlined.is_loop, inlined.sources, counts, depth)
    for part in parts:
        yield from _rows(part, depth + 1)


def schedule_text(known: Construct, kind: str) -> str:
    """The schedule of a loop or branch that has a node of this kind: ``"WHILE node"``."""
    if known.schedule == "one_kernel":
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
    counts: Sequence[int],
    depth: int,
) -> tuple[str, ...]:
    lines = lines_of(sources) or "-"
    steps = _steps(known) if is_loop else "-"
    nodes = "+".join(map(str, counts))
    return lines, "  " * depth + known.name, steps, schedule, nodes, known.why


def _steps(known: Construct) -> str:
    if known.steps is not None:
        return str(known.steps)
    return "?" if known.max_steps is None else f"<= {known.max_steps}"
