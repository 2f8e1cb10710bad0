"""Recording: the graph of a Plan as a recipe, by the calls that add its nodes to a graph.

Emission runs as for a device, against a recorder in place of a driver and a graph. An address is a
number that knows its place, also after an offset was added to it. No GPU is needed, but a compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
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
from lowering.codegen.preamble import preamble
from lowering.codegen.units import translation_unit
from lowering.cuda.compilation.compile import compiler_version, cubin, custom_cubin
from lowering.cuda.compilation.compiled_plan import functions_of
from lowering.cuda.compilation.feature_probes import KERNELS
from lowering.cuda.compilation.modules import Module
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
from lowering.cuda.interface import Driver, Launch
from lowering.cuda.libraries.library_calls import PreparedCall, captured
from lowering.cuda.libraries.pointer_arrays import alignments
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.recipe.calls import KINDS, fields_to_json
from lowering.cuda.recipe.recipe import (
    ALIGNMENT,
    Allocate,
    Arena,
    Base,
    BufferPlace,
    ConditionalKind,
    Free,
    InputSlot,
    Label,
    Library,
    Recipe,
    RecipeCall,
    RecipeConditional,
    RecipeConstant,
    RecipeFunction,
    RecipeInput,
    RecipeKernel,
    RecipeOutput,
    Relocation,
)
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
from lowering.plan.owners import NodeSlots, SlotTable
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.features import Features
from tracegraph.errors import UnsavableError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace as replace_record
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import lines_of

_KINDS: Mapping[str, ConditionalKind] = {kind.word: kind for kind in ConditionalKind}

_ANY_NUMBER = 1 << 31
"""In place of limits that only a device has."""


class Address(int):
    """An address, or a handle, that knows its place."""

    place: Relocation

    def __new__(cls, place: Relocation) -> Address:
        """An address at a place."""
        found = super().__new__(cls, 1 + place.offset)  # never null
        found.place = place
        return found

    def __add__(self, offset: int) -> Address:
        return Address(replace(self.place, offset=self.place.offset + int(offset)))


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


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """A kernel node by its number."""

    node: int


@dataclass(slots=True, eq=False)
class Recorder:
    """In place of a driver, a device and a graph: it notes what is added. Nodes are numbers."""

    arch: str
    multiprocessors: int = _ANY_NUMBER
    stored_conditions: None = None
    slots: SlotTable = field(default_factory=SlotTable)
    kinds: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    data: dict[str, bytes] = field(default_factory=dict)
    functions: dict[RecipeFunction, int] = field(default_factory=dict)
    conditions: list[int] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    labels: dict[Label, int] = field(default_factory=dict)
    calls: list[RecipeCall] = field(default_factory=list)
    buffer_places: list[BufferPlace] = field(default_factory=list)
    buffers: dict[Buffer, int] = field(default_factory=dict)
    exact: set[Launch] = field(default_factory=set)
    graphs: int = 0

    # Code

    @property
    def driver(self) -> Recorder:
        """Itself, as the driver of a device."""
        return self

    def compiled(
        self, functions: Mapping[str, str], definitions: Sequence[str]
    ) -> dict[str, Module]:
        """The modules of functions, by name: in one unit, so that files depend on no machine."""
        if not functions:
            return {}
        code = cubin(translation_unit(functions.values(), definitions), self.arch)
        return dict.fromkeys(functions, Module(self.load(code), self.code_bytes(code)))

    def compiled_probes(self) -> Any:
        """The kernels that try what devices can do."""
        return cubin(preamble(KERNELS) + KERNELS, self.arch)

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> Any:
        """The cubin of a unit that was written by hand."""
        return custom_cubin(source, self.arch, name, include_paths)

    def code_bytes(self, code: Any) -> int:
        """The size of a cubin."""
        return len(code.code)

    def load(self, code: Any) -> int:
        """The number of a cubin."""
        data = bytes(code.code)
        name = f"{sha256(data).hexdigest()[:32]}.cubin"
        if name not in self.data:
            self.data[name] = data
            self.codes.append(name)
        return self.codes.index(name)

    def kernel(self, module: int, name: str) -> int:
        """The number of a function."""
        return self.functions.setdefault(RecipeFunction(module, name), len(self.functions))

    def parameter_sizes(self, kernel: int) -> None:
        """They are not known."""

    def resident_blocks(self, launch: Launch) -> int:
        """That is seen where the recipe is loaded: the launch must be as it is."""
        self.exact.add(launch)
        return _ANY_NUMBER

    # Nodes

    def new_graph(self) -> int:
        """The number of another graph."""
        self.graphs += 1
        return self.graphs - 1

    def create_condition(self, graph: int) -> tuple[int, Address]:
        """A condition of a graph, and its handle."""
        self.conditions.append(graph)
        number = len(self.conditions) - 1
        return number, Address(Relocation(Base.CONDITION, number))

    def label(self, slots: NodeSlots) -> int:
        """The number of what a node is to the user."""
        label = Label(slots.kind, slots.name, slots.lines)
        return self.labels.setdefault(label, len(self.labels))

    def enter(self, node: Any) -> int:
        """The number of a node that is added."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_kernel(
        self,
        graph: int,
        dependencies: Sequence[int],
        launch: Launch,
        values: Sequence[int],
        owned: Sequence[bool],
        node: NodeSlots,
        pdl: Sequence[int] = (),
    ) -> RecordedKernel:
        """A kernel node; of one whose grid was limited by what is unknown, the grid adapts."""
        places = tuple(map(_place, values, owned))
        kernel = RecipeKernel(
            graph=graph,
            function=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            cluster=launch.cluster or (0, 0, 0),
            shared_bytes=launch.shared_bytes,
            cooperative=launch.cooperative,
            adapts=launch.cooperative and launch not in self.exact,
            parameters=places,
            behind=tuple(dependencies),
            primaries=tuple(pdl),
            label=self.label(node),
        )
        return RecordedKernel(self.enter(kernel))

    def add_conditional(
        self,
        graph: int,
        dependencies: Sequence[int],
        kind: str,
        condition: int,
        branches: int,
        node: NodeSlots,
    ) -> tuple[int, tuple[int, ...]]:
        """A conditional node and its bodies."""
        bodies = tuple([self.new_graph() for _ in range(branches)])
        number = self.enter(
            RecipeConditional(
                graph, _KINDS[kind], condition, bodies, tuple(dependencies), self.label(node)
            )
        )
        return number, bodies

    def number_of(self, buffer: Buffer, address: int) -> int:
        """The number of a buffer of a library's call."""
        if buffer not in self.buffers:
            self.buffers[buffer] = len(self.buffers)
            self.buffer_places.append(BufferPlace(_place(address), buffer.type.strong()))
        return self.buffers[buffer]


def _place(value: int, owned: bool = True) -> Relocation:
    if not isinstance(value, Address):
        return Relocation(Base.NUMBER, 0, int(value) % 2**64)
    if not owned and value.place.base in (Base.ARENA, Base.FIXED, Base.CONSTANTS):
        return Relocation(Base.NUMBER)  # of an empty array
    return value.place


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
        None if pointers is None else _place(pointers),
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
