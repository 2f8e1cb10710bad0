"""The launch graph: the nodes of a Plan, and those that a CUDA graph has besides.

    allocation ─▶ first nodes ─▶ … ─▶ last nodes ─▶ free
    load       ─▶ all that reads a small argument
    table      ─▶ loops and branches with a body that reads one of its addresses
    pointers   ─▶ library calls that read their matrices' addresses, and what has one in a body

Emission adds exactly the nodes and edges of this graph, and what people look at shows them:
`explain`, the printed Plan, DOT and pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from functools import partial

from lowering.plan.calls.library_call import StridedArray
from lowering.plan.launch_nodes import (
    AllocationNode,
    FreeNode,
    LoadNode,
    PointersNode,
    TableNode,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nodes import Graph, LibraryNode, Node, body_graphs, launched, walk
from lowering.plan.serialization import serialized
from lowering.plan.target.hardware import PARAMETER_BYTES
from tracegraph.user_source import Source

LARGEST_VALUE = 256
"""Bytes of an argument that may be passed by value."""

LARGEST_TOTAL = 3072
"""Bytes of the parameters of one load or table kernel; CUDA allows 4096."""

MOST_ENTRIES = LARGEST_TOTAL // PARAMETER_BYTES
"""Addresses that one table kernel writes."""

MOST_ARRAYS = LARGEST_TOTAL // (4 * PARAMETER_BYTES)
"""Pointer arrays that one kernel writes, each from four parameters."""


def launch_graph(
    work: Graph,
    by_value: Sequence[Buffer],
    indirect: Sequence[Buffer],
    moving: Sequence[LibraryNode],
    allocated: int,
) -> Graph:
    """The graph that does some work at each launch.

    The inputs `by_value` are loaded, the addresses of `indirect` buffers are in the pointer table,
    those of the matrices of `moving` calls in pointer arrays, and the launch allocates its scratch,
    if `allocated` is not zero, and frees it. Nodes that run one at a time have edges between them.
    """
    work = serialized(work)
    roots = [*_loads(work, by_value), *_tables(work, indirect), *_pointers(moving)]
    if not roots and not allocated:
        return work
    first: list[Node] = [AllocationNode(allocated)] if allocated else []
    shift = len(first) + len(roots)
    end = shift + len(work.nodes)
    edges = {(i + shift, j + shift) for i, j in work.edges}
    for number, (_, reads) in enumerate(roots, len(first)):
        edges |= {(number, at) for at, node in enumerate(work.nodes, shift) if reads(node)}
    nodes: list[Node] = [*first, *[node for node, _ in roots], *work.nodes]
    if allocated:
        behind = {j for _, j in work.edges}
        before = {i for i, _ in work.edges}
        edges |= {(0, i + shift) for i in range(len(work.nodes)) if i not in behind}
        edges |= {(i + shift, end) for i in range(len(work.nodes)) if i not in before}
        edges |= set() if work.nodes else {(0, end)}
        nodes.append(FreeNode(allocated))
    return Graph(tuple(nodes), frozenset(edges))


def inputs_by_value(
    work: Graph, inputs: Sequence[Buffer], outputs: Iterable[Buffer]
) -> tuple[Buffer, ...]:
    """The inputs whose values are parameters of the load kernel: small ones that some node reads.

    One that an output is written over is in device memory in any case.
    """
    written = frozenset(outputs)
    missing = {buffer for buffer in inputs if _is_small(buffer) and buffer not in written}
    read: set[Buffer] = set()
    for node in walk(work) if missing else ():
        found = missing & node.accessed_buffers
        read |= found
        missing -= found
        if not missing:
            break
    return fitting([buffer for buffer in inputs if buffer in read])


def fitting(inputs: Iterable[Buffer]) -> tuple[Buffer, ...]:
    """The small ones among inputs, in order, as far as they fit into one kernel's parameters."""
    chosen, words = [], 1  # the first parameter is the address of the memory that is written
    for buffer in inputs:
        size = ceil_div(buffer.type.nbytes, PARAMETER_BYTES)
        if _is_small(buffer) and (words + size) * PARAMETER_BYTES <= LARGEST_TOTAL:
            chosen.append(buffer)
            words += size
    return tuple(chosen)


