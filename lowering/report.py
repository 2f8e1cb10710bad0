"""What a Plan needs and does, for people: memory, kernels' text, and a table of control flow."""

from __future__ import annotations

from collections.abc import Iterator

from lowering.plan import (
    Graph,
    IfElseNode,
    Node,
    Plan,
    SwitchNode,
    WhileNode,
    bodies,
    walk,
)

_KINDS: dict[type, str] = {IfElseNode: "cond", SwitchNode: "switch", WhileNode: "while"}
_COLUMNS = ("line", "construct", "schedule", "nodes")


def memory(plan: Plan) -> dict[str, int]:
    """Bytes by purpose: arguments, outputs, scratch, constants."""
    return {
        "arguments": sum(b.type.nbytes for b in plan.inputs),
        "outputs": sum(b.type.nbytes for b in plan.outputs),
        "scratch": plan.arena_bytes,
        "constants": sum(b.type.nbytes for b, _ in plan.constants),
    }


def source(plan: Plan) -> str:
    """CUDA C++ text of the kernels; no GPU is needed for it."""
    from lowering.backends.cuda import CudaBackend  # the rest of this file needs nothing of CUDA

    return CudaBackend().source(plan)


def explain(plan: Plan) -> str:
    """A table of every loop and branch: the user's line, the construct, its schedule, its nodes.

    The nodes are those of each body, all levels counted. Nesting is shown by indentation.
    """
    rows = [_COLUMNS, *_rows(plan.graph, 0)]
    total = sum(1 for _ in walk(plan.graph))
    title = f"{plan.name}: {total} nodes, {len(rows) - 1} of them conditional"
    if len(rows) == 1:
        return title
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join((title, *lines))


def _rows(graph: Graph, depth: int) -> Iterator[tuple[str, str, str, str]]:
    for node in graph.nodes:
        inner = bodies(node)
        if inner:
            counts = "+".join(str(sum(1 for _ in walk(body))) for body in inner)
            construct = "  " * depth + _KINDS[type(node)]
            yield _line(node), construct, "conditional node", counts
        for body in inner:
            yield from _rows(body, depth + 1)


def _line(node: Node) -> str:
    return ", ".join(dict.fromkeys(str(source) for source in node.sources)) or "-"
