"""CudaExecutable: a Plan that runs as one launch of one CUDA graph, on any stream of a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lowering.cuda.calls.captured_launch import add_to_capture
from lowering.cuda.calls.export import export
from lowering.cuda.calls.graph_executable import GraphExecutable
from lowering.cuda.compilation.compiled_plan import CompiledPlan
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.open_devices import OpenDevice
from lowering.errors import UnrepeatableCaptureError
from lowering.plan.plan import Plan
from lowering.plan.target.features import override
from tracegraph.errors import ClosedError
from tracegraph.ir.record import replace
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.exported import ExportedGraph


class CudaExecutable(GraphExecutable):
    """The graphs of one Plan on one device.

    `plan` is the Plan as legalized for the device's `features`.
    """

    def __init__(self, plan: Plan, device: OpenDevice) -> None:
        self.plan = plan
        super().__init__(device)

    def _make(self) -> None:
        if not self._compiles():  # outside of the handler, which keeps what failed alive
            with override(library_updates=False):
                self._compile()

    def _compiles(self) -> bool:
        """Compile, unless the driver or a library captures calls otherwise at other addresses."""
        try:
            self._compile()
        except UnrepeatableCaptureError:
            return False
        return True

    def _compile(self) -> None:
        compiled = CompiledPlan.compile(self.plan, self._device)
        self.features = compiled.features
        self._open_first(compiled)
        kinds = self._default_graph.kinds
        self.plan = replace(compiled.plan, emitted=kinds) if kinds else compiled.plan

    @property
    def _compiled(self) -> CompiledPlan | None:
        """What graphs are built from; None once it is closed."""
        found = self._built_from
        assert found is None or isinstance(found, CompiledPlan)
        return found

    def export_graph(
        self, arguments: Sequence[Any], *, programmatic_edges: bool = True
    ) -> ExportedGraph:
        """As `Executable.export_graph`.

        Raises:
            ClosedError, TypeError, ValueError: as a call does.
            ExportError: launches report something, or are driven by the host.
            OutOfMemoryError: the device has not enough memory for scratch and results.
        """
        self._check(arguments)
        compiled = self._compiled
        if compiled is None:
            raise ClosedError(self.plan.name)
        code = replace(compiled.code, pdl=compiled.code.pdl and programmatic_edges)
        compiled = replace(compiled, code=code)
        return self._device.heap.relieved(
            partial(export, compiled, self._device.default_stream, arguments),
            what=f"an exported graph of {self.plan.name}",
        )

    def _add_to_capture(self, handle: int, arguments: Sequence[Any]) -> list[CudaBuffer]:
        """Become a part of the graph that other code captures; results that its launches write."""
        compiled = self._compiled
        if compiled is None:
            raise ClosedError(self.plan.name)
        self._device.driver.activate()
        self._captured = clock()
        with self._device.driver.beside_captures():
            return self._device.heap.relieved(
                partial(add_to_capture, compiled, self._device.default_stream, handle, arguments),
                what=f"a captured call of {self.plan.name}",
            )
