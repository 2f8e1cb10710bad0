"""Exchange kernels: collectives that devices carry out by stores into the memory of one another.

A library takes 5 to 9 µs for few bytes, inside of a loop as well. A kernel takes about 2.

Where only points at the ends of a map read what devices exchange, as in a stencil, one kernel
carries out the exchange and the map: its first blocks exchange, and compute these points; the
others do not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from math import inf, prod
from operator import is_

from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.lockstep import collective_of
from lowering.plan.nests.buffer import Buffer, overlap
from lowering.plan.nests.division import Division, divided
from lowering.plan.nests.rounding import ceil_div, power_of_two
from lowering.plan.nodes import Graph, KernelNode, Node, walk
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

THREADS_OF_MAPS = 256
"""The threads of a block of a kernel that computes a map as well."""

MOST_FIRST_BLOCKS = 64
"""Blocks of these that exchange, which wait for one another: all are resident at once."""

FEW_ROUNDS = 2
"""Points at ends that each thread of the first blocks may compute, one after the other: rounds."""

ROUND_POINTS = 1 << 19
"""Points inside that take the other blocks longer than a round takes the first ones. There may be a
round for each of as many."""


def with_exchange_kernels(
    graph: Graph, name: str, target: Target, offsets: Mapping[Buffer, int]
) -> Graph:
    """The graph, and its bodies, in which kernels carry out collectives of not too many bytes.

    They are called by the `name` of the Plan. Devices must reach the memory of one another.
    `offsets` places scratch buffers.
    """
    if target.costs.exchange == inf:
        return graph
    return _with_kernels(graph, f"{name}_exchange", offsets)


def _with_kernels(graph: Graph, name: str, offsets: Mapping[Buffer, int]) -> Graph:
    whole = _with_maps(graph, offsets)
    nodes = [_with_kernel(node, name, offsets) for node in whole.nodes]
    return graph if all(map(is_, nodes, graph.nodes)) else Graph(tuple(nodes), whole.edges)


def _with_kernel(node: Node, name: str, offsets: Mapping[Buffer, int]) -> Node:
    if node.is_kernel:
        return node
    call = collective_of(node)
    if call is not None and call.may_be_kernel:
        only = Graph((node,), frozenset())
        return PersistentKernelNode(name, only, scope_of(call), node.sources, node.within)
    bodies = tuple([_with_kernels(body, name, offsets) for body in node.bodies])
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


# Kernels that compute a map as well


def _with_maps(graph: Graph, offsets: Mapping[Buffer, int]) -> Graph:
    """The graph, in which collectives and the maps whose ends read their results are one kernel."""
    together = _exchanges_of_maps(graph, offsets)
    if not together:
        return graph
    nodes = dict(enumerate(graph.nodes))
    homes = {position: together.get(position, position) for position in nodes}
    for position, reader in together.items():
        nodes[reader] = _with_map(nodes.pop(position), nodes[reader])
    edges = {(homes[i], homes[j]) for i, j in graph.edges if homes[i] != homes[j]}
    return _in_order(nodes, edges)


def _exchanges_of_maps(graph: Graph, offsets: Mapping[Buffer, int]) -> dict[int, int]:
    """The positions of collectives, each with that of the map that is in one kernel with it."""
    after: dict[int, list[int]] = {}
    for i, j in graph.edges:
        after.setdefault(i, []).append(j)
    found: dict[int, int] = {}
    last: dict[Buffer, int] = {}  # the collective that has written a buffer
    for position, node in enumerate(graph.nodes):
        if isinstance(node, KernelNode):
            at = max([last[buffer] for buffer in node.reads if buffer in last], default=None)
            if at is not None and at not in found and not _is_between(after, at, position):
                call = collective_of(graph.nodes[at])
                if call is not None and _division(node, call, offsets) is not None:
                    found[at] = position
                    after.setdefault(position, []).append(at)  # who waits for one, waits for both
        for each in _inside(node):
            for buffer in each.writes & last.keys():
                del last[buffer]
        call = collective_of(node)
        if call is not None and call.may_be_kernel:
            last |= {array.buffer: position for array in call.targets}
    return found


def _inside(node: Node) -> Iterator[Node]:
    yield node
    for body in node.bodies:
        yield from walk(body)


def _is_between(after: Mapping[int, Sequence[int]], first: int, last: int) -> bool:
    """Whether a path from one position to another goes over a third."""
    waiting = [each for each in after.get(first, ()) if each < last]
    seen = set(waiting)
    while waiting:
        for each in after.get(waiting.pop(), ()):
            if each == last:
                return True
            if each < last and each not in seen:
                seen.add(each)
                waiting.append(each)
    return False


def _division(
    node: KernelNode, call: CollectiveCall, offsets: Mapping[Buffer, int]
) -> Division | None:
    """The maps of a kernel, divided by whether they read what devices exchange.

    None if they cannot be, or if points would write over what is exchanged at the same time.
    """
    sent = [array.buffer for array in call.sources]
    found = [array.buffer for array in call.targets]
    for buffer in node.writes:
        if any(overlap(buffer, other, offsets) for other in (*sent, *found)):
            return None
    others = [buffer for buffer in node.reads if buffer not in found]
    if any(overlap(buffer, other, offsets) for buffer in others for other in found):
        return None
    division = divided(node.kernel, frozenset(found))
    if division is None:
        return None
    scope = _first_blocks(division, call)
    rounds = ceil_div(division.points, scope.blocks * scope.threads)
    inside = sum([prod(nest.space) for nest in division.inside])
    return division if rounds <= max(FEW_ROUNDS, inside // ROUND_POINTS) else None


def _first_blocks(division: Division, call: CollectiveCall) -> Scope:
    """The blocks that carry out a collective and compute the points that need it."""
    moved = 1 if call.is_small else ceil_div(call.stored_bytes, VECTOR_BYTES * THREADS_OF_MAPS)
    blocks = max(moved, ceil_div(division.points, THREADS_OF_MAPS))
    return Scope(min(blocks, MOST_FIRST_BLOCKS), THREADS_OF_MAPS, beside=True)


def _with_map(exchange: Node, node: Node) -> Node:
    """The kernel that carries out a collective and a map."""
    call = collective_of(exchange)
    assert call is not None
    assert isinstance(node, KernelNode)
    division = divided(node.kernel, frozenset([array.buffer for array in call.targets]))
    assert division is not None
    scope = _first_blocks(division, call)
    graph = Graph((exchange, node), frozenset([(0, 1)]))
    sources = tuple(dict.fromkeys([*exchange.sources, *node.sources]))
    return PersistentKernelNode(node.kernel.name, graph, scope, sources, node.within)


def _in_order(nodes: Mapping[int, Node], edges: Set[tuple[int, int]]) -> Graph:
    """The graph of nodes by position, in an order that their edges allow, which is kept if it can
    be.
    """
    after: dict[int, list[int]] = {}
    waiting = dict.fromkeys(nodes, 0)
    for i, j in edges:
        after.setdefault(i, []).append(j)
        waiting[j] += 1
    ready = [position for position, count in waiting.items() if not count]
    heapify(ready)
    places: dict[int, int] = {}
    while ready:
        position = heappop(ready)
        places[position] = len(places)
        for each in after.get(position, ()):
            waiting[each] -= 1
            if not waiting[each]:
                heappush(ready, each)
    ordered = tuple([nodes[position] for position in places])
    return Graph(ordered, frozenset([(places[i], places[j]) for i, j in edges]))
