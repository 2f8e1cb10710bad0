"""GraphExecutable: what runs as one launch of one CUDA graph, on any stream of a device."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakMethod

from lowering.cuda.calls.addressed_call import AddressedCall, addressed_call
from lowering.cuda.calls.arguments import check_type
from lowering.cuda.calls.fast_call import (
    StreamCall,
    closed_call,
    default_stream_call,
    first_call,
    other_stream_call,
)
from lowering.cuda.calls.stream_graph import StreamGraph
from lowering.cuda.graph.built_graph import Buildable
from lowering.cuda.memory.pool import CudaBuffer, interned
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.stream_state import StreamState
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.owners import SlotReport
from tracegraph.arrays.borrowed_memory import BorrowedMemory
from tracegraph.concurrency.locks import held, held_if_free
from tracegraph.current_stream import Chosen, current_stream
from tracegraph.errors import CapturingStreamError, ClosedError
from tracegraph.ir.record import replace
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.calls.last_call import LastRun
from tracegraph.staging.graph_view import GraphView

_TYPED = frozenset({CudaBuffer, BorrowedMemory})
_COUNTS = ("launches", "updates", "bytes_copied")


class GraphExecutable:
    """The graphs of one program on one device: one for each stream that has called it.

    The graph for the default stream is made here, the others at the first call on their streams,
    which waits for loops in flight as compiling does. They share code and constants. Calls on
    several streams run at the same time, and wait only for the arguments that they read.
    """

    def __init__(self, device: OpenDevice) -> None:
        device.driver.activate()
        self._device = device
        with self._beside_capture():
            self._make()
        device.heap.enter(self)

    def _make(self) -> None:
        """Make what graphs are built from, and let `_open_first` build one."""
        raise NotImplementedError

    def _open_first(self, compiled: Buildable) -> None:
        """Build the graph for the default stream."""
        device = self._device
        self._name = compiled.name
        self._wanted = [interned(buffer.type.strong()) for buffer in compiled.inputs]
        self._opening = threading.Lock()
        self._past: Counter[str] = Counter()  # of graphs whose streams were left
        self._captured = 0.0  # the time of the last captured call
        self._built_from: Buildable | None = compiled  # None once it is closed
        self._code_bytes, self._parameter_bytes = compiled.code_bytes, compiled.parameter_bytes
        numbers = {buffer: number for number, buffer in enumerate(compiled.inputs)}
        self._copied_inputs = {numbers[b] for b in compiled.copied if b in numbers}
        self._copied_bytes = sum(buffer.type.nbytes for buffer in compiled.copied)
        self._per_launch = compiled.per_launch
        self._default_graph = _stream_graph(compiled, device.default_stream)
        self._needed = self._default_graph.needed
        self._graphs = {device.default_stream: self._default_graph}
        self._calls: dict[StreamState, StreamCall] = {
            device.default_stream: self._default_graph.launch
        }
        self.launch = first_call(WeakMethod(self._launch), WeakMethod(self._write_launch))
        """The same as a call, whose arguments are known to have the right number and types."""

    def __call__(
        self, arguments: Sequence[Any], donated: Donated | None = None
    ) -> list[CudaBuffer]:
        """Run once, and return fresh results in order, or donated ones, without waiting for them.

        Raises:
            TypeError: the number of arguments, or a dtype or shape, is not the Plan's.
            ClosedError: the executable is closed.
            OutOfMemoryError: the device has not enough memory for the results.
            ValueError: the current stream, or an argument, is on another device.
            CapturingStreamError: other code captures the current stream, and the call cannot
                become a part of its graph; or it captures the stream of an argument.
        """
        self._check(arguments)
        return self.launch(arguments, donated)

    def launch_into(self, arguments: Sequence[Any], results: Sequence[int]) -> None:
        """Run once, with results in other memory, which the current stream may write to then.

        Args:
            arguments: as of a call. None is donated.
            results: the addresses of contiguous arrays, with the alignment of new memory.

        Raises:
            Exception: as `__call__`.
        """
        stream = self._stream(current_stream())
        while True:
            if stream not in self._graphs:
                self._open(stream)  # raises if it is closed
            graph = self._graphs.get(stream)
            try:
                if graph is not None:
                    graph.launch_into(arguments, results)
                    return
            except ClosedError:
                if self.closed or self._graphs.get(stream) is graph:
                    raise
            # The stream was left just before, and its graph is gone.

    def addressed(self) -> AddressedCall | None:
        """The call by addresses alone, on the default stream; None if there is none."""
        return addressed_call(self._default_graph)

    def upload(self) -> None:
        """As `Executable.upload`: the graph for the current stream is made and uploaded.

        Raises:
            ClosedError: the executable is closed.
            OutOfMemoryError: the device has not enough memory for another graph.
            CapturingStreamError: other code captures the current stream.
        """
        chosen = current_stream()
        if chosen is not None and self._device.driver.is_capturing(chosen.handle):
            why = "an upload is no part of a graph; warm the function before the capture"
            raise CapturingStreamError(self._name, why)
        stream = self._stream(chosen)
        self._open(stream)
        graph = self._graphs.get(stream)
        if graph is None:
            raise ClosedError(self._name)
        graph.upload()

    def view(self) -> GraphView:
        """As `Executable.view`.

        Raises:
            NoGraphError: the host drives its loops.
            ClosedError: the executable is closed.
        """
        graph = self._graphs.get(self._stream(current_stream()), self._default_graph)
        return graph.view(self._device.name)

    def _check(self, arguments: Sequence[Any]) -> None:
        if len(arguments) != len(self._wanted):
            raise TypeError(f"{self._name} takes {len(self._wanted)} arrays, got {len(arguments)}")
        for argument, wanted in zip(arguments, self._wanted, strict=True):
            if type(argument) in _TYPED and argument.type is not wanted:
                check_type(argument.type.dtype, argument.type.shape, wanted)

    def _launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        chosen = current_stream()
        if chosen is not None and self._device.driver.is_capturing(chosen.handle):
            return self._add_to_capture(chosen.handle, arguments)
        stream = self._stream(chosen)
        call = self._calls.get(stream) or self._open(stream)
        try:
            return call(arguments, donated)
        except ClosedError:
            if self.closed or self._calls.get(stream) is call:
                raise
        # The stream was left just before, and its graph is gone.
        return self._launch(arguments, donated)

    def _write_launch(self) -> StreamCall:
        """Write what `launch` is from now on."""
        if self.closed:  # while it is being closed, `launch` may still be the first one
            return closed_call(self._name)
        self.launch = default_stream_call(self._default_graph, WeakMethod(self._launch))
        return self.launch

    def _stream(self, chosen: Chosen | None) -> StreamState:
        return self._device.default_stream if chosen is None else self._device.streams.of(chosen)

    def _add_to_capture(self, handle: int, arguments: Sequence[Any]) -> list[CudaBuffer]:
        """Become a part of the graph that other code captures; results that its launches write."""
        raise NotImplementedError

    def _beside_capture(self) -> AbstractContextManager[None]:
        """What lets a capture of the current stream go on while code is loaded."""
        chosen, driver = current_stream(), self._device.driver
        if chosen is not None and driver.is_capturing(chosen.handle):
            return driver.beside_captures()
        return nullcontext()

    def _open(self, stream: StreamState) -> StreamCall:
        """The call of a graph for a stream that has none."""
        self._device.driver.activate()
        with self._opening:
            if stream not in self._calls:
                if self._built_from is None:
                    raise ClosedError(self._name)
                graph = self._graphs[stream] = _stream_graph(self._built_from, stream)
                self._calls[stream] = other_stream_call(graph)
            return self._calls[stream]

    def leave(self, stream: StreamState) -> bool:
        """Drop the graph for a stream that is idle and not used again; whether it is gone.

        It stays if the executable is in use: nothing is waited for.
        """
        graph = self._graphs.get(stream)
        if graph is None:
            return True
        with held_if_free([self._opening, graph.lock]) as idle:
            if idle:
                self._past.update(_counts(graph))
                del self._graphs[stream]
                self._calls.pop(stream, None)
                graph.close()
            return idle

    def stats(self) -> Mapping[str, int]:
        """Launches, node updates and bytes copied since compilation, those in graphs included."""
        counts = Counter(self._past)
        for graph in list(self._graphs.values()):
            counts.update(_counts(graph))
        counts["bytes_copied"] += counts["launches"] * self._copied_bytes
        return {name: counts[name] for name in _COUNTS}

    def timings(self) -> Mapping[str, float]:
        """Milliseconds of the timed sections in the last launch on the current stream."""
        graph = self._graphs.get(self._stream(current_stream()))
        return {} if graph is None else graph.timings()

    def last_run(self, since: float) -> LastRun:
        """As `Executable.last_run`: on the stream whose graph was used since then."""
        if self.closed:
            return LastRun()
        graphs = list(self._graphs.values())
        graph = max(graphs, key=lambda graph: graph.used)
        if graph.used < since:
            graph = self._default_graph
        found = graph.last_run(since, self._copied_inputs)
        return replace(found, captured=True) if self._captured >= since else found

    def memory(self) -> Mapping[str, int]:
        """Bytes of scratch and constants, as one stream needs them, and of all its graphs.

        Those are of code and node parameters; what the driver adds is not known.
        """
        replicas = sum(len(i.replicas) for i in list(self._graphs.values()))
        graph = self._code_bytes + self._parameter_bytes * replicas
        return {**self._needed, "graph": graph}

    @property
    def bytes_held(self) -> int:
        """As `Executable.bytes_held`."""
        if self.closed:
            return 0
        return self._needed["constants"] + (0 if self._per_launch else self._needed["scratch"])

    def pieces(self) -> Mapping[Hashable, int]:
        """Each piece of memory that it holds: constants, arenas that it may share, graphs."""
        if self.closed:
            return {}
        memory = [piece for i in list(self._graphs.values()) for piece in i.memory]
        found: dict[Hashable, int] = {(self._device.name, m.pointer): m.nbytes for m in memory}
        return {**found, (self._device.name, id(self)): self.memory()["graph"]}

    @property
    def timeline(self) -> Timeline:
        """Launches on the default stream of its device."""
        return self._device.timeline

    @property
    def slots(self) -> SlotReport:
        """What each node of the graph for the default stream keeps alive."""
        return self._default_graph.slots

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._built_from is None

    def close(self) -> None:
        """Free the graphs and their memory once they have finished; a later call raises.

        A second close does nothing.
        """
        with self._opening, held([graph.lock for graph in self._graphs.values()]):
            self._close()

    def close_idle(self) -> bool:
        """Close, unless a call is being made; whether it is closed."""
        with held_if_free([self._opening]) as free:
            if not free:
                return False
            with held_if_free([graph.lock for graph in self._graphs.values()]) as idle:
                if idle:
                    self._close()
                return idle

    def _close(self) -> None:
        for graph in self._graphs.values():
            graph.settle()
        self._built_from = None
        self._calls.clear()
        self.launch = closed_call(self._name)
        for graph in self._graphs.values():
            graph.close()


def _stream_graph(compiled: Buildable, stream: StreamState) -> StreamGraph:
    """A graph for a stream. If the driver lacks memory for it, idle executables are closed."""
    make = partial(StreamGraph, compiled, stream)
    return compiled.device.heap.relieved(make, what=f"the graph of {compiled.name}")


def _counts(graph: StreamGraph) -> dict[str, int]:
    return {name: getattr(graph, name) for name in _COUNTS}
