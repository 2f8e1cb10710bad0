"""Recording: the graph of a Plan as a recipe, by the calls that add its nodes to a graph.

Emission runs as for a device, against a `Recorder` in place of a driver and a graph. No GPU is
needed, but a compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NoReturn, cast

import numpy as np

from lowering.codegen import unit_source
from lowering.codegen.kernel_parameters import (
    Answer,
    CallRingAddress,
    CallSiteNumber,
    Channel,
    FailureWord,
    PrintRingAddress,
    PrintSiteNumber,
    StepCount,
    StopFlagAddress,
)
from lowering.cuda.compilation.compile import compiler_version
from lowering.cuda.compilation.compiled_plan import functions_of
from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.emission import Before, Emission
from lowering.cuda.graph.emit import emit_graph
from lowering.cuda.graph.fixed_layout import FixedLayout
from lowering.cuda.graph.handwritten_kernels import load_custom_kernels
from lowering.cuda.graph.node_owners import NodeOwners, allocation, freeing
from lowering.cuda.graph.placement import Placement
from lowering.cuda.graph.pointer_table import entries
from lowering.cuda.graph.small_inputs import value_slots
from lowering.cuda.interface import Driver
from lowering.cuda.libraries.library_calls import PreparedCall, captured
from lowering.cuda.libraries.pointer_arrays import alignments
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.recipe.calls import KINDS, fields_to_json
from lowering.cuda.recipe.recipe import (
    ALIGNMENT,
    Allocate,
    Arena,
    Base,
    Free,
    InputSlot,
    Library,
    Recipe,
    RecipeCall,
    RecipeConstant,
    RecipeInput,
    RecipeOutput,
    Relocation,
)
from lowering.cuda.recipe.recorder import Address, Recorder, place_of
from lowering.legalization.legalize import legalize, needed_features
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.embedded_graph import EmbeddedGraphNode
from lowering.plan.event_node import EventNode
from lowering.plan.launch_graph import launch_graph
from lowering.plan.launch_nodes import AllocationNode, FreeNode
from lowering.plan.lockstep import collectives
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import HostNode, LibraryNode, Node, launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.features import Features
from tracegraph.errors import UnsavableError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace as replace_record
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import lines_of


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A recipe, with its cubins and constants by name."""

    recipe: Recipe
    data: Mapping[str, bytes]


def recorded(plan: Plan, arch: str) -> Recorded:
    """The recipe of a Plan for an architecture such as ``"sm_90"``.

    Raises:
        UnsavableError: the Plan has what no file can bring along; the message names the line.
        RuntimeError: the kernels do not compile, or there is no compiler.
    """
    cuda = compiler_version(arch)
    pdl = int(arch.removeprefix("sm_")) >= 90
    plan = legalize(plan, Features(programmatic_edges=pdl))
    _require_savable(plan)
    unit = unit_source(plan)
    recorder = Recorder(arch)
    modules = recorder.compiled(functions_of(plan, unit), unit.definitions)
    custom = load_custom_kernels(plan, cast(OpenDevice, recorder))
    plan = replace_record(plan, as_graph=True)
    nodes = [node for node in launched(plan.graph) if isinstance(node, LibraryNode)]
    calls = {n: PreparedCall(cast(Any, None), captured(n).issue, 0) for n in nodes}
    code = PlanCode(plan, unit, modules, custom, calls, pdl)
    values = value_slots(plan.by_value)
    layout = FixedLayout.of(code, values, {})
    constants, data = _constants(plan)
    addresses = _addresses(plan, constants)
    addresses |= {b: Address(Relocation(Base.FIXED, 0, slot.offset)) for b, slot in values.items()}
    slots = {
        buffer: InputSlot(slot.offset, slot.parameter, slot.words)
        for buffer, slot in values.items()
    }
    fixed = Address(Relocation(Base.FIXED))
    numbers = {buffer: number for number, buffer in enumerate(plan.inputs)}
    bound: dict[Buffer, int] = {b: Address(Relocation(Base.INPUT, i)) for b, i in numbers.items()}
    for number, buffer in enumerate(plan.outputs):
        if buffer.space == "output":
            bound[buffer] = Address(Relocation(Base.OUTPUT, number))
    placement = Placement(
        addresses={**addresses, **bound},
        workspaces={node: fixed + at for node, at in layout.workspaces.items()},
        pointer_arrays={node: fixed + at for node, at in layout.pointer_arrays.items()},
        moving=layout.moving,
        recaptured=layout.recaptured,
        placeholders=fixed + layout.placeholders,
        values_address=fixed,
        table_address=fixed + layout.table,
        scratch=None,
        memory=(),
        needed={},
        warm_up=None,
    )
    channels, records = _channels(plan, [p for c in unit.launches for p in c.parameters])
    emission = Emission(
        code,
        cast(Driver, recorder),
        cast(Definition, recorder),
        NodeOwners(plan, modules),
        placement,
        channels,
        values,
        entries(plan.indirect),
        instead={
            LibraryNode: _record_call,
            HostNode: _refuse,
            EventNode: _refuse,
            EmbeddedGraphNode: _refuse,
            AllocationNode: _record_allocation,
            FreeNode: _record_free,
        },
    )
    whole = launch_graph(
        plan.graph, tuple(values), plan.indirect, placement.moving, plan.allocated_bytes
    )
    emit_graph(emission, recorder.new_graph(), whole)
    needs = needed_features(plan)
    probe = recorder.load(recorder.compiled_probes()) if "body_updates" in needs else -1
    aligned = alignments([*placement.moving, *placement.recaptured])
    recipe = Recipe(
        name=plan.name,
        arch=arch,
        cuda=cuda,
        needs=needs,
        inputs=tuple(
            [RecipeInput(b.type.strong(), aligned.get(b, 1), slots.get(b)) for b in plan.inputs]
        ),
        outputs=tuple([RecipeOutput(b.type.strong(), _over(b)) for b in plan.outputs]),
        arena=Arena(plan.arena_bytes, bool(plan.allocated_bytes)),
        fixed_bytes=layout.nbytes,
        constants=constants,
        codes=tuple(recorder.codes),
        functions=tuple(recorder.functions),
        conditions=tuple(recorder.conditions),
        nodes=tuple(recorder.nodes),
        labels=tuple(recorder.labels),
        load=-1 if emission.load is None else cast(Any, emission.load).node,
        waits=_waits(plan),
        buffers=tuple(recorder.buffer_places),
        calls=tuple(recorder.calls),
        failures=plan.failures,
        monitors=plan.monitors,
        prints=plan.prints,
        records=records,
        probe=probe,
    )
    return Recorded(recipe, {**recorder.data, **data})


