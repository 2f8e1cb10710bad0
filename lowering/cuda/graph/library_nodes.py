"""Library nodes: calls captured into the graph, after a run outside where that is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from lowering.cuda.graph.definition import Definition
from lowering.cuda.interface import Driver
from lowering.cuda.libraries.capture import LEGAL_IN_BODIES, LEGAL_OUTSIDE, capture, lines
from lowering.cuda.libraries.foreign_calls import naming
from lowering.cuda.libraries.library_calls import PreparedCalls, captured, outside
from lowering.cuda.libraries.nccl import PreparedCollective
from lowering.cuda.libraries.pointer_arrays import pointers
from lowering.cuda.libraries.recapture import RecapturedCall
from lowering.cuda.memory.pool import PooledMemory
from lowering.errors import UnrepeatableCaptureError
from lowering.plan.calls.captured_call import CapturedCall
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import LibraryNode, Node
from lowering.plan.owners import NodeSlots
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class LibraryContext:
    """The graph that calls of libraries are captured into, and where their arrays are.

    Fields that `Placement` has too are its. The workspaces of all calls have `library_bytes`
    together, and `found` are the calls so far that are captured again.
    """

    definition: Definition
    driver: Driver
    calls: PreparedCalls
    addresses: Mapping[Buffer, int]
    workspaces: Mapping[Node, int]
    pointer_arrays: Mapping[LibraryNode, int]
    moving: Sequence[LibraryNode]
    recaptured: Mapping[LibraryNode, tuple[Buffer, ...]]
    placeholders: int
    warm_up: PooledMemory | None
    library_bytes: int
    per_launch: bool
    found: list[RecapturedCall]


def capture_library(
    context: LibraryContext,
    graph: Any,
    node: LibraryNode,
    before: Sequence[Any],
    slots: NodeSlots,
) -> tuple[Any, ...]:
    """Capture a call, which is run once outside before its first capture; its last nodes.

    Raises:
        ValueError: it becomes nodes that the graph may not hold.
        UnrepeatableCaptureError: it would be other kernels elsewhere.
    """
    context.definition.slots.retain(context.calls[node].handle, *node.call.owners.values())
    with context.driver.capture_lock.hold(), naming(node):
        if context.warm_up is not None:
            _warm_up(context, node, context.warm_up)
        if captured(node).aside and context.driver.stored_conditions is None:
            return _copied(context, graph, node, before, slots)
        return _captured(context, graph, node, before, slots)


def _warm_up(context: LibraryContext, node: LibraryNode, memory: PooledMemory) -> None:
    """Run a call outside the graph, where the library may load code and allocate.

    It does not write to the graph's memory, which may be in use.
    """
    prepared, driver = context.calls[node], context.driver
    spare = memory.pointer + context.library_bytes
    others, end = outside(context.per_launch, node, spare)
    if isinstance(node.call, CapturedCall) and end > spare:
        driver.clear(spare, end - spare)
    prepared.handle.use_workspace(memory.pointer, prepared.workspace_bytes)
    run = _issued(context, node, {**context.addresses, **others}, written=True)
    driver.synchronize()
    handle = prepared.handle
    with handle.meeting() if isinstance(handle, PreparedCollective) else nullcontext():
        run(handle)
        driver.synchronize_capture_stream()


def _captured(
    context: LibraryContext, graph: Any, node: LibraryNode, before: Sequence[Any], slots: NodeSlots
) -> tuple[Any, ...]:
    prepared, call = context.calls[node], node.call
    addresses, workspace = context.addresses, context.workspaces[node]
    moves, recaptured = node in context.moving, context.recaptured.get(node)
    still: Sequence[StridedArray] = call.operands
    if recaptured is not None:
        still = [array for array in still if array.buffer in addresses]
    stored = [array for array in still if not moves or array.buffer in call.fixed_buffers]
    held = [array.address(addresses.__getitem__) for array in stored]
    held += [workspace] if prepared.workspace_bytes else []
    held += _pointer_arrays(context, node)
    if recaptured is not None:
        again = _recaptured(context, node, recaptured)
        return again.capture(graph, before, slots, held)
    prepared.handle.use_workspace(workspace, prepared.workspace_bytes)
    issue = _issued(context, node, addresses, written=not moves)
    # without bodies, as the host drives them, a collective may be what a network needs
    apart = captured(node).aside and context.driver.stored_conditions is not None
    if apart:  # NCCL tells captures apart by their graphs
        from lowering.cuda.graph.host_driven import begin_segment  # few need it

        begin_segment(context.driver, graph)
    with context.driver.beside_captures() if apart else nullcontext():
        return capture(
            context.definition,
            graph,
            before,
            lambda: issue(prepared.handle),
            node,
            slots,
            held,
            f"the {call.noun.partition(' ')[2]}",
            legal=LEGAL_OUTSIDE if apart else LEGAL_IN_BODIES,
        )


def _copied(
    context: LibraryContext, graph: Any, node: LibraryNode, before: Sequence[Any], slots: NodeSlots
) -> tuple[Any, ...]:
    """A call that is captured aside, whose kernels are copied.

    Raises:
        ValueError: it is not kernels alone, which loops and branches may hold.
    """
    addresses = context.addresses
    prepared, call = context.calls[node], node.call
    issue = prepared.issue(call, addresses.__getitem__)
    try:
        kernels = context.driver.capture_aside(lambda: issue(prepared.handle))
    except UnrepeatableCaptureError as error:
        raise ValueError(
            f"{call.name} at {lines(node)} was not captured as kernels alone, as graphs with loops "
            f"need it: {error}; the devices of a mesh on one machine must reach one another's "
            "memory, as through a network the host takes part, which no loop of a graph may ask "
            "for; and if something else loads NCCL first, NCCL_GRAPH_MIXING_SUPPORT=0 must be set "
            "before"
        ) from error
    held = [array.address(addresses.__getitem__) for array in call.operands]
    return (context.definition.add_captured(graph, before, kernels, slots, held),)


def _pointer_arrays(context: LibraryContext, node: LibraryNode) -> list[int]:
    """The address of the pointer arrays of a call, if it has some."""
    found = context.pointer_arrays.get(node)
    return [] if found is None else [found]


def _issued(
    context: LibraryContext, node: LibraryNode, known: Mapping[Buffer, int], *, written: bool
) -> Callable[[Any], None]:
    """What issues the call, whose pointer arrays are written or left to each launch."""
    driver, arrays = context.driver, _pointer_arrays(context, node)
    for pointer in arrays if written else ():
        if driver.copy_to_device(pointer, pointers(node.call, known.__getitem__)):
            driver.synchronize()
    return context.calls[node].issue(node.call, known.__getitem__, *arrays)


def _recaptured(
    context: LibraryContext, node: LibraryNode, buffers: tuple[Buffer, ...]
) -> RecapturedCall:
    """A call, not captured yet, that is captured again where these buffers are."""
    call = RecapturedCall(
        context.definition,
        context.calls[node],
        node.call,
        buffers,
        context.addresses,
        context.workspaces[node],
        context.placeholders,
    )
    context.found.append(call)
    return call
