"""The backend "cuda": a Plan as one CUDA graph on an NVIDIA GPU."""

from __future__ import annotations

from lowering.codegen import unit_source
from lowering.cuda.calls.executable import CudaExecutable
from lowering.cuda.graph.shared_code import plan_source
from lowering.plan.plan import Plan


class CudaBackend:
    """Compiles Plans for one GPU; only `compile` needs one."""

    name = "cuda"

    def __init__(self, ordinal: int = 0) -> None:
        self._ordinal = ordinal

    def compile(self, plan: Plan) -> CudaExecutable:
        """Compile the kernels, build the graph and instantiate it.

        Raises:
            RuntimeError: the GPU cannot be used, or the kernels do not compile.
            OutOfMemoryError: the GPU has not enough memory for the Plan's scratch and constants.
        """
        from lowering.cuda.device import open_device

        return CudaExecutable(plan, open_device(self._ordinal))

    def memory_stats(self) -> dict[str, int]:
        """Bytes on the GPU by what holds them, as `tracegraph.memory_stats` has it."""
        from lowering.cuda.device import open_device

        return open_device(self._ordinal).memory_stats()

    def source(self, plan: Plan) -> str:
        """CUDA C++ of all kernels of `plan`."""
        return plan_source(plan, unit_source(plan))
