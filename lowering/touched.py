"""What the nodes of a graph touch: the buffers that they read or write."""

from __future__ import annotations

from collections.abc import Iterable

from lowering.buffer import Buffer
from lowering.facts import nest_reads, nest_writes
from lowering.plan import KernelNode, LibraryNode, MemcpyNode, Node


def own_buffers(node: Node) -> Iterable[Buffer]:
    """The buffers that a node touches, those of its bodies left out."""
    match node:
        case KernelNode(kernel=kernel):
            return frozenset().union(*[nest_reads(n) | nest_writes(n) for n in kernel.nests])
        case MemcpyNode(target=target, source_buffer=source):
            return (target, source)
        case LibraryNode(left=left, right=right, target=result):
            return (left.buffer, right.buffer, result.buffer)
    return ()