def _is_small(buffer: Buffer) -> bool:
    return 0 < buffer.type.nbytes <= LARGEST_VALUE


def table_parts(indirect: Sequence[Buffer]) -> list[tuple[Buffer, ...]]:
    """The buffers whose addresses each table kernel writes, in order."""
    starts = range(0, len(indirect), MOST_ENTRIES)
    return [tuple(indirect[start : start + MOST_ENTRIES]) for start in starts]


def moving_calls(work: Graph, fixed: Collection[Buffer] = ()) -> tuple[LibraryNode, ...]:
    """The library calls with arrays that move, which they find through pointer arrays.

    Arguments and results move, but for those in `fixed`.
    """

    def moves(array: StridedArray) -> bool:
        return array.buffer.space in ("input", "output") and array.buffer not in fixed

    nodes = (node for node in launched(work) if isinstance(node, LibraryNode))
    return tuple([node for node in nodes if any(map(moves, node.call.batches))])


def recaptured_calls(work: Graph, fixed: Collection[Buffer] = ()) -> tuple[LibraryNode, ...]:
    """The library calls with arrays that move, which are captured again where these are.

    Arguments and results move, but for those in `fixed`.
    """
    nodes = (node for node in work.nodes if isinstance(node, LibraryNode) and node.call.recaptured)
    return tuple([node for node in nodes if moving_buffers(node, fixed)])


def moving_buffers(node: LibraryNode, fixed: Collection[Buffer] = ()) -> tuple[Buffer, ...]:
    """The arguments and results, but for those in `fixed`, that a call has where they are."""
    buffers = dict.fromkeys([array.buffer for array in node.call.movable_arrays])
    return tuple([b for b in buffers if b.space in ("input", "output") and b not in fixed])


def pointer_parts(moving: Sequence[LibraryNode]) -> list[tuple[LibraryNode, ...]]:
    """The calls whose pointer arrays each kernel writes, in order."""
    found: list[list[LibraryNode]] = []
    room = 0
    for node in moving:
        count = len(node.call.batches)
        if count > room:
            found.append([])
            room = MOST_ARRAYS
        found[-1].append(node)
        room -= count
    return list(map(tuple, found))


_Root = tuple[Node, Callable[[Node], bool]]
"""A root node, and whether a node of the graph reads what it writes."""


def _loads(work: Graph, by_value: Sequence[Buffer]) -> Iterator[_Root]:
    if by_value:
        loaded = frozenset(by_value)
        readers = (node for node in launched(work) if not body_graphs(node))
        lines = _sources(node for node in readers if _accesses(loaded, node))
        yield LoadNode(tuple(by_value), lines), partial(_accesses, loaded)


def _tables(work: Graph, indirect: Sequence[Buffer]) -> Iterator[_Root]:
    lines = _sources(node for node in work.nodes if body_graphs(node)) if indirect else ()
    for part in table_parts(indirect):
        yield TableNode(part, lines), partial(_bodies_access, frozenset(part))


def _pointers(moving: Sequence[LibraryNode]) -> Iterator[_Root]:
    for part in pointer_parts(moving):
        yield PointersNode(part, _sources(part)), partial(_has, frozenset(part))


def _has(calls: Set[Node], node: Node) -> bool:
    """Whether a node is one of these calls, or has one in its bodies."""
    return node in calls or any(_has(calls, n) for body in body_graphs(node) for n in body.nodes)


def _accesses(buffers: Set[Buffer], node: Node) -> bool:
    """Whether a node, or one in its bodies, accesses any of these buffers."""
    if not buffers.isdisjoint(node.accessed_buffers):
        return True
    return any(_accesses(buffers, inner) for body in node.bodies for inner in body.nodes)


def _bodies_access(buffers: Set[Buffer], node: Node) -> bool:
    """Whether a node in the bodies of a loop or branch does."""
    return any(_accesses(buffers, inner) for body in body_graphs(node) for inner in body.nodes)


def _sources(nodes: Iterable[Node]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys([source for node in nodes for source in node.sources]))
