"""EmbeddedGraphNode: a graph that somebody else built, as a child of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer_fields import Reads, Writes
from lowering.plan.nests.weight import Weight
from lowering.plan.nodes import Node
from lowering.plan.owners import Slot
from tracegraph.inspection.palette import Tone
from tracegraph.ir.custom_kernels import ForeignGraph
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.record import record
from tracegraph.user_source import Source


@record
class EmbeddedGraphNode(Node):
    """Copies `arguments` to where the graph reads, runs it, and copies what it wrote to `results`.

    All arrays are contiguous, at addresses that stay the same. The graph may do anything to its
    memory, so that it never runs for nothing; without results it is run for that alone, in the
    order of effects.
    """

    kind: ClassVar[str] = "graph"
    tone: ClassVar[Tone] = "captured"
    noun: ClassVar[str] = "an embedded graph"
    exclusive: ClassVar[str] = "memory of embedded graphs"  # which two of them may have in common

    call: KernelCall
    arguments: Reads[tuple[StridedArray, ...]]
    results: Writes[tuple[StridedArray, ...]]
    sources: tuple[Source, ...] = ()

    @property
    def graph_nodes(self) -> tuple[str, ...]:
        before, behind = (
            ["memcpy" for array in arrays if array.nbytes]
            for arrays in (self.arguments, self.results)
        )
        return *before, "graph", *behind

    @property
    def graph(self) -> ForeignGraph:
        """The graph."""
        code = self.call.kernel.code
        assert isinstance(code, ForeignGraph)
        return code

    @property
    def keeps(self) -> tuple[Slot, ...]:
        ends = (("input", self.graph.inputs), ("output", self.graph.outputs))
        memory = [f"its {what} {i} {m.type}" for what, each in ends for i, m in enumerate(each)]
        return tuple([Slot(what, 0) for what in ("graph", *memory)])

    @property
    def is_ordered(self) -> bool:
        return not self.results

    @property
    def weight(self) -> Weight:
        return Weight(nbytes=2 * sum([array.buffer.type.nbytes for array in self.operands]))

    @property
    def name(self) -> str:
        return self.call.kernel.name

    @property
    def title(self) -> str:
        return f"embedded graph {self.name}"

    @property
    def text(self) -> str:
        inputs, outputs = (", ".join(map(str, each)) for each in (self.arguments, self.results))
        return f"{self.title}: {outputs} = {self.name}({inputs})"

    @property
    def run_host(self) -> Callable[..., None]:
        if not self.results:
            return self.call.kernel.reference
        return self.call.writer(len(self.arguments))
