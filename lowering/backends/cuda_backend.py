"""The backend "cuda": a Plan as one CUDA graph on an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lowering.backends.gpus import open_early
from tracegraph.ir.types import ArrayType
from tracegraph.staging import gc_pause
from tracegraph.staging.device_features import DeviceFeatures
from tracegraph.staging.interfaces import Executable
from tracegraph.staging.program_function import StoredTarget

if TYPE_CHECKING:
    from lowering.cuda.calls.executable import CudaExecutable
    from lowering.cuda.memory.owned_buffer import OwnedBuffer
    from lowering.cuda.open_devices import OpenDevice
    from lowering.cuda.streams.owned_stream import OwnedStream
    from lowering.plan.plan import Plan
    from lowering.plan.target.rates import Rates
    from lowering.plan.target.target import Target


class CudaBackend:
    """Compiles Plans for one GPU, which is opened when it is first needed."""

    name = "cuda"

    def __init__(self, ordinal: int = 0) -> None:
        self._ordinal = ordinal
        self._opened: OpenDevice | None = None

    def _device(self) -> OpenDevice:
        """The device. What runs programs and targets is imported here, while a thread makes the
        context: planning needs none of it.
        """
        if self._opened is None:
            open_early(f"{self.name}:{self._ordinal}")
            with gc_pause.paused():
                from lowering.cuda.open_devices import open_device
                from lowering.cuda.recipe import executable, targets  # noqa: F401 - to have them

                self._opened = open_device(self._ordinal)
                gc_pause.count_as_old()
        return self._opened

    @property
    def target(self) -> Target:
        """What planning knows of it. It is not imported for programs that were planned before."""
        from lowering.backends.cuda import TARGET

        return TARGET

    @property
    def rates(self) -> Rates | None:
        """The limits of the GPU, or of the model that planning has in mind before it is opened."""
        from lowering.plan.target.rates import rates_of

        return self.target.rates if self._opened is None else rates_of(self._opened.driver.name)

    def load_target(
        self, targets: Mapping[str, StoredTarget], planned: Callable[[], Any]
    ) -> Executable | str:
        """As `Compiler.load_target`.

        Raises:
            RuntimeError: the GPU cannot be used.
        """
        open_early(f"{self.name}:{self._ordinal}")
        from lowering.cuda.recipe.targets import load_target, read_early

        read = read_early(targets)  # while a thread makes the context
        return load_target(targets, self._device(), planned, read)

    def compile(self, plan: Plan) -> CudaExecutable:
        """Compile the kernels, build the graph and instantiate it.

        Raises:
            RuntimeError: the GPU cannot be used, or the kernels do not compile.
            OutOfMemoryError: the GPU has not enough memory for the Plan's scratch and constants.
        """
        from lowering.cuda.libraries.loading import load_early

        load_early(called(plan))
        from lowering.cuda.calls.executable import CudaExecutable

        return CudaExecutable(plan, self._device())

    def source(self, plan: Plan) -> str:
        """CUDA C++ of all kernels of a Plan; no GPU is needed for it.

        Kernels that were written by hand follow, each in a unit of its own.
        """
        from lowering.codegen import unit_source
        from lowering.codegen.custom_kernels import custom_kernel_texts
        from lowering.codegen.units import translation_unit
        from lowering.cuda.compilation.compiled_plan import functions_of

        unit = unit_source(plan)
        own = translation_unit(functions_of(plan, unit).values(), unit.definitions)
        return "\n".join((own, *custom_kernel_texts(plan)))

    def memory_stats(self) -> dict[str, int]:
        """Bytes on the GPU by what holds them, as `tracegraph.memory_stats` has it."""
        return self._device().memory_stats()

    def features(self) -> DeviceFeatures:
        """As `tracegraph.features`.

        Raises:
            RuntimeError: the GPU cannot be used.
        """
        from lowering.cuda.compilation.device_report import device_features

        return device_features(self._device())

    def owned(self, address: int, type_: ArrayType, owner: Any, stream: int | None) -> OwnedBuffer:
        """As `Backend.owned`.

        Raises:
            RuntimeError: the GPU cannot be used.
            RawMemoryError: the GPU cannot access the memory.
            ValueError: the stream belongs to another device.
        """
        from lowering.cuda.memory.owned_buffer import OwnedBuffer

        return OwnedBuffer(address, type_, owner, self._device(), stream)

    def create_stream(self, priority: int | None = None) -> OwnedStream:
        """A new stream of the GPU.

        Raises:
            RuntimeError: the GPU cannot be used.
            ValueError: the GPU has no such priority.
        """
        from lowering.cuda.streams.owned_stream import OwnedStream

        return OwnedStream(self._device(), priority)

    def synchronize(self) -> None:
        """Wait for all work on the GPU; raises what reading a result of it does."""
        if self._opened is not None:
            self._opened.synchronize()

    def trim(self) -> None:
        """Wait for all work on the GPU, and give back what is kept for later."""
        if self._opened is not None:
            self._opened.trim()

    def reset(self) -> None:
        """Wait for all work on the GPU, close its executables, and free what is not in use.

        Raises:
            Exception: the first failure of a check in a program, after the rest is done.
        """
        if self._opened is not None:
            self._opened.reset()


def called(plan: Plan) -> set[str]:
    """The names of the classes of library calls in a Plan."""
    from lowering.plan.nodes import LibraryNode, launched

    nodes = launched(plan.graph)
    return {type(node.call).__name__ for node in nodes if isinstance(node, LibraryNode)}
