"""What a Plan consists of: its nodes by kind, its nests, its loops."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

import numpy as np

from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import Nest
from lowering.plan.nodes import Graph, KernelNode, Node, walk
from lowering.plan.plan import Plan
from tracegraph import ArrayType

Kind = TypeVar("Kind", bound=Node)


def vector(n: int = 8, dtype: Any = np.float64) -> ArrayType:
    """The type of a vector."""
    return ArrayType(dtype, (n,))


def kinds(plan: Plan) -> Counter[str]:
    """How many nodes of each class a Plan has, in bodies as well."""
    return Counter(type(node).__name__ for node in walk(plan.graph))


def nodes_of(plan: Plan, kind: type[Kind]) -> list[Kind]:
    """The nodes of a class, in bodies as well."""
    return [node for node in walk(plan.graph) if isinstance(node, kind)]


def loop_of(plan: Plan) -> WhileNode:
    """The only loop at the top of a Plan."""
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    return loop


def nests_of(graph: Graph) -> list[Nest]:
    """The nests of all kernels of a graph, not of bodies."""
    return [n for node in graph.nodes if isinstance(node, KernelNode) for n in node.kernel.nests]
