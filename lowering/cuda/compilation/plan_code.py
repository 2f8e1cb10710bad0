"""PlanCode: a Plan, and all that runs its nodes on a device."""

from __future__ import annotations

from collections.abc import Mapping

from lowering.codegen import Unit
from lowering.cuda.compilation.modules import Module
from lowering.cuda.graph.handwritten_kernels import CustomCode
from lowering.cuda.libraries.library_calls import PreparedCalls
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.plan import Plan
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class PlanCode:
    """A Plan, its kernels in `modules` by the names of their functions, those that users wrote
    (`custom`), and its calls of libraries.

    `pdl` says whether edges between kernels may be programmatic.
    """

    plan: Plan
    unit: Unit
    modules: Mapping[str, Module]
    custom: Mapping[CustomKernelNode, CustomCode]
    calls: PreparedCalls
    pdl: bool

    @property
    def nbytes(self) -> int:
        """The size of all kernels, those that users wrote included."""
        own = [code.module for code in self.custom.values()]
        return sum(module.nbytes for module in dict.fromkeys((*self.modules.values(), *own)))

    @property
    def parameter_bytes(self) -> int:
        """The size of the kernel parameters in one graph."""
        counts = [len(kernel.parameters) for kernel in self.unit.launches]
        return 8 * sum(counts, sum(len(node.parameters) for node in self.custom))