def _record_call(emission: Emission, graph: Any, node: LibraryNode, before: Before) -> Any:
    recorder, placement = cast(Recorder, emission.driver), emission.placement
    kind = type(node.call).__name__
    if KINDS.get(kind) is not type(node.call):
        _refuse(emission, graph, node, before)
    addresses = placement.addresses

    def number(buffer: Buffer) -> int:
        return recorder.number_of(buffer, addresses[buffer])

    pointers = placement.pointer_arrays.get(node)
    moving = placement.recaptured.get(node, ())
    call = RecipeCall(
        kind,
        fields_to_json(node.call, number),
        node.workspace,
        None if pointers is None else place_of(pointers),
        node not in placement.moving,
        tuple(map(number, moving)),
    )
    recorder.calls.append(call)
    label = recorder.label(emission.owners.of(node))
    added = Library(graph, len(recorder.calls) - 1, tuple(before.nodes), label)
    return (recorder.enter(added),)


def _record_allocation(emission: Emission, graph: Any, node: Any, before: Before) -> Any:
    recorder = cast(Recorder, emission.driver)
    return (recorder.enter(Allocate(recorder.label(allocation(node.nbytes)))),)


def _record_free(emission: Emission, graph: Any, node: Any, before: Before) -> Any:
    recorder = cast(Recorder, emission.driver)
    recorder.enter(Free(tuple(before.nodes), recorder.label(freeing(node.nbytes))))
    return ()


def _refuse(emission: Emission, graph: Any, node: Node, before: Before) -> NoReturn:
    raise UnsavableError(
        f"{node.noun} at {lines_of(node.sources) or 'an unknown line'} is of this process, and can "
        "be in no target of a file; without targets, the program is saved and lowered where it is "
        "loaded"
    )


def _require_savable(plan: Plan) -> None:
    """Refuse what belongs to this process or to several devices."""
    if plan.sharding is not None:
        raise UnsavableError(f"{plan.name} runs on a mesh, and targets are for one device")
    if plan.callbacks or any(monitor.callback is not None for monitor in plan.monitors):
        raise UnsavableError(f"{plan.name} calls functions of this process")


def _waits(plan: Plan) -> bool:
    nodes = tuple(launched(plan.graph))
    loops = any(isinstance(node, (WhileNode, PersistentKernelNode)) for node in nodes)
    return loops or any(collectives(plan.graph))


def _over(buffer: Buffer) -> int:
    return buffer.number if buffer.space == "input" else -1


def _constants(plan: Plan) -> tuple[tuple[RecipeConstant, ...], dict[str, bytes]]:
    """Where constants are, and their data."""
    constants, data, end = [], {}, 0
    for buffer, array in plan.constants:
        raw = np.ascontiguousarray(array).tobytes()
        name = f"{sha256(raw).hexdigest()[:32]}.bin"
        data[name] = raw
        constants.append(RecipeConstant(end, buffer.type.nbytes, name))
        end += round_up(buffer.type.nbytes, ALIGNMENT)
    return tuple(constants), data


def _addresses(plan: Plan, constants: Sequence[RecipeConstant]) -> dict[Buffer, int]:
    """Those of scratch and constants."""
    found: dict[Buffer, int] = {
        buffer: Address(Relocation(Base.ARENA, 0, offset))
        for buffer, offset in plan.offsets.items()
    }
    for (buffer, _), constant in zip(plan.constants, constants, strict=True):
        found[buffer] = Address(Relocation(Base.CONSTANTS, 0, constant.offset))
    if plan.stop_flag is not None:
        found[plan.stop_flag] = Address(Relocation(Base.STOP_FLAG))
    return found


def _channels(
    plan: Plan, parameters: Sequence[Any]
) -> tuple[dict[Channel, int], tuple[tuple[ArrayType, ...], ...]]:
    """The parameters through which kernels report, and the types of what prints send."""
    found: dict[Channel, int] = {}
    records: dict[int, tuple[ArrayType, ...]] = {}
    for channel in dict.fromkeys(p for p in parameters if isinstance(p, Channel)):
        match channel:
            case StopFlagAddress():
                found[channel] = Address(Relocation(Base.STOP_FLAG))
            case FailureWord():
                found[channel] = Address(Relocation(Base.FAILURE))
            case StepCount(monitor=monitor):
                found[channel] = Address(Relocation(Base.STEPS, monitor))
            case PrintRingAddress():
                found[channel] = Address(Relocation(Base.PRINT_RING))
            case PrintSiteNumber(site=site, record=record):
                found[channel] = Address(Relocation(Base.PRINT_SITE, site))
                records[site] = record.types
            case CallRingAddress() | CallSiteNumber() | Answer():
                raise UnsavableError(f"{plan.name} calls functions of this process")
    return found, tuple([records.get(site, ()) for site in range(len(plan.prints))])
