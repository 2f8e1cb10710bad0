"""Executables of exported graphs: launched by the user, and updated as a whole."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakSet

from lowering.cuda.calls.child_graphs import FAILED_CAPTURE
from lowering.cuda.calls.exported_launch import ExportedOperands, launch_in_order, unordered
from lowering.cuda.graph.node_names import NodeNames, described
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.owned_stream import require_priority
from lowering.errors import ClosedGraphError, RefusedGraphError
from tracegraph.concurrency.locks import holding
from tracegraph.current_stream import Chosen, chosen_stream, current_stream
from tracegraph.errors import (
    CapturingStreamError,
    ClosedError,
    InstantiationError,
    NodeError,
    NotInstantiatedError,
)
from tracegraph.staging.exported import ExportedGraph, ExportedNode, UpdateResult

_T = TypeVar("_T")

_ALONE = "a graph with loops, branches or allocations has one executable at a time"


class GivenGraph:
    """A graph that was given away, its nodes by name, and the executables made of it here.

    A `single` one has nodes that allow one executable at a time. `operands` are what its launches
    are ordered by. `no_child` says why it cannot be a child graph, if it cannot.
    """

    def __init__(
        self,
        graph: Any,
        device: OpenDevice,
        name: str,
        names: NodeNames,
        bodies: Mapping[Hashable, Sequence[Any]],
        single: bool,
        operands: ExportedOperands,
        no_child: str | None,
    ) -> None:
        self.graph, self.device, self.name = graph, device, name
        self.names, self.bodies, self.single = names, bodies, single
        self.operands, self.no_child = operands, no_child
        self._executables: WeakSet[ExportedExecutable] = WeakSet()

    def nodes(self) -> list[ExportedNode]:
        """As `ExportedGraph.nodes`."""
        self.device.driver.activate()
        found = self.device.driver.view(self.graph, self.bodies)
        programmatic = {end for edge in found.programmatic for end in edge}
        return [
            ExportedNode(
                **described(number, view, self.names),
                node=view.node,
                programmatic=number in programmatic,
                given=self,
            )
            for number, view in enumerate(found.nodes)
        ]

    def priority(self, node: ExportedNode) -> int:
        """As `ExportedNode.priority`."""
        _require_kernel(node)
        return self.device.driver.priority(node.node)

    def set_priority(self, node: ExportedNode, priority: int) -> None:
        """As `ExportedNode.set_priority`."""
        _require_kernel(node)
        self.device.driver.activate()
        require_priority(priority, self.device.driver)
        self.device.driver.set_priority(node.node, priority)

    def instantiate(
        self, upload_stream: Any = None, use_node_priority: bool = False
    ) -> ExportedExecutable:
        """As `ExportedGraph.instantiate`."""
        stream: int | None = None
        if upload_stream is not None:
            chosen = chosen_stream(upload_stream)
            stream = self.device.driver.stream if chosen is None else chosen.handle
        self.device.driver.activate()
        self.device.timeline.settle_loops()  # instantiating may wait in the driver
        try:
            made = self.device.driver.instantiate_given(
                self.graph, upload_stream=stream, use_node_priority=use_node_priority
            )
        except RefusedGraphError as refused:
            node = self.names.of(refused.node)
            why = f"{refused.reason}; {_ALONE}" if self.single else refused.reason
            raise InstantiationError(self.name, "" if node is None else str(node), why) from refused
        executable = ExportedExecutable(made, self)
        self._executables.add(executable)
        return executable

    def update(self, other: ExportedGraph, executable: Any) -> UpdateResult:
        """As `ExportedGraph.update`."""
        if isinstance(executable, ExportedExecutable):
            return executable.update(other)
        if executable is not None:
            return _update(executable, _given(other, self.device))
        living = [each for each in self._executables if not each.closed]
        if not living:
            raise NotInstantiatedError(self.name)
        results = [each.update(other) for each in living]
        return next((result for result in results if not result.ok), results[0])


class ExportedExecutable:
    """An executable of an exported graph, made by `ExportedGraph.instantiate`.

    It owns all that it points to, also if the exported graph is gone. `handle` is the
    ``CUgraphExec``. Its launches are ordered with all calls, as one call is with others. Threads
    may use it concurrently.
    """

    def __init__(self, executable: Any, given: GivenGraph) -> None:
        self._executable, self._device, self._name = executable, given.device, given.name
        self._given: GivenGraph | None = given  # the one that it was updated to last
        self._holding = holding(threading.Lock())
        self._source = weakref.ref(given)  # the one whose nodes are its own
        self._disabled: set[int] = set()
        self._default = given.device.default_stream
        self._start = given.device.driver.launcher(executable)  # on that stream

    @property
    def handle(self) -> Any:
        """The driver's handle; None once it is closed."""
        return None if self.closed else self._executable.handle

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._executable is None

    def launch(self, stream: Any = None) -> None:
        """Launch on a stream, as `tracegraph.stream` takes them.

        Without one, on the current stream: that of a `tracegraph.stream` block, or the device's
        own. Arguments are waited for by the device, and results belong to the stream, as if a call
        on it had returned them. On a stream that other code captures, it becomes a child graph.

        Raises:
            ClosedError: it was closed.
            CapturingStreamError: other code captures the stream, and the graph can be no child.
            StoppedError: what computes an argument was stopped.
            TypeError, ValueError: it is not a stream, or one of another device.
        """
        chosen = _chosen(stream)
        if chosen is not None and self._device.driver.is_capturing(chosen.handle):
            self._device.driver.activate()
            self._with_given(lambda made, given: self._add_to_capture(given, chosen.handle))
            return
        state = self._default if chosen is None else self._device.streams.of(chosen)
        state.driver.activate()
        with self._holding:
            given = self._given
            if given is None:
                raise ClosedError(self._name)
            own = state is self._default
            start = self._start if own else state.driver.launcher(self._executable)
            launch_in_order(start, given.operands, state)

    def upload(self, stream: Any = None) -> None:
        """Bring it to the device in the order of a stream, so that its first launch need not.

        Args:
            stream: as `launch` takes it.

        Raises:
            ClosedError: it was closed.
            CapturingStreamError: other code captures the stream.
            TypeError, ValueError: it is not a stream, or one of another device.
        """
        chosen = _chosen(stream)
        if chosen is not None and self._device.driver.is_capturing(chosen.handle):
            why = "an upload is no part of a graph; upload before the capture"
            raise CapturingStreamError(self._name, why)
        state = self._default if chosen is None else self._device.streams.of(chosen)
        driver = state.driver
        driver.activate()
        self._with_given(lambda made, given: driver.upload(made))

    def enable(self, node: ExportedNode) -> None:
        """Let later launches run a node again that `disable` has left out.

        Raises:
            ClosedError: it was closed.
            NodeError: CUDA cannot leave the node out, or it is one of another graph.
        """
        self._switch(node, True)

    def disable(self, node: ExportedNode) -> None:
        """Leave out a kernel, copy or fill in later launches: what it writes stays as it was.

        What follows it still waits for what comes before it. Launches in flight go on as they are.

        Args:
            node: one of the `ExportedGraph.nodes` of the graph that this was instantiated from.

        Raises:
            ClosedError: it was closed.
            NodeError: CUDA cannot leave the node out, or it is one of another graph.
        """
        self._switch(node, False)

    def is_enabled(self, node: ExportedNode) -> bool:
        """Whether launches run a node.

        Raises:
            ClosedError: it was closed.
            NodeError: it is a node of another graph.
        """
        self._require_own(node)
        driver = self._device.driver
        driver.activate()
        return self._with_given(
            lambda made, given: bool(node.obstacle) or driver.is_enabled(made, node.node)
        )

    def _switch(self, node: ExportedNode, enabled: bool) -> None:
        self._require_own(node)
        if node.obstacle:
            what = f"cannot be {'enabled' if enabled else 'disabled'}"
            raise NodeError(repr(node), what, node.obstacle)
        driver = self._device.driver
        driver.activate()

        def switch(made: Any, given: GivenGraph) -> None:
            driver.set_enabled(made, node.node, enabled)
            (self._disabled.discard if enabled else self._disabled.add)(node.number)

        self._with_given(switch)

    def _require_own(self, node: ExportedNode) -> None:
        if not isinstance(node, ExportedNode):
            raise TypeError(
                f"a node is one of the exported graph's nodes, got {type(node).__qualname__}; "
                "choose one of exported.nodes"
            )
        if node.given is not self._source():
            raise NodeError(
                repr(node),
                f"is none of the executable of {self._name!r}",
                "nodes are those of the exported graph whose instantiate() has made it",
            )

    def update(self, other: ExportedGraph) -> UpdateResult:
        """As `ExportedGraph.update`, of this executable.

        Raises:
            ClosedError: it was closed.
        """
        new = _given(other, self._device)

        def update(made: Any, given: GivenGraph) -> UpdateResult:
            result = _update(made, new)
            if result.ok:
                self._given = new
            return result

        return self._with_given(update)

    def close(self) -> None:
        """Free it, once its loops that are in flight have ended; a second close does nothing.

        Raises:
            TimeLimitError: the time of a `time_limit` was up meanwhile.
        """
        with self._holding:
            if self._executable is None or self._given is None:
                return
            operands = self._given.operands
            last = operands.scratch.timeline
            self._device.driver.activate()
            if operands.loops and last is not None:
                last.settle()
            executable, self._executable, self._given = self._executable, None, None
            self._device.driver.close(executable)

    def _add_to_capture(self, given: GivenGraph, handle: int) -> None:
        """Make the graph a child of what other code captures on a stream.

        Launches of that are not ordered behind what computes the arguments, which is waited for
        now.
        """
        driver, why = given.device.driver, given.no_child
        if self._disabled:
            why = "nodes of it are disabled, which a child graph would run; enable them"
        if not driver.takes_nodes(handle):
            why = FAILED_CAPTURE
        if why is not None:
            raise CapturingStreamError(given.name, why)
        with driver.beside_captures():
            for timeline in unordered(given.operands):
                timeline.settle()
        given.operands.require_arguments()
        driver.add_to_capture(handle, given.graph)

    def _with_given(self, act: Callable[[Any, GivenGraph], _T]) -> _T:
        with self._holding:
            if self._executable is None or self._given is None:
                raise ClosedError(self._name)
            try:
                return act(self._executable, self._given)
            except ClosedGraphError:
                raise ClosedError(self._name) from None

    def __repr__(self) -> str:
        return f"<ExportedExecutable of {self._name}{', closed' if self.closed else ''}>"


def _chosen(stream: Any) -> Chosen | None:
    return current_stream() if stream is None else chosen_stream(stream)


def _given(other: ExportedGraph, device: OpenDevice) -> GivenGraph:
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
    return given


def _update(executable: Any, given: GivenGraph) -> UpdateResult:
    given.device.driver.activate()
    try:
        given.device.driver.update_whole(executable, given.graph)
    except RefusedGraphError as refused:
        node = given.names.of(refused.node)
        return UpdateResult(False, refused.reason, _text(node), "" if node is None else node.lines)
    return UpdateResult(True)


def _require_kernel(node: ExportedNode) -> None:
    if node.kind != "kernel":
        raise NodeError(repr(node), "has no priority", "CUDA runs kernels alone by priorities")


def _text(node: Any) -> str:
    return "" if node is None else f"the {node.kind} node {node.name}"
