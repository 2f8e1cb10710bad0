"""Emission: the state of a graph while the nodes of a Plan are added to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from lowering.codegen import ConditionHandle, Parameter, TableEntry, WorkspaceAddress
from lowering.codegen.kernel_parameters import CallSiteNumber, Channel, Number, PrintSiteNumber
from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.library_nodes import LibraryContext
from lowering.cuda.graph.node_owners import NodeOwners
from lowering.cuda.graph.placement import Placement
from lowering.cuda.graph.small_inputs import ValueSlot
from lowering.cuda.interface import Driver, KernelNodeHandle, Launch, Timer
from lowering.cuda.libraries.capture import lines
from lowering.cuda.libraries.recapture import RecapturedCall
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Node
from lowering.plan.owners import NodeSlots
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.events import Section


class Before(NamedTuple):
    """What a node depends on: our kernels, by PDL edges where possible, and other nodes."""

    kernels: list[Any]
    others: list[Any]

    @property
    def nodes(self) -> list[Any]:
        """All of them."""
        return [*self.others, *self.kernels]


@dataclass(frozen=True, slots=True)
class Cell:
    """A kernel parameter: its value, whether the slots own that memory, the buffer a call binds."""

    value: int
    owned: bool = False
    bound: Buffer | None = None


@dataclass(slots=True)
class Emission:
    """A graph under construction.

    `conditions` has the handle of each condition whose node is in the graphs that are open, and the
    value that kernels get for it; `users` the kernel parameters that calls write, and `recaptured`
    library calls that are captured again. `load` is the node that writes the values of small
    inputs. `emitted` has the kinds of the nodes that were added for those of the Plan which do not
    say it themselves. Nodes of a class in `instead` are added by that function.
    """

    code: PlanCode
    driver: Driver
    definition: Definition
    owners: NodeOwners
    placement: Placement
    channels: Mapping[Channel, int]
    values: Mapping[Buffer, ValueSlot]
    table: Mapping[Buffer, int]
    load: KernelNodeHandle | None = None
    emitted: dict[Node, tuple[str, ...]] = field(default_factory=dict)
    conditions: dict[int, tuple[Any, int]] = field(default_factory=dict)
    instead: Mapping[type[Node], Callable[..., tuple[Any, ...]]] = field(default_factory=dict)
    timers: dict[Section, dict[str, Timer]] = field(default_factory=dict)
    recaptured: list[RecapturedCall] = field(default_factory=list)
    users: defaultdict[Buffer, list[tuple[KernelNodeHandle, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def libraries(self) -> LibraryContext:
        """What calls of libraries need of it."""
        code, placement = self.code, self.placement
        return LibraryContext(
            definition=self.definition,
            driver=self.driver,
            calls=code.calls,
            addresses=placement.addresses,
            workspaces=placement.workspaces,
            pointer_arrays=placement.pointer_arrays,
            moving=placement.moving,
            recaptured=placement.recaptured,
            placeholders=placement.placeholders,
            warm_up=placement.warm_up,
            library_bytes=code.plan.library_bytes,
            per_launch=self.owners.plan.per_launch,
            found=self.recaptured,
        )

    def kernel(self, name: str) -> Any:
        """A kernel, by the name of its function."""
        return self.driver.kernel(self.code.modules[name].code, name)

    def address(self, buffer: Buffer) -> Cell:
        """The address of a buffer; null if only calls know it."""
        address = self.placement.addresses.get(buffer)
        bound = buffer if buffer.space in ("input", "output") else None
        owned = address is not None and buffer.type.nbytes > 0  # an empty array has nothing
        return Cell(address or 0, owned, bound)

    def cell(self, node: Node, parameter: Parameter) -> Cell:
        """What a node passes for a parameter."""
        match parameter:
            case Buffer():
                return self.address(parameter)
            case Number(value=value):
                return Cell(value)
            case TableEntry(buffer=buffer):
                return Cell(self.placement.table_address + self.table[buffer], True)
            case WorkspaceAddress():
                return Cell(self.placement.workspaces[node], True)
            case ConditionHandle(condition=condition):
                if condition in self.conditions:
                    stored = self.driver.stored_conditions is not None
                    return Cell(self.conditions[condition][1], stored)
            case _:
                return Cell(
                    self.channels[parameter],
                    not isinstance(parameter, PrintSiteNumber | CallSiteNumber),
                )
        raise ValueError(
            f"the kernel at {lines(node)} sets condition {parameter.condition}, whose node is in a "
            "body inside; it must be set in the graph or body that holds the node"
        )

    def add_kernel(
        self,
        graph: Any,
        before: Before,
        launch: Launch,
        cells: Sequence[Cell],
        slots: NodeSlots,
    ) -> KernelNodeHandle:
        """Add a kernel node, and note which of its parameters a call binds."""
        handle = self.definition.add_kernel(
            graph,
            before.others if self.code.pdl else before.nodes,
            launch,
            [cell.value for cell in cells],
            [cell.owned for cell in cells],
            slots,
            before.kernels if self.code.pdl else [],
        )
        for position, cell in enumerate(cells):
            if cell.bound is not None:
                self.users[cell.bound].append((handle, position))
        return handle
