"""Plans whose nodes run one after the other, in an order that the edges allow.

A device may run independent nodes in any order, and mostly picks one. With an edge from each node
to the next, every order is tried that matters: a missing edge shows in the results.
"""

from __future__ import annotations

from random import Random

from lowering.plan.nodes import Graph, Node, body_graphs
from lowering.plan.plan import Plan
from tracegraph.ir.record import replace


def in_one_order(plan: Plan, random: Random) -> Plan:
    """The Plan with its nodes, and those of bodies, in a random topological order."""
    return replace(plan, graph=_ordered(plan.graph, random))


def _ordered(graph: Graph, random: Random) -> Graph:
    before: list[set[int]] = [set() for _ in graph.nodes]
    for i, j in graph.edges:
        before[j].add(i)
    order: list[int] = []
    waiting = list(range(len(graph.nodes)))
    while waiting:
        chosen = random.choice([n for n in waiting if before[n].issubset(order)])
        waiting.remove(chosen)
        order.append(chosen)
    nodes = tuple([_with_ordered_bodies(graph.nodes[n], random) for n in order])
    return Graph(nodes, frozenset((n, n + 1) for n in range(len(nodes) - 1)))


def _with_ordered_bodies(node: Node, random: Random) -> Node:
    """Stages of kernels stay as they are."""
    bodies = body_graphs(node)
    return node.with_bodies([_ordered(body, random) for body in bodies]) if bodies else node
