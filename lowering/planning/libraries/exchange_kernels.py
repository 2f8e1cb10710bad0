"""Exchange kernels: collectives that devices carry out by stores into the memory of one another.

A library takes 5 to 9 µs for few bytes, inside of a loop as well. A kernel takes about 2.
"""

from __future__ import annotations

from math import inf
from operator import is_

from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.lockstep import collective_of
from lowering.plan.nests.rounding import ceil_div, power_of_two
from lowering.plan.nodes import Graph, Node
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.hardware import VECTOR_BYTES, WARP
from lowering.plan.target.scope import Scope
from lowering.plan.target.target import Target

THREADS = 512
"""The threads of a block."""

BLOCK_BYTES = 16 << 10
"""What a block stores of arrays, if that takes less than `MOST_BLOCKS`: two vectors of each thread.
Of words, half of that."""

MOST_BLOCKS = 64
"""Blocks that fill the links."""


def with_exchange_kernels(graph: Graph, name: str, target: Target) -> Graph:
    """The graph, and its bodies, in which kernels carry out collectives of not too many bytes.

    They are called by the `name` of the Plan. Devices must reach the memory of one another.
    """
    if target.costs.exchange == inf:
        return graph
    return _with_kernels(graph, f"{name}_exchange")


def _with_kernels(graph: Graph, name: str) -> Graph:
    nodes = [_with_kernel(node, name) for node in graph.nodes]
    return graph if all(map(is_, nodes, graph.nodes)) else Graph(tuple(nodes), graph.edges)


def _with_kernel(node: Node, name: str) -> Node:
    if node.is_kernel:
        return node
    call = collective_of(node)
    if call is not None and call.may_be_kernel:
        only = Graph((node,), frozenset())
        return PersistentKernelNode(name, only, scope_of(call), node.sources, node.within)
    bodies = tuple([_with_kernels(body, name) for body in node.bodies])
    return node if all(map(is_, node.bodies, bodies)) else node.with_bodies(bodies)


def scope_of(call: CollectiveCall) -> Scope:
    """The threads that carry out collectives."""
    if not call.travels_as_words:
        one = call.is_small
        return Scope(
            1 if one else min(ceil_div(call.stored_bytes, BLOCK_BYTES), MOST_BLOCKS), THREADS
        )
    vectors = ceil_div(call.stored_bytes, VECTOR_BYTES)
    threads = min(max(power_of_two(vectors), WARP), THREADS)
    return Scope(min(ceil_div(call.stored_bytes, BLOCK_BYTES // 2), MOST_BLOCKS), threads)
