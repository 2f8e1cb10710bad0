"""Printing Plans.

    plan name {
      for each device of a mesh: specs              if it is such a plan
      buffer: type [@ offset] [= input]             one line per buffer; outputs over inputs
      effect[number]: what it is  # file:line       monitors, failures, prints, …
      number: node [after numbers]  # file:line     kernels with their nests, bodies indented
    }

Kernels are printed by `lowering.plan.nests.kernel_text`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lowering.plan.nodes import Graph, Node, launched, walk
from lowering.plan.plan import Plan
from tracegraph.user_source import lines_of

_INDENT = "  "


def plan_text(plan: Plan) -> str:
    """A Plan in full: buffers with their offsets, nodes, edges, kernels, bodies."""
    lines = [f"plan {plan.name} {{", *_sharding_lines(plan)]
    lines += [f"{_INDENT}{buffer}: {buffer.type}" for buffer in plan.inputs]
    for number, buffer in enumerate(plan.outputs):
        memory = f" = {buffer}" if number in plan.aliases else ""
        lines.append(f"{_INDENT}output[{number}]: {buffer.type}{memory}")
    lines += [f"{_INDENT}{buffer}: {buffer.type}" for buffer, _ in plan.constants]
    placed = sorted(plan.offsets.items(), key=lambda item: (item[1], item[0].number))
    lines += [f"{_INDENT}{buffer}: {buffer.type} @ {offset}" for buffer, offset in placed]
    held = " in each launch" if plan.per_launch else ""
    lines.append(f"{_INDENT}arena: {plan.arena_bytes} bytes{held}, conditions: {plan.conditions}")
    if plan.indirect:
        lines.append(f"{_INDENT}pointer table in bodies: {', '.join(map(str, plan.indirect))}")
    lines += [_INDENT + line for line in _effect_lines(plan)]
    lines += [_INDENT + line for line in _graph_lines(plan.launch_graph)]
    return "\n".join([*lines, "}"])


def _sharding_lines(plan: Plan) -> Iterator[str]:
    """The mesh of whose devices it is the Plan, and how arguments and results are divided."""
    if plan.sharding is not None:
        sharding = plan.sharding
        given, found = (
            ", ".join(map(str, specs)) or "none"
            for specs in (sharding.in_specs, sharding.out_specs)
        )
        yield f"{_INDENT}for each device of {sharding.mesh}: {given} -> {found}"
        for name in sharding.indices:
            yield f"{_INDENT}a further input is the number of the device along {name!r}"


def plan_line(plan: Plan) -> str:
    """A Plan in a line: how many nodes of each kind it launches, and its scratch."""
    counts = Counter(node.kind for node in launched(plan.launch_graph))
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    nodes = f"{counts.total()} node{'s' if counts.total() != 1 else ''}"
    return f"{plan.name}: {nodes}{f' ({kinds})' if kinds else ''}, {plan.arena_bytes} B scratch"


def node_text(node: Node) -> str:
    """A node in full, as in the text of its Plan."""
    return "\n".join(_node_lines(node))


def node_line(node: Node) -> str:
    """A node in a line: what it does, its lines, and how many nodes are inside."""
    lines = lines_of(node.sources)
    inside = sum(1 for body in node.bodies for _ in walk(body))
    return (
        node.title
        + (f", {inside} node{'s' if inside != 1 else ''} inside" if node.bodies else "")
        + (f", {lines}" if lines else "")
    )


def _effect_lines(plan: Plan) -> Iterator[str]:
    """The monitors, failures, prints and callbacks, by number."""
    for name, effects in (
        ("monitor", [(m.label, m.source) for m in plan.monitors]),
        ("failure", [(f.error, f.source) for f in plan.failures]),
        ("print", [(repr(p.template), p.source) for p in plan.prints]),
        ("callback", [(c.name, c.source) for c in plan.callbacks]),
    ):
        for number, (text, source) in enumerate(effects):
            yield f"{name}[{number}]: {text}" + (f"  # {source}" if source else "")


def _graph_lines(graph: Graph) -> Iterator[str]:
    for number, node in enumerate(graph.nodes):
        before = sorted(i for i, j in graph.edges if j == number)
        after = f" after {', '.join(map(str, before))}" if before else ""
        head, *rest = _node_lines(node, after)
        yield f"{number}: {head}"
        yield from (_INDENT + line for line in rest)


def _node_lines(node: Node, after: str = "") -> Iterator[str]:
    sources = lines_of(node.sources)
    head, *rest = node.text.split("\n")
    yield head + after + (f"  # {sources}" if sources else "")
    yield from rest
    yield from _body_lines(node)


def _body_lines(node: Node) -> Iterator[str]:
    for label, body in zip(node.body_labels, node.bodies, strict=True):
        yield label
        yield from (_INDENT + line for line in _graph_lines(body))
