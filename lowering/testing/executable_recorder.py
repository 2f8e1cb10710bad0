"""Executables: their updates and launches are logged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from lowering.errors import ClosedGraphError, RefusedGraphError
from lowering.testing.memory_recorder import MemoryRecorder
from lowering.testing.recorded_objects import RecordedExecutable, RecordedGraph, RecordedNode
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.generated.dataclass import dataclass


@dataclass(eq=False, repr=False)
class ExecutableRecorder(MemoryRecorder):
    """The calls that instantiate graphs, update executables and launch them."""

    live_executables: ConcurrentWeakSet[RecordedExecutable] = field(
        default_factory=ConcurrentWeakSet, init=False
    )

    def instantiate(self, graph: RecordedGraph, *, hosts: bool = False) -> RecordedExecutable:
        self._log("instantiate")
        executable = RecordedExecutable(graph)
        self.live_executables.add(executable)
        return executable

    def instantiate_given(
        self,
        graph: RecordedGraph,
        *,
        upload_stream: int | None = None,
        use_node_priority: bool = False,
    ) -> RecordedExecutable:
        """The same, with the options in the log: the graph holds what it keeps alive."""
        if upload_stream is not None or use_node_priority:
            self._log("instantiate_options", upload_stream, use_node_priority)
        return self.instantiate(graph)

    def set_enabled(
        self, executable: RecordedExecutable, node: RecordedNode, enabled: bool
    ) -> None:
        """Logged; as the driver, for nodes of these kinds that are in no body."""
        self._log("set_enabled", node.name, enabled)
        if executable.closed:
            raise ClosedGraphError
        if node not in executable.source.nodes or node.kind not in ("kernel", "copy"):
            raise RuntimeError(f"{node.kind} node {node.name} cannot be switched")
        (executable.disabled.discard if enabled else executable.disabled.add)(node)

    def is_enabled(self, executable: RecordedExecutable, node: RecordedNode) -> bool:
        self._log("is_enabled", node.name)
        return node not in executable.disabled

    def update_whole(self, executable: RecordedExecutable, graph: RecordedGraph) -> None:
        """Logged; the executable becomes one of the graph, if that has the same nodes."""
        if executable.closed:
            raise ClosedGraphError
        self._log("update_whole")
        if len(executable.graph.nodes) != len(graph.nodes):
            raise RefusedGraphError("the graphs have other nodes or edges")
        for old, new in zip(executable.graph.walk(), graph.walk(), strict=False):
            if old.kind != new.kind:
                raise RefusedGraphError("the node was of another type", new)
            if len(old.dependencies) != len(new.dependencies):
                raise RefusedGraphError("the graphs have other nodes or edges", new)
        executable.become(graph)

    def updater(self, executable: RecordedExecutable, kernel: RecordedNode) -> Callable[[], None]:
        return lambda: self._update(executable, kernel)

    def _update(self, executable: RecordedExecutable, kernel: RecordedNode) -> None:
        """Logged with the parameter values."""
        if executable.closed:
            raise ClosedGraphError
        kernel.read_shared()
        self._log("update_kernel", kernel.name, *kernel.values)
        executable.values[kernel] = tuple(kernel.values)

    def upload(self, executable: RecordedExecutable) -> None:
        if executable.closed:
            raise ClosedGraphError
        self._log("upload")

    def launcher(self, executable: RecordedExecutable) -> Callable[[], None]:
        return lambda: self._launch(executable)

    def _launch(self, executable: RecordedExecutable) -> None:
        """Logged."""
        if executable.closed:
            raise ClosedGraphError
        self._log("launch")
        allocated, kept = executable.graph.allocated, self._kept_for_graphs
        if allocated > kept.get(self.stream, 0):
            kept[self.stream] = allocated
            if self.memory_info()[0] < 0:
                raise MemoryError("the launch found no memory, and took all that there is")

    def close(self, executable: RecordedExecutable) -> None:
        self._log("close")
        executable.close()
