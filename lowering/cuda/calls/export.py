"""Export: a Plan as a graph for others to launch, which owns all that it points to.

The addresses of arguments and results, which calls write elsewhere, are fixed here: that memory
belongs to the slots like constants and scratch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lowering.codegen.kernel_parameters import Channel, StopFlagAddress
from lowering.cuda.calls.arguments import Bound, Input, bind
from lowering.cuda.calls.child_graphs import child_obstacle
from lowering.cuda.calls.donated_arguments import writable
from lowering.cuda.calls.exported_executable import GivenGraph
from lowering.cuda.calls.exported_launch import ExportedOperands
from lowering.cuda.compilation.compiled_plan import CompiledPlan
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.emit import emit
from lowering.cuda.graph.placement import place
from lowering.cuda.interface import Allocation
from lowering.cuda.libraries.pointer_arrays import alignments
from lowering.cuda.memory.pool import CudaBuffer, interned
from lowering.cuda.streams.exclusive_use import ExclusiveUse
from lowering.cuda.streams.stream_state import StreamState
from lowering.plan.launch_graph import recaptured_calls
from lowering.plan.nests.buffer import Buffer
from lowering.plan.owners import SlotTable
from tracegraph.errors import ExportError
from tracegraph.generated.dataclass import dataclass
from tracegraph.staging.exported import ExportedGraph

_FLAG_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class OwnedMemory:
    """Memory of an argument or a result, and what keeps it."""

    pointer: int
    nbytes: int
    owner: Any


def export(compiled: CompiledPlan, stream: StreamState, arguments: Sequence[Any]) -> ExportedGraph:
    """The graph of a Plan, with these arguments; it may be launched at once, on any stream.

    Memory comes from `stream`, the default stream, which is waited for.

    Raises:
        ExportError: launches report something, or are driven by the host.
        OutOfMemoryError, TypeError, ValueError, StoppedError: as calls do.
    """
    obstacle = reports(compiled)
    if obstacle is not None:
        raise ExportError(compiled.plan.name, obstacle)
    operands, read, results = _operands(compiled, stream, arguments)
    flag = lowered_flag(compiled, stream)
    definition = owning_graph(compiled, stream, operands, flag)
    stream.timeline.settle()  # what arguments, constants and memory of earlier calls wait for
    for argument in arguments:
        if isinstance(argument, CudaBuffer):
            argument.check()
    name, names, bodies = compiled.plan.name, definition.names, definition.bodies
    report, graph = definition.slots.report(name), definition.give_away()
    launched = ExportedOperands(
        read,
        results,
        compiled.loops,
        flag,
        ExclusiveUse(),
        [compiled.device.looping] if compiled.while_nodes else [],
    )
    alone = child_obstacle(compiled)
    single, device = definition.single, compiled.device
    given = GivenGraph(graph, device, name, names, bodies, single, launched, alone)
    return ExportedGraph(graph, results, report, given)


def owning_graph(
    compiled: CompiledPlan,
    stream: StreamState,
    operands: Mapping[Buffer, OwnedMemory],
    flag: Allocation | None,
) -> Definition:
    """The complete graph of a Plan with these inputs and outputs, all of which it owns.

    `flag` is the word that ends its loops, as `lowered_flag` makes it. The graph's memory comes
    from `stream`, the default stream, on which it is still being written.

    Raises:
        OutOfMemoryError: the device has not enough memory.
    """
    code = compiled.code
    plan = code.plan
    slots = SlotTable()
    slots.retain(*operands.values())
    for buffer, operand in operands.items():
        if operand.nbytes:
            what = "argument" if buffer.space == "input" else "result"
            slots.name(f"{what} {buffer.number} {buffer.type}", operand.pointer, operand.nbytes)
    fixed = {buffer: operand.pointer for buffer, operand in operands.items()}
    words: dict[Channel, int] = {}
    if flag is not None:
        slots.retain(flag)
        slots.name("stop flag", flag.pointer, _FLAG_BYTES)
        words = dict.fromkeys(_channels(compiled), flag.pointer)
    definition = Definition(stream.driver, slots, plan.name)
    with definition.building() as graph:
        placement = place(
            code, {}, compiled.constants, stream, definition, graph, share=False, fixed=fixed
        )
        emit(code, {}, placement, words, definition, graph)
    return definition


def reports(compiled: CompiledPlan) -> str | None:
    """Why launches of a Plan need the host; None if they do not."""
    if not compiled.features.conditional_nodes:
        return "the host drives its loops, since no-conditional-nodes is set; call it instead"
    if not all(isinstance(channel, StopFlagAddress) for channel in _channels(compiled)):
        return (
            "it prints, checks, calls back or shows progress, which needs a call; use a function "
            "that does not"
        )
    return None


def _channels(compiled: CompiledPlan) -> set[Channel]:
    parameters = (p for code in compiled.code.unit.launches for p in code.parameters)
    return {parameter for parameter in parameters if isinstance(parameter, Channel)}


def lowered_flag(compiled: CompiledPlan, stream: StreamState) -> Allocation | None:
    """A stop flag for a graph; None if nothing in it reads one.

    It is not the one of the device: that is raised to stop what is in flight, and launches by other
    code are not known to be.
    """
    if not _channels(compiled):
        return None
    flag = stream.heap.allocate(_FLAG_BYTES, "constants", stream.driver)
    stream.driver.clear(flag.pointer, _FLAG_BYTES)
    return flag


def wanted_inputs(compiled: CompiledPlan) -> list[Input]:
    """The inputs of a Plan, aligned for the library calls that have them where they are."""
    plan = compiled.plan
    aligned = alignments(recaptured_calls(plan.graph))
    return [
        Input(
            interned(buffer.type.strong()),
            compiled.device,
            plan.name,
            alignment=aligned.get(buffer, 1),
        )
        for buffer in plan.inputs
    ]


def _operands(
    compiled: CompiledPlan, stream: StreamState, arguments: Sequence[Any]
) -> tuple[dict[Buffer, OwnedMemory], list[Any], list[CudaBuffer]]:
    """Where the graph has its inputs and outputs, the arguments that launches read where they are,
    and the results in order.
    """
    plan = compiled.plan
    inputs = wanted_inputs(compiled)
    aliases = tuple(plan.aliases.items())
    arguments, found, _ = writable(arguments, aliases, inputs, stream, None)
    bound = found or Bound(stream)
    operands, read, overwritten = {}, [], {number for _, number in aliases}
    for number, buffer in enumerate(plan.inputs):
        argument, foreign = arguments[number], len(bound.foreign)
        pointer = bind(argument, inputs[number], bound)
        operands[buffer] = OwnedMemory(pointer, buffer.type.nbytes, (argument, bound))
        in_place = isinstance(argument, CudaBuffer) or len(bound.foreign) > foreign
        if in_place and number not in overwritten:
            read.append(argument)
            bound.foreign.append(stream.driver.retained(argument))
    results = [stream.pool.buffer(buffer.type.strong()) for buffer in compiled.fresh]
    for buffer, result in zip(compiled.fresh, results, strict=True):
        operands[buffer] = OwnedMemory(result.pointer, buffer.type.nbytes, result)
    for output, number in aliases:
        argument = arguments[number]
        assert isinstance(argument, CudaBuffer), "it was made writable"
        results.insert(output, argument)
    return operands, read, results
