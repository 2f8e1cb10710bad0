"""CapturedCall: a user's function that enqueues the work of another library on a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from lowering.plan.calls.library_call import IfSkipped, LibraryCall, StridedArray
from lowering.plan.nests.buffer_fields import Reads, Writes
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.record import record


@record
class CapturedCall(LibraryCall):
    """The call of a function of `tracegraph.capture`; all arrays are contiguous.

    On values that are not used it might fail, so it never runs for nothing.
    """

    noun: ClassVar[str] = "a captured call"
    if_skipped: ClassVar[IfSkipped] = "stays"

    call: KernelCall
    arguments: Reads[tuple[StridedArray, ...]]
    results: Writes[tuple[StridedArray, ...]]

    @property
    def owners(self) -> Mapping[str, Any]:
        code: Any = self.call.kernel.code
        return {f"function {self.call.kernel.where}": code.function}

    @property
    def name(self) -> str:
        return self.call.kernel.name

    @property
    def title(self) -> str:
        return f"captured call {self.name}"

    @property
    def text(self) -> str:
        inputs, outputs = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"{self.title}: {outputs} = {self.name}({inputs})"

    @property
    def run_host(self) -> Callable[..., None]:
        return self.call.writer(len(self.arguments))
