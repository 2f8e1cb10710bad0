"""CustomKernelNode: a kernel that was written by hand, as one kernel launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from lowering.plan.calls.library_call import IfSkipped, StridedArray
from lowering.plan.construct import Path
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import Reads, Writes
from lowering.plan.nests.weight import Weight
from lowering.plan.nodes import Node
from tracegraph.ir.custom_kernels import CompiledKernel, CudaText
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.kernel_launches import KernelLaunch
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType, row_major_strides
from tracegraph.user_source import Source


@record
class CustomKernelNode(Node):
    """A launch of a user's kernel, or of one of ours for small matrices.

    `arguments` has a buffer for each operand, contiguous and row-major from its start, of the
    operand's type in `types`. An operand that an output is written over is in the output's buffer.
    It never leaves a branch, or a loop some of whose steps may be skipped: on values that are not
    used it might not end.
    """

    kind: ClassVar[str] = "custom kernel"
    graph_nodes: ClassVar[tuple[str, ...]] = ("kernel",)
    fixed_buffers: ClassVar[frozenset[Buffer]] = frozenset()
    if_skipped: ClassVar[IfSkipped] = "counted"

    call: KernelCall
    launch: KernelLaunch
    types: tuple[ArrayType, ...]
    arguments: Reads[tuple[Buffer, ...]]
    outputs: Writes[tuple[Buffer, ...]]
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()

    @property
    def noun(self) -> str:
        return f"kernel {self.call.kernel.name}"

    @property
    def may_be_phase(self) -> bool:
        return self.call.kernel.warp_function is not None

    @property
    def parts(self) -> int:
        """How many parts warps share, of one that may be a phase."""
        function = self.call.kernel.warp_function
        assert function is not None
        return function.parts(*self.call.arguments(self.types))

    @property
    def part_time(self) -> float:
        """The time of one, in µs."""
        function = self.call.kernel.warp_function
        assert function is not None
        return function.time(*self.call.arguments(self.types))

    @property
    def weight(self) -> Weight:
        threads = np.prod((*self.launch.grid, *self.launch.block), dtype=np.int64)
        nbytes = sum([buffer.type.nbytes for buffer in (*self.arguments, *self.outputs)])
        return Weight(int(threads), nbytes)

    @property
    def name(self) -> str:
        return self.call.kernel.name

    @property
    def title(self) -> str:
        return f"custom kernel {self.name}"

    @property
    def purpose(self) -> str:
        return self.call.kernel.purpose

    @property
    def text(self) -> str:
        launch = self.launch
        extents = [f"{_extents(launch.grid)} blocks of {_extents(launch.block)} threads"]
        if launch.cluster is not None:
            extents.append(f"clusters of {_extents(launch.cluster)}")
        if launch.shared_bytes:
            extents.append(f"{launch.shared_bytes} shared bytes")
        if launch.cooperative:
            extents.append("cooperative")
        outputs = ", ".join(map(str, self.outputs))
        inputs = ", ".join(map(str, self.arguments))
        return f"{self.title}: {outputs} = {self.call}({inputs}) in {', '.join(extents)}"

    @property
    def code(self) -> CudaText | None:
        """The text that it is compiled from; None of a compiled kernel."""
        code = self.call.kernel.code
        return code if isinstance(code, CudaText) else None

    @property
    def compiled(self) -> Any:
        """The compiled kernel, where there is no text."""
        code = self.call.kernel.code
        assert isinstance(code, CompiledKernel)
        return code.kernel

    @property
    def parameters(self) -> tuple[Buffer | Scalar, ...]:
        """What the kernel gets: pointers to buffers, and values."""
        given = self.call.arguments(self.arguments, self.call.scalars)
        aliases = self.call.kernel.aliases
        return *given, *[b for number, b in enumerate(self.outputs) if number not in aliases]

    @property
    def operands(self) -> tuple[StridedArray, ...]:
        inputs = zip(self.arguments, self.types, strict=True)
        arrays = [StridedArray(b, 0, t.shape, row_major_strides(t.shape)) for b, t in inputs]
        return *arrays, *map(StridedArray.whole, self.outputs)

    @property
    def run_host(self) -> Callable[..., None]:
        return self.call.writer(len(self.arguments))


def _extents(extents: tuple[int, ...]) -> str:
    """Extents without trailing ones: ``"4x2"``."""
    shown = list(extents)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return "x".join(map(str, shown))
