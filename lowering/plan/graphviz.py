"""A Plan as a drawing, in Graphviz's DOT language."""

from __future__ import annotations

from collections.abc import Iterator

from lowering.plan.plan import (
    Graph,
    IfElseNode,
    KernelNode,
    LibraryNode,
    MemcpyNode,
    Node,
    Plan,
    SwitchNode,
    WhileNode,
    bodies,
)


def dot(plan: Plan) -> str:
    """The nodes and edges of a Plan; each body of a loop or branch is a cluster of its own.

    A dotted edge leads from a conditional node to the first nodes of its bodies.
    """
    lines = _graph(plan.graph, "n", 1)
    return "\n".join((f"digraph {_quoted(plan.name)} {{", "  node [shape=box];", *lines, "}"))


def _graph(graph: Graph, prefix: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for i, node in enumerate(graph.nodes):
        name = f"{prefix}{i}"
        yield f"{indent}{name} [label={_quoted(_label(node))}];"
        for label, body in zip(_body_labels(node), bodies(node), strict=True):
            yield from _cluster(name, label, body, depth)
    for i, j in sorted(graph.edges):
        yield f"{indent}{prefix}{i} -> {prefix}{j};"


def _cluster(owner: str, label: str, body: Graph, depth: int) -> Iterator[str]:
    indent = "  " * depth
    prefix = f"{owner}_{label}_"
    yield f"{indent}subgraph cluster_{owner}_{label} {{"
    yield f"{indent}  label={_quoted(label)};"
    yield from _graph(body, prefix, depth + 1)
    yield f"{indent}}}"
    inner = {j for _, j in body.edges}
    for i in range(len(body.nodes)):
        if i not in inner:
            yield f"{indent}{owner} -> {prefix}{i} [style=dotted];"


def _body_labels(node: Node) -> tuple[str, ...]:
    match node:
        case IfElseNode():
            return "then", "otherwise"
        case SwitchNode(branches=branches):
            return tuple(f"branch{i}" for i in range(len(branches)))
        case WhileNode():
            return ("body",)
    return ()


def _label(node: Node) -> str:
    lines = [_title(node), *dict.fromkeys(str(source) for source in node.sources)]
    return "\\n".join(lines)


def _title(node: Node) -> str:
    match node:
        case KernelNode(kernel=kernel):
            return f"kernel {kernel.name}"
        case MemcpyNode(target=target, source_buffer=source):
            return f"copy {source} to {target}"
        case LibraryNode(batch=batch, m=m, n=n, k=k):
            return f"matmul {batch} x ({m}, {k}) @ ({k}, {n})"
        case IfElseNode():
            return "if / else"
        case SwitchNode():
            return "switch"
        case WhileNode():
            return "while"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
