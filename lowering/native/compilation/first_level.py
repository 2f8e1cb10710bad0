"""Which code the first calls of a plan run: quick code, unless that would run for long."""

from __future__ import annotations

from lowering.native.chunks import time_of
from lowering.native.compilation.compiler import Level
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.plan.plan import Plan

LONGEST = 50.0
"""Estimated milliseconds of quick code; to make full code takes about as long."""

STEPS = 200
"""The steps that a loop is taken to make if they depend on data."""

SLOWER = 4.5
"""Quick code beside full code on one thread: 1.2 to 120 times, mostly about 5."""


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
    time = _duration(estimated_time(plan))
    if first_level(plan) == "full":
        return f"full from the first call on, as quick code would run for {time}"
    return f"quick in the first call, for {time}; the second call starts making full code"


def _duration(milliseconds: float) -> str:
    """An estimated time as text.

    >>> _duration(4e-6), _duration(0.123), _duration(123456.0)
    ('less than 0.01 ms', 'about 0.12 ms', 'about 120 s')
    """
    if milliseconds < 0.01:
        return "less than 0.01 ms"
    unit, time = ("ms", milliseconds) if milliseconds < 1000 else ("s", milliseconds / 1000)
    return f"about {float(f'{time:.2g}'):,g} {unit}"


def _time_of(graph: Graph) -> float:
    return sum(map(_node_time, graph.nodes))


def _node_time(node: Node) -> float:
    own = _kernel_time(node) if isinstance(node, KernelNode) else 0.0
    bodies = [_time_of(body) for body in node.bodies]
    if not isinstance(node, WhileNode):
        return own + max(bodies, default=0.0)
    construct = node.construct
    steps = None if construct is None else construct.steps
    if steps is None:
        most = None if construct is None else construct.max_steps
        steps = STEPS if most is None else min(STEPS, most)
    return steps * sum(bodies)


def _kernel_time(node: KernelNode) -> float:
    return 1e-6 * SLOWER * sum(map(time_of, node.kernel.nests))
