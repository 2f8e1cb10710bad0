"""CompiledPlan: what the graphs of a Plan for all streams share: code, constants, features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lowering.codegen import Unit, unit_source
from lowering.cuda.device import OpenDevice
from lowering.cuda.effects.callbacks import require_not_awaited
from lowering.cuda.graph.emit import EMITTERS
from lowering.cuda.graph.host_driven import STORED_CONDITIONS
from lowering.cuda.graph.placement import Constants, upload
from lowering.cuda.graph.pointer_table import table_source
from lowering.cuda.graph.small_inputs import ValueSlot, load_source, value_slots
from lowering.cuda.memory.pool import interned, size_class
from lowering.legalization.features import Features, probed
from lowering.legalization.legalize import legalize, needed_features
from lowering.plan.buffer import Buffer
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from tracegraph.ir.types import ArrayType


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPlan:
    """A Plan with its code and constants on a device.

    `plan` is legalized for the device's `features`; `values` are the slots of inputs that may be
    passed by value.
    """

    plan: Plan
    device: OpenDevice
    features: Features
    unit: Unit
    values: Mapping[Buffer, ValueSlot]
    module: Any
    code_bytes: int
    constants: Constants

    @classmethod
    def compile(cls, plan: Plan, device: OpenDevice) -> CompiledPlan:
        """Find what the device can do, compile all kernels, and upload the constants.

        Raises:
            RuntimeError: the kernels do not compile.
            OutOfMemoryError: the device has not enough memory.
            CallbackDeadlockError: a kernel waits for the callback that this thread runs.
        """
        require_not_awaited("to load code may wait for what runs")
        features = probed(needed_features(plan), device.supports)
        plan = legalize(plan, features)
        unit = unit_source(plan)
        source = plan_source(plan, unit)
        if not features.conditional_nodes:
            source = STORED_CONDITIONS + source
        code = device.compile(source)
        module, code_bytes = device.driver.load(code), device.code_bytes(code)
        values = small_inputs(plan, unit)
        constants = upload(plan, device)
        return cls(plan, device, features, unit, values, module, code_bytes, constants)

    @property
    def loops(self) -> bool:
        """Whether a launch may run for any time: it has loops that the host does not drive."""
        nodes = tuple(launched(self.plan.graph))
        return self.while_nodes or any(isinstance(n, PersistentKernelNode) for n in nodes)

    @property
    def while_nodes(self) -> bool:
        """Whether its graphs have WHILE nodes."""
        return self.features.conditional_nodes and any(
            isinstance(node, WhileNode) for node in launched(self.plan.graph)
        )

    @property
    def fresh(self) -> list[Buffer]:
        """The outputs in new memory at each call."""
        return [buffer for buffer in self.plan.outputs if buffer.space == "output"]

    @property
    def results(self) -> list[tuple[ArrayType, int]]:
        """The types of those, and the size classes of their memory."""
        return [(interned(b.type.strong()), size_class(b.type.nbytes)) for b in self.fresh]

    @property
    def parameter_bytes(self) -> int:
        """The size of the kernel parameters in one graph."""
        return 8 * sum(len(kernel.parameters) for kernel in self.unit.kernels.values())


def small_inputs(plan: Plan, unit: Unit) -> dict[Buffer, ValueSlot]:
    """The inputs that may be passed by value, among those that some kernel reads."""
    read = {buffer for code in unit.kernels.values() for buffer in code.buffers}
    others = (node for node in launched(plan.graph) if node not in unit.kernels)
    read = read.union(*(node.reads for node in others))
    # what outputs are written over is in device memory in any case
    return value_slots([b for b in plan.inputs if b in read and b not in plan.outputs])


def plan_source(plan: Plan, unit: Unit) -> str:
    """All CUDA C++ that a Plan needs, as one unit."""
    kinds = dict.fromkeys(type(node) for node in launched(plan.graph))
    parts = (
        unit.source,
        load_source(list(small_inputs(plan, unit).values())),
        table_source(plan.indirect),
        *(EMITTERS[kind].source for kind in kinds),
    )
    return "\n".join(part for part in parts if part)
