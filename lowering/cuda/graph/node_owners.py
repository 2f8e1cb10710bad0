"""NodeOwners: what each node of a graph keeps alive, by name, as entries of its slot table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lowering.codegen import Parameter
from lowering.codegen.kernel_parameters import CallSiteNumber, StepCount
from lowering.cuda.compilation.modules import Module
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import Node
from lowering.plan.owners import NodeSlots, Slot
from lowering.plan.plan import Plan
from tracegraph.errors.wording import function_text
from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import lines_of


def allocation(nbytes: int) -> NodeSlots:
    """The slots of a node that allocates memory: it holds none."""
    return NodeSlots("memory", f"allocate {nbytes:,} B", "")


def freeing(nbytes: int) -> NodeSlots:
    """The slots of the node that frees it."""
    return NodeSlots("memory", f"free {nbytes:,} B", "")


@dataclass(frozen=True, slots=True)
class NodeOwners:
    """Names what the nodes of a Plan keep alive besides memory; its kernels are in `modules`.

    The memory is named where it is allocated: see `SlotTable`.
    """

    plan: Plan
    modules: Mapping[str, Module]

    def kernel(self, name: str, node: Node, parameters: Sequence[Parameter]) -> NodeSlots:
        """The slots of a kernel node."""
        slots = [self._module(name), *self._callbacks(parameters)]
        return NodeSlots("kernel", name, lines_of(node.sources), tuple(slots))

    def custom_kernel(self, node: CustomKernelNode, code_bytes: int) -> NodeSlots:
        """The slots of a kernel that a user wrote, which has code of its own."""
        what = "compiled kernel" if node.code is None else "own module"
        return NodeSlots("kernel", node.name, lines_of(node.sources), (Slot(what, code_bytes),))

    def of(self, node: Node) -> NodeSlots:
        """The slots of a node that is not a generated kernel: what it names itself."""
        return NodeSlots(node.kind, node.name, lines_of(node.sources), node.keeps)

    def _module(self, name: str) -> Slot:
        return Slot("module", self.modules[name].nbytes)

    def _callbacks(self, parameters: Iterable[Parameter]) -> list[Slot]:
        """The functions that are called back: the executable and its launches keep them.

        The graph does not keep those that get step counts: one may refer to the executable, and
        neither would be freed.
        """
        names: list[str] = []
        for parameter in parameters:
            if isinstance(parameter, CallSiteNumber):
                names.append(f"callback {self.plan.callbacks[parameter.site]}")
            elif isinstance(parameter, StepCount):
                callback = self.plan.monitors[parameter.monitor].callback
                if callback is not None:
                    names.append(f"callback {function_text(callback)}")
        return [Slot(name, 0) for name in dict.fromkeys(names)]
