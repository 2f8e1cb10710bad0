"""Stream capture of library calls: how each class of call becomes nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lowering.cuda.interface import Driver, Library, PreparedLibrary
from lowering.cuda.libraries.capture import lines
from lowering.cuda.libraries.cublas import (
    WORKSPACE_BYTES,
    Cublas,
    eliminated_batch,
    product,
    solved_batch,
    triangular_solve,
)
from lowering.cuda.libraries.cufft import Cufft, transform
from lowering.cuda.libraries.cusolver import Cusolver, factored_batch, factorization
from lowering.cuda.libraries.foreign_calls import ForeignStream, foreign
from lowering.cuda.libraries.nccl import NcclLibrary, collective
from lowering.cuda.open_devices import OpenDevice
from lowering.plan.calls.captured_call import CapturedCall
from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.calls.fourier import FourierTransform
from lowering.plan.calls.lapack import (
    BatchedCholesky,
    BatchedLU,
    BatchedSolve,
    LapackRoutine,
    TriangularSolve,
)
from lowering.plan.calls.library_call import LibraryCall
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import LibraryNode, launched
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from lowering.plan.plan import Plan

Addresses = Callable[[Buffer], int]


@dataclass(frozen=True, slots=True)
class CaptureRule:
    """How a class of calls is captured.

    Args:
        library: makes the library's handle for a stream; there is one for each device.
        issue: `issue(call, addresses)`, a function of the handle that enqueues the call on the
            stream. If the library is to read addresses from pointer arrays, it gets that of the
            first one as well.
        workspace_bytes: the scratch memory that the library is given for a call. None if that
            depends on the call: the library is a `PlanningLibrary`, and the graph owns the handle
            of the call.
        direct: whether calls with pointer arrays do without them where all addresses are fixed.
        aside: whether it is captured into a graph of its own, whose kernels are copied: the library
            ties what it keeps to the graph of a capture, and launches of a graph with loops would
            take longer for it.
    """

    library: Callable[[int], Library]
    issue: Callable[..., Callable[[Any], None]]
    workspace_bytes: int | None
    direct: bool = False
    aside: bool = False


CAPTURED: dict[type[LibraryCall], CaptureRule] = {
    MatrixProduct: CaptureRule(Cublas, product, WORKSPACE_BYTES, direct=True),
    CapturedCall: CaptureRule(ForeignStream, foreign, 0),
    FourierTransform: CaptureRule(Cufft, transform, None),
    LapackRoutine: CaptureRule(Cusolver, factorization, None),
    TriangularSolve: CaptureRule(Cublas, triangular_solve, WORKSPACE_BYTES),
    BatchedCholesky: CaptureRule(Cusolver, factored_batch, 0),
    BatchedLU: CaptureRule(Cublas, eliminated_batch, WORKSPACE_BYTES),
    BatchedSolve: CaptureRule(Cublas, solved_batch, WORKSPACE_BYTES),
    CollectiveCall: CaptureRule(NcclLibrary, collective, None, aside=True),
}


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCall:
    """A call that can be captured: the handle that is to do it, and the workspace that needs."""

    handle: Library
    issue: Callable[..., Callable[[Any], None]]
    workspace_bytes: int


PreparedCalls = Mapping[LibraryNode, PreparedCall]


def prepare(plan: Plan, device: OpenDevice) -> PreparedCalls:
    """The calls of a Plan, those of bodies included, planned by their libraries. What kernels carry
    out themselves needs none.

    Raises:
        OutOfMemoryError: the device has not enough memory for the tables of a library.
        ValueError: the class of a call is not in the table.
    """
    nodes = [node for node in launched(plan.graph) if isinstance(node, LibraryNode)]
    return prepared_calls(nodes, device)


def prepared_calls(nodes: Sequence[LibraryNode], device: OpenDevice) -> PreparedCalls:
    """The calls of nodes, planned by their libraries; raises as `prepare`."""
    if any(captured(node).workspace_bytes is None for node in nodes):
        device.timeline.settle_loops()  # a library that plans allocates, and may wait in the driver
    return {
        node: device.heap.relieved(partial(_prepared, node, device.driver), what=node.name)
        for node in nodes
    }


def _prepared(node: LibraryNode, driver: Driver) -> PreparedCall:
    how = captured(node)
    library: Any = driver.library(how.library)
    if how.workspace_bytes is not None:
        return PreparedCall(library, how.issue, how.workspace_bytes)
    handle: PreparedLibrary = library.prepare(node.call)
    return PreparedCall(handle, how.issue, handle.workspace_bytes)


def captured(node: LibraryNode) -> CaptureRule:
    """How the call of a node is captured.

    Raises:
        ValueError: its class is not in the table.
    """
    found = CAPTURED.get(type(node.call))
    if found is None:
        raise ValueError(
            f"{node.call.noun} at {lines(node)} cannot be captured: add "
            f"{type(node.call).__name__} to lowering.cuda.libraries.library_calls.CAPTURED"
        )
    return found


def workspace_bytes(calls: PreparedCalls) -> int:
    """The workspaces of a Plan's library calls: as many as they use, each for the greatest need."""
    return _each(calls) * max((node.workspace + 1 for node in calls), default=0)


def workspace_offsets(calls: PreparedCalls) -> dict[LibraryNode, int]:
    """Where each call has its workspace, in the memory of all."""
    each = _each(calls)
    return {node: each * node.workspace for node in calls}


def _each(calls: PreparedCalls) -> int:
    return round_up(max((call.workspace_bytes for call in calls.values()), default=0), ALIGNMENT)


def outside(per_launch: bool, node: LibraryNode, start: int = 0) -> tuple[dict[Buffer, int], int]:
    """Addresses from `start` for the buffers of a call that it must not access at their own ones
    outside the graph, and the end of that memory.

    Another thread may launch meanwhile; and scratch that launches allocate, arguments and results
    exist only in them. A user's function might not cope with what is in scratch before a launch.
    """
    absent = {"input", "output", *(["scratch"] if per_launch else [])}
    reads = [buffer for buffer in node.reads if buffer.space in absent]
    if isinstance(node.call, CapturedCall):
        reads = list(node.reads)
    addresses = {}
    for buffer in dict.fromkeys([*node.writes, *reads]):
        addresses[buffer], start = start, start + round_up(buffer.type.nbytes, ALIGNMENT)
    return addresses, start
