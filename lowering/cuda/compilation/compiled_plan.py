"""CompiledPlan: what the graphs of a Plan for all streams share: code, constants, features."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lowering.codegen import Unit
from lowering.cuda.compilation.kept_code import CodePlace
from lowering.cuda.compilation.modules import load_modules
from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.effects.callback_thread import require_not_awaited
from lowering.cuda.effects.channels import connect
from lowering.cuda.graph.built_graph import BuiltGraph
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.emit import emit, emitter_of
from lowering.cuda.graph.handwritten_kernels import load_custom_kernels
from lowering.cuda.graph.host_driven import STORED_CONDITIONS, host_driven
from lowering.cuda.graph.placement import Constants, place, upload
from lowering.cuda.graph.pointer_table import TABLE_KERNEL, table_source
from lowering.cuda.graph.small_inputs import LOAD_KERNEL, ValueSlot, load_source, value_slots
from lowering.cuda.libraries.library_calls import prepare, workspace_bytes
from lowering.cuda.libraries.pointer_arrays import (
    ARRAYS_KERNEL,
    alignments,
    arrays_source,
    part_arrays,
)
from lowering.cuda.memory.pool import interned, size_class
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.stream_state import StreamState
from lowering.legalization.legalize import legalize, needed_features
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.launch_graph import moving_calls
from lowering.plan.lockstep import collectives
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import launched
from lowering.plan.owners import SlotTable
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.features import Features, probed
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPlan:
    """A Plan with its code and constants on a device.

    `values` are the slots of inputs that may be passed by value.
    """

    code: PlanCode
    device: OpenDevice
    features: Features
    values: Mapping[Buffer, ValueSlot]
    constants: Constants

    @classmethod
    def compile(cls, plan: Plan, device: OpenDevice) -> CompiledPlan:
        """Find what the device can do, compile all kernels, upload constants, plan library calls.

        Raises:
            RuntimeError: the kernels do not compile.
            KernelCompileError: one that a user wrote does not.
            OutOfMemoryError: the device has not enough memory.
            CallbackDeadlockError: a kernel waits for the callback that this thread runs.
        """
        require_not_awaited("to load code may wait for what runs")
        features = probed(needed_features(plan), device.supports)
        place = CodePlace.of(plan, features, device)
        found = None if place is None else place.find()
        if found is not None:
            plan = replace(found.plan, name=plan.name)
            unit, modules = found.unit, found.load(device)
        else:
            from lowering.codegen import unit_source  # code on disk needs no generator

            plan = legalize(plan, features)
            unit = unit_source(plan)
            head = "" if features.conditional_nodes else STORED_CONDITIONS
            functions = functions_of(plan, unit)
            modules, cubins = load_modules(functions, device, unit.definitions, head)
            if place is not None:
                place.put(plan, unit, [(names, bytes(code.code)) for names, code in cubins])
        custom, calls = load_custom_kernels(plan, device), prepare(plan, device)
        plan = replace(plan, as_graph=True, library_bytes=workspace_bytes(calls))
        code = PlanCode(plan, unit, modules, custom, calls, features.programmatic_edges)
        return cls(code, device, features, value_slots(plan.by_value), upload(plan, device))

    @property
    def plan(self) -> Plan:
        """The Plan, legalized for the device's features."""
        return self.code.plan

    @property
    def loops(self) -> bool:
        """Whether a launch may run for any time: it has loops that the host does not drive, or
        waits for other devices.
        """
        nodes = tuple(launched(self.plan.graph))
        waits = any(isinstance(n, PersistentKernelNode) for n in nodes)
        return self.while_nodes or waits or any(collectives(self.plan.graph))

    @property
    def while_nodes(self) -> bool:
        """Whether its graphs have WHILE nodes."""
        return self.features.conditional_nodes and any(
            isinstance(node, WhileNode) for node in launched(self.plan.graph)
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.plan.name

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The inputs."""
        return self.plan.inputs

    @property
    def copied(self) -> Collection[Buffer]:
        """The inputs and outputs that each launch copies."""
        return self.plan.copied

    @property
    def aliases(self) -> Mapping[int, int]:
        """The numbers of outputs that are written over an input, and of the inputs."""
        return self.plan.aliases

    @property
    def prints(self) -> bool:
        """Whether launches print."""
        return bool(self.plan.prints)

    @property
    def host_driven(self) -> bool:
        """Whether the host drives its loops and branches."""
        return not self.features.conditional_nodes

    @property
    def per_launch(self) -> bool:
        """Whether each launch allocates scratch."""
        return self.plan.per_launch

    @property
    def code_bytes(self) -> int:
        """The size of all kernels."""
        return self.code.nbytes

    @property
    def parameter_bytes(self) -> int:
        """The size of the kernel parameters in one graph."""
        return self.code.parameter_bytes

    def build(self, stream: StreamState) -> BuiltGraph:
        """A graph for a stream; raises as `place`, `connect` and `emit` do."""
        plan, driver = self.plan, stream.driver
        if self.host_driven:
            driver = host_driven(driver, plan.conditions, stream.timeline.check_within)
        # Other launches may come between the parts of one that the host drives.
        share = not self.host_driven
        definition = Definition(driver, SlotTable(), plan.name)
        conditions = driver.stored_conditions
        if conditions is not None:
            definition.slots.retain(conditions)
            definition.slots.name("conditions", conditions.pointer, conditions.bytes.nbytes)
        with definition.building() as graph:
            placement = place(
                self.code,
                self.values,
                self.constants,
                stream,
                definition,
                graph,
                share=share,
                fixed={},
            )
            effects, channels = connect(plan, self.code.unit, stream.timeline, definition.slots)
            emitted = emit(self.code, self.values, placement, channels, definition, graph)
        return BuiltGraph(
            definition=definition,
            effects=effects,
            users=emitted.users,
            load=emitted.load,
            recaptured=emitted.recaptured,
            alignments=alignments([*placement.moving, *placement.recaptured]),
            addresses=placement.addresses,
            memory=placement.memory,
            needed=placement.needed,
            scratch=placement.scratch,
            timers=emitted.timers,
            emitted=emitted.kinds,
        )

    @property
    def fresh(self) -> list[Buffer]:
        """The outputs in new memory at each call."""
        return [buffer for buffer in self.plan.outputs if buffer.space == "output"]

    @property
    def results(self) -> list[tuple[ArrayType, int]]:
        """The types of those, and the size classes of their memory."""
        return [(interned(b.type.strong()), size_class(b.type.nbytes)) for b in self.fresh]


def functions_of(plan: Plan, unit: Unit) -> dict[str, str]:
    """All CUDA C++ functions that a Plan needs, by name."""
    functions = dict(unit.functions)
    if plan.by_value:
        functions[LOAD_KERNEL] = load_source(list(value_slots(plan.by_value).values()))
    if plan.indirect:
        functions[TABLE_KERNEL] = table_source(plan.indirect)
    if moving := moving_calls(plan.graph):
        functions[ARRAYS_KERNEL] = arrays_source(part_arrays(moving))
    for node in launched(plan.graph):
        functions |= emitter_of(node).functions
    return functions
