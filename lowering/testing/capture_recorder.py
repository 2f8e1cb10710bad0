"""Captures: calls of libraries become nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from lowering.cuda.interface import Library
from lowering.errors import NestedCaptureError, UnrepeatableCaptureError
from lowering.testing.call_log import CallLog, DriverCall
from lowering.testing.recorded_objects import RecordedGraph, RecordedLibrary, RecordedNode
from tracegraph.generated.dataclass import dataclass


@dataclass(eq=False, repr=False)
class CaptureRecorder(CallLog):
    """The calls that capture what libraries do.

    Args:
        library_kinds: the kinds of nodes that the capture of each call yields; one is recorded.
    """

    library_kinds: Sequence[str] = ("kernel",)
    open_captures: int = field(default=0, init=False)
    _captured: list[list[DriverCall]] = field(
        default_factory=list, init=False
    )  # on whichever stream
    _libraries: dict[Callable[[int], Library], RecordedLibrary] = field(
        default_factory=dict, init=False
    )

    def capture(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        issue: Callable[[], None],
    ) -> tuple[tuple[RecordedNode, ...], tuple[str, ...]]:
        """One node for each product that is issued."""
        captured = self._issued(issue)
        nodes = tuple(RecordedNode("library", str(c), tuple(dependencies)) for c in captured)
        graph.nodes.extend(nodes)
        return nodes, tuple(self.library_kinds) * max(len(nodes), 1)

    def capture_kernels(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        issue: Callable[[], None],
    ) -> tuple[RecordedNode, ...]:
        """A chain of nodes, whose values are what the library was given."""
        nodes: list[RecordedNode] = []
        for call in self._kernels(issue):
            before = tuple(nodes[-1:] or dependencies)
            node = RecordedNode("library", call.operation, before, values=list(call.detail))
            nodes.append(node)
        graph.nodes.extend(nodes)
        return tuple(nodes)

    def capture_aside(self, issue: Callable[[], None]) -> list[DriverCall]:
        """The calls that are issued, each a kernel."""
        return self._kernels(issue)

    def add_captured(
        self, graph: RecordedGraph, dependencies: Sequence[RecordedNode], kernel: DriverCall
    ) -> RecordedNode:
        """A node for the call."""
        self._log("add_captured", str(kernel))
        node = RecordedNode("library", str(kernel), tuple(dependencies))
        graph.nodes.append(node)
        return node

    def recapture(
        self, kernels: Sequence[RecordedNode], issue: Callable[[], None]
    ) -> list[tuple[int, ...]]:
        """What the library was given; it must be as many calls of the same names."""
        found = self._kernels(issue)
        if [call.operation for call in found] != [kernel.name for kernel in kernels]:
            raise UnrepeatableCaptureError("at other addresses it is other kernels")
        return [call.detail for call in found]

    def _kernels(self, issue: Callable[[], None]) -> list[DriverCall]:
        """The calls that are issued, each captured as one kernel."""
        found = self._issued(issue)
        if set(self.library_kinds) != {"kernel"}:
            raise UnrepeatableCaptureError(f"it is {', '.join(self.library_kinds)} nodes")
        return found

    def _issued(self, issue: Callable[[], None]) -> list[DriverCall]:
        """The calls of a library that a capture has."""
        if self.open_captures:
            raise NestedCaptureError
        self._log("begin_capture")
        self.open_captures += 1
        captured: list[DriverCall] = []
        self._captured.append(captured)
        try:
            issue()
        finally:
            self._captured.pop()
            self.open_captures -= 1
        self._log("end_capture")
        return captured

    def library(self, kind: Callable[[int], Library]) -> RecordedLibrary:
        """A handle that records the calls of any library."""
        if kind not in self._libraries:
            self._libraries[kind] = RecordedLibrary(kind, self._call_library)
        return self._libraries[kind]

    def _call_library(self, operation: str, detail: tuple[Any, ...]) -> None:
        """Captured, or logged as a warm-up."""
        self._log(operation, *detail)
        if self._captured and operation != "use_workspace":
            self._captured[-1].append(DriverCall(operation, detail))
