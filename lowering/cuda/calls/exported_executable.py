"""Executables of exported graphs: launched by the user, and updated as a whole."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from lowering.cuda.device import OpenDevice
from lowering.cuda.graph.node_names import NodeNames
from lowering.errors import ClosedGraphError, RefusedGraphError
from tracegraph.errors import ClosedError, InstantiationError, NotInstantiatedError
from tracegraph.staging.exported import ExportedGraph, UpdateResult
from tracegraph.streams import current_stream

_ALONE = "a graph with loops, branches or allocations has one executable at a time"


class GivenGraph:
    """A graph that was given away, its nodes by name, and the executables made of it here.

    A `single` one has nodes that allow one executable at a time.
    """

    def __init__(
        self, graph: Any, device: OpenDevice, name: str, names: NodeNames, single: bool
    ) -> None:
        self.graph, self.device, self.name = graph, device, name
        self.names, self.single = names, single
        self._executables: WeakSet[ExportedExecutable] = WeakSet()

    def instantiate(self) -> ExportedExecutable:
        """As `ExportedGraph.instantiate`."""
        self.device.driver.activate()
        self.device.timeline.settle_loops()  # instantiating may wait in the driver
        try:
            made = self.device.driver.instantiate_given(self.graph)
        except RefusedGraphError as refused:
            node = self.names.of(refused.node)
            why = f"{refused.reason}; {_ALONE}" if self.single else refused.reason
            raise InstantiationError(self.name, "" if node is None else str(node), why) from refused
        executable = ExportedExecutable(made, self.device, self.name)
        self._executables.add(executable)
        return executable

    def update(self, other: ExportedGraph, executable: Any) -> UpdateResult:
        """As `ExportedGraph.update`."""
        if executable is not None:
            return _update(executable, other, self.device)
        living = [each for each in self._executables if not each.closed]
        if not living:
            raise NotInstantiatedError(self.name)
        results = [each.update(other) for each in living]
        return next((result for result in results if not result.ok), results[0])


class ExportedExecutable:
    """An executable of an exported graph, made by `ExportedGraph.instantiate`.

    It owns all that it points to, also if the exported graph is gone. `handle` is the
    ``CUgraphExec``. One launch may be in flight at a time.
    """

    def __init__(self, executable: Any, device: OpenDevice, name: str) -> None:
        self._executable, self._device, self._name = executable, device, name

    @property
    def handle(self) -> Any:
        """The driver's handle; None once it is closed."""
        return None if self.closed else self._executable.handle

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._executable is None

    def launch(self) -> None:
        """Launch on the current stream: that of a `tracegraph.stream` block, or the device's own.

        Raises:
            ClosedError: it was closed.
        """
        chosen = current_stream()
        streams = self._device.streams
        state = self._device.default_stream if chosen is None else streams.of(chosen)
        self._device.driver.activate()
        self._with_handle(lambda made: state.driver.launcher(made)())

    def upload(self) -> None:
        """Bring it to the device, in the order of the device's own stream.

        Raises:
            ClosedError: it was closed.
        """
        self._device.driver.activate()
        self._with_handle(self._device.driver.upload)

    def update(self, other: ExportedGraph) -> UpdateResult:
        """As `ExportedGraph.update`, of this executable.

        Raises:
            ClosedError: it was closed.
        """
        found: UpdateResult = self._with_handle(lambda made: _update(made, other, self._device))
        return found

    def close(self) -> None:
        """Free it, once no launch of it is in flight; a second close does nothing."""
        executable, self._executable = self._executable, None
        if executable is not None:
            self._device.driver.activate()
            self._device.driver.close(executable)

    def _with_handle(self, act: Any) -> Any:
        if self._executable is None:
            raise ClosedError(self._name)
        try:
            return act(self._executable)
        except ClosedGraphError:
            raise ClosedError(self._name) from None

    def __repr__(self) -> str:
        return f"<ExportedExecutable of {self._name}{', closed' if self.closed else ''}>"


def _update(executable: Any, other: ExportedGraph, device: OpenDevice) -> UpdateResult:
    given = other.given if isinstance(other, ExportedGraph) else None
    if not isinstance(given, GivenGraph):
        raise TypeError(
            f"update takes another exported graph, got {type(other).__qualname__}; export one by "
            "compiled.export_graph(*args)"
        )
    if given.device is not device:
        raise ValueError(
            f"an executable on {device.name} cannot be updated by a graph of {given.device.name}"
        )
    device.driver.activate()
    try:
        device.driver.update_whole(executable, given.graph)
    except RefusedGraphError as refused:
        node = given.names.of(refused.node)
        return UpdateResult(False, refused.reason, _text(node), "" if node is None else node.lines)
    return UpdateResult(True)


def _text(node: Any) -> str:
    return "" if node is None else f"the {node.kind} node {node.name}"
