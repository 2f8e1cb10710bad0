"""Which code the first call of a plan runs: quick code, unless it would run for long."""

from __future__ import annotations

from lowering.native.compilation.compiler import Level
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.plan.plan import Plan

LONGEST = 50.0
"""Estimated milliseconds of quick code; to make full code takes about as long."""

STEPS = 1000
"""The steps that a loop is taken to make if they depend on data."""

POINT = 4e-6
"""Milliseconds of quick code for each point of a nest, step of a fold included."""


def estimated_time(plan: Plan) -> float:
    """Milliseconds that the quick code of a plan may take.

    Matrix products and other calls of libraries do not count, for they take as long from full code.
    """
    return _time_of(plan.graph)


def first_level(plan: Plan) -> Level:
    """The level of the code that the first call runs.

    >>> import numpy as np, tracegraph
    >>> def plan(n):
    ...     return tracegraph.jit(lambda x: x + 1, device="host").lower(np.zeros(n)).plan
    >>> first_level(plan(10)), first_level(plan(10**8))
    ('quick', 'full')
    """
    return "quick" if estimated_time(plan) <= LONGEST else "full"


def rule_text(plan: Plan) -> str:
    """The level of the code of the first calls of a plan, and why, for reports."""
    estimated = estimated_time(plan)
    if first_level(plan) == "quick":
        return (
            f"quick for the first calls (about {estimated:.2g} ms of loops), "
            "full once a thread has made it, which the second call starts"
        )
    return f"full at once: quick code would run for about {estimated:.2g} ms"


def _time_of(graph: Graph) -> float:
    return sum(map(_node_time, graph.nodes))


def _node_time(node: Node) -> float:
    own = POINT * node.weight.points if isinstance(node, KernelNode) else 0.0
    bodies = [_time_of(body) for body in node.bodies]
    if not isinstance(node, WhileNode):
        return own + max(bodies, default=0.0)
    construct = node.construct
    steps = None if construct is None else construct.steps
    if steps is None:
        most = None if construct is None else construct.max_steps
        steps = STEPS if most is None else min(STEPS, most)
    return steps * sum(bodies)
