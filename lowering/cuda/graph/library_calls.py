"""Stream capture of library calls: how each class of call becomes nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lowering.cuda.graph.capture import lines
from lowering.cuda.graph.cublas import WORKSPACE_BYTES, Cublas, product
from lowering.cuda.graph.foreign_calls import ForeignStream, foreign
from lowering.cuda.interface import Library
from lowering.plan.buffer import Buffer
from lowering.plan.captured_call import CapturedCall
from lowering.plan.hardware import ALIGNMENT
from lowering.plan.library_call import LibraryCall
from lowering.plan.matrix_product import MatrixProduct
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.plan import Plan
from lowering.plan.rounding import round_up

Addresses = Callable[[Buffer], int]


@dataclass(frozen=True, slots=True)
class Captured:
    """How a class of calls is captured.

    Args:
        library: makes the library's handle for a stream; there is one for each device.
        issue: `issue(call, addresses)`, a function of the handle that enqueues the call on the
            stream.
        workspace_bytes: the scratch memory that the library is given, which calls of a graph share.
    """

    library: Callable[[int], Library]
    issue: Callable[[Any, Addresses], Callable[[Any], None]]
    workspace_bytes: int


CAPTURED: dict[type[LibraryCall], Captured] = {
    MatrixProduct: Captured(Cublas, product, WORKSPACE_BYTES),
    CapturedCall: Captured(ForeignStream, foreign, 0),
}


def captured(node: LibraryNode) -> Captured:
    """How the call of a node is captured.

    Raises:
        ValueError: its class is not in the table.
    """
    found = CAPTURED.get(type(node.call))
    if found is None:
        raise ValueError(
            f"{node.call.noun} at {lines(node)} cannot be captured: add "
            f"{type(node.call).__name__} to lowering.cuda.graph.library_calls.CAPTURED"
        )
    return found


def library_nodes(plan: Plan) -> list[LibraryNode]:
    """The nodes of a Plan that are captured, those of bodies included."""
    return [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]


def workspace_bytes(plan: Plan) -> int:
    """The workspace that the library calls of a Plan share."""
    most = max((captured(node).workspace_bytes for node in library_nodes(plan)), default=0)
    return round_up(most, ALIGNMENT)


def warm_up_addresses(
    plan: Plan, node: LibraryNode, spare: int = 0
) -> tuple[dict[Buffer, int], int]:
    """Addresses for the buffers of a call that it must not access at their own, and all bytes.

    They are for a run outside the graph. A user's function has all arrays in memory of their own,
    which is zero then; results of others may lie at one place.
    """
    moved = outside(plan, node)
    if not isinstance(node.call, CapturedCall):
        return dict.fromkeys(moved, spare), max([b.type.nbytes for b in moved], default=0)
    found, size = dict[Buffer, int](), 0
    for buffer in moved:
        found[buffer], size = spare + size, size + round_up(buffer.type.nbytes, ALIGNMENT)
    return found, size


def outside(plan: Plan, node: LibraryNode) -> list[Buffer]:
    """The buffers of a call that it must not access at their addresses outside the graph.

    Another thread may launch meanwhile; and scratch that launches allocate exists only in them. A
    user's function might not cope with what is in scratch before a launch.
    """
    if isinstance(node.call, CapturedCall):
        return list(dict.fromkeys([*node.reads, *node.writes]))
    reads = [b for b in node.reads if b.space == "scratch"] if plan.per_launch else []
    return [*node.writes, *reads]
