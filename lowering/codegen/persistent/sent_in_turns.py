"""Double buffering of what blocks send to other devices, so that the next step may overwrite it.

A block that has all words of a small exchange goes on, while others may still send theirs. If each
step computes what it sends anew, two buffers take turns, and the steps need no barrier between
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from lowering.codegen.persistent.peer_rooms import call_of
from lowering.codegen.persistent.persistent_layout import PersistentLayout
from lowering.codegen.persistent.surroundings import Surroundings
from lowering.codegen.persistent.swapped_carries import fills_all
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.analysis import nest_reads
from lowering.plan.nests.buffer import Buffer, overlap
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import KernelNode, LibraryNode, Node
from lowering.plan.target.hardware import ALIGNMENT


def sent_in_turns(
    loop: WhileNode, layout: PersistentLayout, surroundings: Surroundings
) -> dict[Buffer, int]:
    """What a loop computes anew in each step, for small exchanges alone, and where in the workspace
    there is room for two of each.
    """
    body = loop.body.nodes
    rooms = {
        source.buffer: at
        for node in body
        if isinstance(node, LibraryNode)
        for source, at in zip(call_of(node).sources, layout.peers.rooms[node].sources, strict=False)
    }
    inside = set(body)
    return {
        buffer: at
        for buffer, at in rooms.items()
        if surroundings.only_in(buffer, inside) and _is_new(buffer, body, layout)
    }


def _is_new(buffer: Buffer, body: Sequence[Node], layout: PersistentLayout) -> bool:
    """Whether a body writes all of a buffer before it reads it."""
    node = next(each for each in body if buffer in each.accessed_buffers)
    nests = layout.nests[node] if isinstance(node, KernelNode) else ()
    read = any(buffer in nest_reads(nest) for nest in nests)
    return not read and any(fills_all(nest, buffer) for nest in nests)


def declare_turns(writer: SourceWriter, turns: Mapping[Buffer, int]) -> None:
    """Let the pointers have the room in the workspace."""
    for buffer, at in turns.items():
        kind, name = c_type(buffer.type.dtype), writer.pointers[buffer]
        other = at + round_up(buffer.type.nbytes, ALIGNMENT)
        writer.line(f"{name} = reinterpret_cast<{kind}*>(workspace + {at});")
        writer.line(f"{kind}* other_{name} = reinterpret_cast<{kind}*>(workspace + {other});")


def take_turns(writer: SourceWriter, turns: Mapping[Buffer, int]) -> None:
    """Exchange the pointers at the end of a step."""
    for buffer in turns:
        name = writer.pointers[buffer]
        writer.line(f"tg_exchange({name}, other_{name});")


def needs_no_barrier(
    last: Set[Node], first: Set[Node], turns: Mapping[Buffer, int], offsets: Mapping[Buffer, int]
) -> bool:
    """Whether blocks may begin a step while others are still at the `last` nodes of the one before.

    These are small exchanges, whose results each block has; the `first` nodes are those up to the
    first barrier.
    """
    used = [b for node in last for b in node.accessed_buffers if b not in turns]
    written = [b for node in first for b in node.writes if b not in turns]
    return not any(overlap(one, other, offsets) for one in used for other in written)
