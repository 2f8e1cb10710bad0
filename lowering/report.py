"""What a Plan needs and does, for people: memory, kernels' text, and a table of control flow."""

from __future__ import annotations

from collections.abc import Iterator

from lowering.plan import (
    ConditionalNode,
    Construct,
    Graph,
    IfElseNode,
    IfNode,
    Node,
    Plan,
    SwitchNode,
    WhileNode,
    bodies,
    walk,
)

_KINDS: dict[type, str] = {
    IfNode: "IF node",
    IfElseNode: "IF/ELSE node",
    SwitchNode: "SWITCH node",
    WhileNode: "WHILE node",
}
_COLUMNS = ("line", "construct", "steps", "schedule", "nodes", "why")


def memory(plan: Plan) -> dict[str, int]:
    """Bytes by purpose: arguments, outputs that are not written over one, scratch, constants."""
    return {
        "arguments": sum(b.type.nbytes for b in plan.inputs),
        "outputs": sum(b.type.nbytes for b in plan.outputs if b.space == "output"),
        "scratch": plan.arena_bytes,
        "constants": sum(b.type.nbytes for b, _ in plan.constants),
    }


def source(plan: Plan) -> str:
    """CUDA C++ text of the kernels; no GPU is needed for it."""
    from lowering.backends.cuda import CudaBackend  # the rest of this file needs nothing of CUDA

    return CudaBackend().source(plan)


def explain(plan: Plan) -> str:
    """A table of every loop and branch: the user's line and construct, and how the graph runs it.

    The steps of a loop are `?` where they depend on data. The nodes are those of each body, all
    levels counted. Nesting is shown by indentation. Then what became of each donated argument.
    """
    rows = [_COLUMNS, *_rows(plan.graph, 0)]
    total = sum(1 for _ in walk(plan.graph))
    title = f"{plan.name}: {total} nodes, {len(rows) - 1} of them conditional"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join((title, *(lines if len(rows) > 1 else ()), *_donations(plan)))


def _donations(plan: Plan) -> Iterator[str]:
    for donation in plan.donations:
        source = plan.inputs[donation.input]
        if donation.output is None:
            what = f"not overwritten: {donation.why}"
        else:
            what = f"overwritten by output[{donation.output}]"
        yield f"donated {source} {source.type}: {what}"


def _rows(graph: Graph, depth: int) -> Iterator[tuple[str, ...]]:
    for node in graph.nodes:
        if isinstance(node, ConditionalNode):
            known = node.construct or Construct("-", _KINDS[type(node)], "-")
            counts = "+".join(str(sum(1 for _ in walk(body))) for body in bodies(node))
            name = "  " * depth + known.name
            yield _line(node), name, _steps(node), known.schedule, counts, known.why
        for body in bodies(node):
            yield from _rows(body, depth + 1)


def _steps(node: ConditionalNode) -> str:
    if not isinstance(node, WhileNode):
        return "-"
    match node.construct:
        case Construct(steps=int() as steps):
            return str(steps)
        case Construct(max_steps=int() as bound):
            return f"<= {bound}"
    return "?"


def _line(node: Node) -> str:
    return ", ".join(dict.fromkeys(str(source) for source in node.sources)) or "-"
