"""RecipeExecutable: a recipe that runs as one launch of one CUDA graph, on any stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from lowering.cuda.calls.graph_executable import GraphExecutable
from lowering.cuda.effects.callback_thread import require_not_awaited
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.recipe.misfit import MisfitError, require_fitting
from lowering.cuda.recipe.recipe import Recipe
from lowering.cuda.recipe.replay import LoadedRecipe
from lowering.errors import RefusedGraphError, UnrepeatableCaptureError
from tracegraph.errors import ClosedError, InstantiationError
from tracegraph.staging.exported import ExportedGraph


class RecipeExecutable(GraphExecutable):
    """The graphs of one recipe on one device.

    What only a Plan can tell or do is done by one that `lower` makes, once it is asked for: tables
    of its nodes, graphs that are exported, calls on streams that other code captures.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: Callable[[str], bytes],
        device: OpenDevice,
        lower: Callable[[], Any],
    ) -> None:
        """`data` gives cubins and constants by name, and `lower` the program as it is lowered.

        Raises:
            MisfitError: the recipe is not for the device, or for what is installed.
            OutOfMemoryError: the device has not enough memory.
            CallbackDeadlockError: a kernel waits for the callback that this thread runs.
        """
        self._recipe, self._data, self._lower = recipe, data, lower
        self._compiled: Any = None
        self._compiling = threading.Lock()
        super().__init__(device)

    def _make(self) -> None:
        require_not_awaited("to load code may wait for what runs")
        self._device.timeline.settle_loops()
        require_fitting(self._recipe, self._device, self._data)
        try:
            self._open_first(LoadedRecipe.load(self._recipe, self._data, self._device))
        except UnrepeatableCaptureError as error:
            raise MisfitError(f"a library makes other kernels here: {error}") from error
        except (InstantiationError, RefusedGraphError) as error:
            raise MisfitError(str(error)) from error

    @property
    def _other(self) -> Any:
        """The executable of the program.

        Raises:
            ClosedError: this one is closed.
            CallbackDeadlockError: a kernel waits for the callback that this thread runs.
        """
        require_not_awaited("to compile may wait for what runs")
        with self._compiling:
            if self.closed:
                raise ClosedError(self._name)
            if self._compiled is None:
                self._compiled = self._lower().compile().executable
            return self._compiled

    @property
    def plan(self) -> Any:
        """The Plan of the program."""
        return self._lower().plan

    def export_graph(
        self, arguments: Sequence[Any], *, programmatic_edges: bool = True
    ) -> ExportedGraph:
        """As `Executable.export_graph`."""
        found: ExportedGraph = self._other.export_graph(
            arguments, programmatic_edges=programmatic_edges
        )
        return found

    def _add_to_capture(self, handle: int, arguments: Sequence[Any]) -> list[CudaBuffer]:
        with self._device.driver.beside_captures():
            other = self._other
        found: list[CudaBuffer] = other(arguments)
        return found

    def _close(self) -> None:
        super()._close()
        self._compiled = None  # it is closed by itself, where nothing else needs it
