"""Library nodes: calls captured into the graph, after a run outside where that is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from lowering.cuda.graph.emission import Before, Emission
from lowering.cuda.graph.host_driven import begin_segment
from lowering.cuda.libraries.capture import LEGAL_IN_BODIES, LEGAL_OUTSIDE, capture, lines
from lowering.cuda.libraries.foreign_calls import naming
from lowering.cuda.libraries.library_calls import captured, outside
from lowering.cuda.libraries.nccl import PreparedCollective
from lowering.cuda.libraries.pointer_arrays import pointers
from lowering.cuda.libraries.recapture import RecapturedCall
from lowering.cuda.memory.pool import PooledMemory
from lowering.errors import UnrepeatableCaptureError
from lowering.plan.calls.captured_call import CapturedCall
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import LibraryNode


def add_library(
    emission: Emission, graph: Any, node: LibraryNode, before: Before
) -> tuple[Any, ...]:
    """Capture a call, which is run once outside before its first capture."""
    emission.definition.slots.retain(emission.code.calls[node].handle, *node.call.owners.values())
    with emission.driver.capture_lock.hold(), naming(node):
        if emission.placement.warm_up is not None:
            _warm_up(emission, node, emission.placement.warm_up)
        if captured(node).aside and emission.driver.stored_conditions is None:
            return _copied(emission, graph, node, before)
        return _captured(emission, graph, node, before)


def _warm_up(emission: Emission, node: LibraryNode, memory: PooledMemory) -> None:
    """Run a call outside the graph, where the library may load code and allocate.

    It does not write to the graph's memory, which may be in use.
    """
    prepared, driver = emission.code.calls[node], emission.driver
    spare = memory.pointer + emission.code.plan.library_bytes
    others, end = outside(emission.owners.plan, node, spare)
    if isinstance(node.call, CapturedCall) and end > spare:
        driver.clear(spare, end - spare)
    prepared.handle.use_workspace(memory.pointer, prepared.workspace_bytes)
    run = _issued(emission, node, {**emission.placement.addresses, **others}, written=True)
    driver.synchronize()
    handle = prepared.handle
    with handle.meeting() if isinstance(handle, PreparedCollective) else nullcontext():
        run(handle)
        driver.synchronize_capture_stream()


def _captured(emission: Emission, graph: Any, node: LibraryNode, before: Before) -> tuple[Any, ...]:
    prepared, call, placement = emission.code.calls[node], node.call, emission.placement
    addresses, workspace = placement.addresses, placement.workspaces[node]
    moves, recaptured = node in placement.moving, placement.recaptured.get(node)
    still: Sequence[StridedArray] = call.operands
    if recaptured is not None:
        still = [array for array in still if array.buffer in addresses]
    stored = [array for array in still if not moves or array.buffer in call.fixed_buffers]
    held = [array.address(addresses.__getitem__) for array in stored]
    held += [workspace] if prepared.workspace_bytes else []
    held += _pointer_arrays(emission, node)
    slots = emission.owners.of(node)
    if recaptured is not None:
        again = _recaptured(emission, node, recaptured)
        return again.capture(graph, before.nodes, slots, held)
    prepared.handle.use_workspace(workspace, prepared.workspace_bytes)
    issue = _issued(emission, node, addresses, written=not moves)
    # without bodies, as the host drives them, a collective may be what a network needs
    apart = captured(node).aside and emission.driver.stored_conditions is not None
    if apart:  # NCCL tells captures apart by their graphs
        begin_segment(emission.driver, graph)
    with emission.driver.beside_captures() if apart else nullcontext():
        return capture(
            emission.definition,
            graph,
            before.nodes,
            lambda: issue(prepared.handle),
            node,
            slots,
            held,
            f"the {call.noun.partition(' ')[2]}",
            legal=LEGAL_OUTSIDE if apart else LEGAL_IN_BODIES,
        )


def _copied(emission: Emission, graph: Any, node: LibraryNode, before: Before) -> tuple[Any, ...]:
    """A call that is captured aside, whose kernels are copied.

    Raises:
        ValueError: it is not kernels alone, which loops and branches may hold.
    """
    addresses = emission.placement.addresses
    prepared, call = emission.code.calls[node], node.call
    issue = prepared.issue(call, addresses.__getitem__)
    try:
        kernels = emission.driver.capture_aside(lambda: issue(prepared.handle))
    except UnrepeatableCaptureError as error:
        raise ValueError(
            f"{call.name} at {lines(node)} was not captured as kernels alone, as graphs with loops "
            f"need it: {error}; the devices of a mesh on one machine must reach one another's "
            "memory, as through a network the host takes part, which no loop of a graph may ask "
            "for; and if something else loads NCCL first, NCCL_GRAPH_MIXING_SUPPORT=0 must be set "
            "before"
        ) from error
    held = [array.address(addresses.__getitem__) for array in call.operands]
    slots = emission.owners.of(node)
    return (emission.definition.add_captured(graph, before.nodes, kernels, slots, held),)


def _pointer_arrays(emission: Emission, node: LibraryNode) -> list[int]:
    """The address of the pointer arrays of a call, if it has some."""
    found = emission.placement.pointer_arrays.get(node)
    return [] if found is None else [found]


def _issued(
    emission: Emission, node: LibraryNode, known: Mapping[Buffer, int], *, written: bool
) -> Callable[[Any], None]:
    """What issues the call, whose pointer arrays are written or left to each launch."""
    driver, arrays = emission.driver, _pointer_arrays(emission, node)
    for pointer in arrays if written else ():
        if driver.copy_to_device(pointer, pointers(node.call, known.__getitem__)):
            driver.synchronize()
    return emission.code.calls[node].issue(node.call, known.__getitem__, *arrays)


def _recaptured(
    emission: Emission, node: LibraryNode, buffers: tuple[Buffer, ...]
) -> RecapturedCall:
    """A call, not captured yet, that is captured again where these buffers are."""
    placement = emission.placement
    call = RecapturedCall(
        emission.definition,
        emission.code.calls[node],
        node.call,
        buffers,
        placement.addresses,
        placement.workspaces[node],
        placement.placeholders,
    )
    emission.recaptured.append(call)
    return call
