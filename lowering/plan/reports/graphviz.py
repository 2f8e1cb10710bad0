"""A Plan as a drawing, in Graphviz's DOT language."""

from __future__ import annotations

from collections.abc import Iterator

from lowering.plan.nodes import Graph, Node
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import becomes


def dot(plan: Plan) -> str:
    """The nodes and edges of a Plan; each body of a loop or branch is a cluster.

    Dotted edges lead from a conditional node to the roots of its bodies.
    """
    lines = _graph(plan, plan.launch_graph, "n", 1)
    return "\n".join((f"digraph {_quoted(plan.name)} {{", "  node [shape=box];", *lines, "}"))


def _graph(plan: Plan, graph: Graph, prefix: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for i, node in enumerate(graph.nodes):
        name = f"{prefix}{i}"
        yield f"{indent}{name} [label={_quoted(_label(plan, node))}];"
        for number, body in enumerate(node.bodies):
            yield from _cluster(plan, name, number, node.body_labels[number], body, depth)
    for i, j in sorted(graph.edges):
        yield f"{indent}{prefix}{i} -> {prefix}{j};"


def _cluster(
    plan: Plan, owner: str, number: int, label: str, body: Graph, depth: int
) -> Iterator[str]:
    indent = "  " * depth
    prefix = f"{owner}_{number}_"
    yield f"{indent}subgraph cluster_{owner}_{number} {{"
    yield f"{indent}  label={_quoted(label)};"
    yield from _graph(plan, body, prefix, depth + 1)
    yield f"{indent}}}"
    inner = {j for _, j in body.edges}
    for i in range(len(body.nodes)):
        if i not in inner:
            yield f"{indent}{owner} -> {prefix}{i} [style=dotted];"


def _label(plan: Plan, node: Node) -> str:
    said = filter(None, (node.purpose, becomes(plan, node)))
    lines = [node.title, *said, *dict.fromkeys(str(source) for source in node.sources)]
    return "\\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
