"""NodeOwners: what each node of a graph keeps alive, by name, as entries of its slot table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lowering.codegen import Parameter, Workspace
from lowering.codegen.call_records import answer_bytes
from lowering.codegen.parameters import (
    Answer,
    CallRing,
    CallSite,
    ConditionHandle,
    FailureWord,
    PrintRing,
    StepCount,
    StopFlag,
    TableEntry,
)
from lowering.cuda.effects.call_ring import call_ring_bytes
from lowering.cuda.effects.mailbox import WORD
from lowering.cuda.effects.print_ring import ring_bytes
from lowering.cuda.graph.library_calls import batch_table_bytes
from lowering.cuda.graph.modules import Module
from lowering.cuda.graph.pointer_table import table_bytes
from lowering.cuda.interface import HostAllocation
from lowering.plan.buffer import Buffer
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.embedded_graph import EmbeddedGraphNode
from lowering.plan.event_node import EventNode
from lowering.plan.nodes import HostNode, LibraryNode, Node, body_graphs
from lowering.plan.owners import NodeSlots, Slot
from lowering.plan.plan import Plan
from tracegraph.errors.wording import function_text
from tracegraph.user_source import lines_of


def allocation(nbytes: int) -> NodeSlots:
    """The slots of a node that allocates memory: it holds none."""
    return NodeSlots("memory", f"allocate {nbytes:,} B", "")


def freeing(nbytes: int) -> NodeSlots:
    """The slots of the node that frees it."""
    return NodeSlots("memory", f"free {nbytes:,} B", "")


@dataclass(frozen=True, slots=True)
class NodeOwners:
    """Names what the nodes of a Plan keep alive; its kernels are in `modules`.

    `operands` are the inputs and outputs that belong to the graph, not to calls. Where the host
    drives the loops, kernels store their conditions in `conditions`.
    """

    plan: Plan
    modules: Mapping[str, Module]
    operands: Collection[Buffer]
    conditions: HostAllocation | None = None

    def kernel(self, name: str, node: Node, parameters: Sequence[Parameter]) -> NodeSlots:
        """The slots of a kernel node."""
        slots = [self._module(name), *self._memory(parameters)]
        return NodeSlots("kernel", name, lines_of(node.sources), tuple(slots))

    def custom_kernel(self, node: CustomKernelNode, code_bytes: int) -> NodeSlots:
        """The slots of a kernel that a user wrote, which has code of its own."""
        what = "compiled kernel" if node.code is None else "own module"
        buffers = dict.fromkeys((*node.arguments, *node.outputs))
        slots = [Slot(what, code_bytes), *self._memory(list(buffers))]
        return NodeSlots("kernel", node.name, lines_of(node.sources), tuple(slots))

    def load(self, name: str, nbytes: int, readers: Sequence[Node]) -> NodeSlots:
        """The slots of the kernel that writes small inputs, which these nodes of the Plan read."""
        slots = (self._module(name), Slot("small inputs", nbytes))
        lines = lines_of([source for node in readers for source in node.sources])
        return NodeSlots("kernel", name, lines, slots)

    def table(self, name: str, nbytes: int) -> NodeSlots:
        """The slots of a kernel that writes addresses, which nodes in bodies read."""
        slots = (self._module(name), Slot("pointer table", nbytes))
        inside = [node for node in self.plan.graph.nodes if body_graphs(node)]
        return NodeSlots("kernel", name, lines_of([s for n in inside for s in n.sources]), slots)

    def library(self, node: LibraryNode, workspace_bytes: int) -> NodeSlots:
        """The slots of a captured call, which uses a workspace of that size."""
        slots = [Slot("library handle", 0)]
        if workspace_bytes and not self.plan.per_launch:
            slots.append(Slot("library workspace", workspace_bytes))
        if node.call.batches:
            slots.append(Slot("addresses", batch_table_bytes(node.call)))
        slots += [Slot(name, 0) for name in node.call.owners]
        slots += self._memory([operand.buffer for operand in node.call.operands])
        return NodeSlots(node.kind, node.name, lines_of(node.sources), tuple(slots))

    def embedded(self, node: EmbeddedGraphNode) -> NodeSlots:
        """The slots of somebody's graph: what keeps it, and its memory."""
        foreign = node.graph
        slots = [Slot("graph", 0)]
        for what, memory in (("input", foreign.inputs), ("output", foreign.outputs)):
            slots += [Slot(f"its {what} {i} {m.type}", 0) for i, m in enumerate(memory)]
        slots += self._memory([array.buffer for array in node.operands])
        return NodeSlots(node.kind, node.name, lines_of(node.sources), tuple(slots))

    def event(self, node: EventNode) -> NodeSlots:
        """The slots of a use of an event: the event."""
        return NodeSlots(node.kind, node.name, lines_of(node.sources), (Slot("event", 0),))

    def host(self, node: HostNode) -> NodeSlots:
        """The slots of a C function: a copy of its data, and what keeps it loaded."""
        data, slots = node.call.data, [Slot(f"function {node.call.name}", 0)]
        if data is not None:
            slots.append(Slot("user data", len(data)))
        return NodeSlots(node.kind, node.name, lines_of(node.sources), tuple(slots))

    def _module(self, name: str) -> Slot:
        return Slot("module", self.modules[name].nbytes)

    def conditional(self, kind: str, node: Node) -> NodeSlots:
        """The slots of a conditional node: its bodies' nodes have their own."""
        return NodeSlots(kind, "-", lines_of(node.sources))

    def _memory(self, parameters: Iterable[Parameter]) -> list[Slot]:
        """One slot for each piece of fixed memory, and for each callback that gets counts."""
        parameters = tuple(parameters)
        found = (self._slot(parameter) for parameter in parameters)
        callbacks = (self._callback(p.monitor) for p in parameters if isinstance(p, StepCount))
        return list(dict.fromkeys(slot for slot in (*found, *callbacks) if slot is not None))

    def _callback(self, monitor: int) -> Slot | None:
        """The user's function that gets step counts: the executable and its launches keep it.

        The graph does not: the function may refer to the executable, and neither would be freed.
        """
        callback = self.plan.monitors[monitor].callback
        return None if callback is None else Slot(f"callback {function_text(callback)}", 0)

    def _slot(self, parameter: Parameter) -> Slot | None:
        match parameter:
            case Buffer(space="scratch"):
                return None if self.plan.per_launch else Slot("arena", self.plan.arena_bytes)
            case Buffer(space="const", number=number, type=type_):
                return Slot(f"constant {number} {type_}", type_.nbytes)
            case Buffer(space=space, number=number, type=type_) if parameter in self.operands:
                what = "argument" if space == "input" else "result"
                return Slot(f"{what} {number} {type_}", type_.nbytes)
            case TableEntry():
                return Slot("pointer table", table_bytes(self.plan.indirect))
            case Workspace(nbytes=nbytes):
                return Slot("workspace", nbytes)
            case StopFlag():
                return Slot("stop flag", 4)
            case PrintRing():
                return Slot("print ring", ring_bytes())
            case CallRing():
                return Slot("callback ring", call_ring_bytes())
            case CallSite(site=site):
                return Slot(f"callback {self.plan.callbacks[site]}", 0)
            case Answer(record=record):
                return Slot("answer", answer_bytes(record))
            case ConditionHandle() if self.conditions is not None:
                return Slot("conditions", self.conditions.bytes.nbytes)
            case FailureWord() | StepCount():
                return Slot("mailbox", WORD * (1 + len(self.plan.monitors)))
        return None
