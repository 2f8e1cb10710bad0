"""Recording driver: the driver interface as a log.

It needs no GPU, and can fail at its n-th call. So tests see which nodes, edges and owners a graph
would have, and what a failure leaves behind.
"""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from math import prod
from typing import Any

from lowering.cuda.interface import Driver, Event, Launch, ThreadState
from lowering.cuda.libraries.capture_lock import CaptureLock
from lowering.testing.capture_recorder import CaptureRecorder
from lowering.testing.derived_calls import derived_from
from lowering.testing.executable_recorder import ExecutableRecorder
from lowering.testing.graph_recorder import GraphRecorder
from lowering.testing.recorded_objects import (
    RecordedEvent,
    RecordedGraph,
    RecordedNode,
    RecordedStream,
    RecordedThread,
    RecordedTimer,
)
from tracegraph.generated.dataclass import dataclass


@derived_from(Driver)
@dataclass(eq=False, repr=False)
class RecordingDriver(GraphRecorder, ExecutableRecorder, CaptureRecorder, Driver):
    """A driver that logs its calls: on its streams, and those of its parts.

    Calls that need no more than that are derived from the interface.

    While `busy` is set, no loop ends: events recorded meanwhile are passed when it is reset, by
    hand or because a stop flag is raised.

    `streams` has a driver for each stream, which share one log; each is busy by itself.
    `captured_streams` are the handles of those that other code captures, and `captures` their
    graphs. `relaxed` has the number of blocks of `beside_captures` that are open.
    """

    name: str = field(default="recording driver", init=False)
    arch: str = field(default="sm_90", init=False)
    cuda_version: tuple[int, int] = field(default=(13, 0), init=False)
    multiprocessors: int = field(default=132, init=False)
    follows_legacy: bool = field(default=True, init=False)
    capture_lock: CaptureLock = field(default_factory=CaptureLock, init=False)
    thread: ThreadState = field(default_factory=RecordedThread, init=False)
    owner: Any = field(default=None, init=False)
    streams: list[RecordingDriver] = field(init=False)
    captured_streams: set[int] = field(default_factory=set, init=False)
    captures: defaultdict[int, RecordedGraph] = field(
        default_factory=lambda: defaultdict(RecordedGraph), init=False
    )
    failed_captures: set[int] = field(default_factory=set, init=False)
    relaxed: list[int] = field(default_factory=lambda: [0], init=False)
    _busy: bool = field(default=False, init=False)
    _unwritten: list[tuple[int, int]] = field(default_factory=list, init=False)  # behind what runs
    _waits: list[RecordedEvent] = field(default_factory=list, init=False)
    _handles: Iterator[int] = field(default_factory=lambda: itertools.count(100), init=False)

    def __post_init__(self) -> None:
        self.streams = [self]

    # Streams and events

    def on(self, stream: int, owner: Any) -> RecordingDriver:
        """The same, with another stream in the log."""
        other = copy.copy(self)
        other.owner, other.follows_legacy = owner, False
        other.stream, other._busy, other._waits, other._unwritten = stream, False, [], []
        self.streams.append(other)
        return other

    @property
    def busy(self) -> bool:
        """Whether loops run on the stream."""
        return self._busy

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._busy = busy
        while self._unwritten and not busy:
            self._write(*self._unwritten.pop(0))

    def create_stream(self, priority: int | None = None) -> RecordedStream:
        self._log("create_stream", *(() if priority is None else (priority,)))
        return RecordedStream(next(self._handles), priority or 0)

    def wait(self, event: Event) -> None:
        """Logged with the position of the event."""
        assert isinstance(event, RecordedEvent), "events come from this driver"
        self._log("wait", event.position)
        self._waits = [*(e for e in self._waits if not e()), event]

    def activate(self) -> None:
        """There is no context."""

    def raise_flag(self, pointer: int, *, at_once: bool = False) -> None:
        """Loops that are in flight end."""
        self._log("raise_flag", pointer, *(("at once",) if at_once else ()))
        self.flags.add(pointer)
        for stream in self.streams:
            stream.busy = False

    def write_word(self, pointer: int, value: int) -> None:
        """Written once the stream is not busy."""
        self._log("write_word", pointer)
        if self.busy:
            self._unwritten.append((pointer, value))
        else:
            self._write(pointer, value)

    def record(self) -> RecordedEvent:
        """An event of the present end of the stream."""
        position = self._log("record")
        before = tuple(event for event in self._waits if not event())
        return RecordedEvent(position, self, self.busy, before)

    def create_timer(self) -> RecordedTimer:
        self._log("create_timer")
        return RecordedTimer(next(self._handles))

    # Captures by other code

    def is_capturing(self, stream: int) -> bool:
        """Whether the stream is among `captured_streams`."""
        return stream in self.captured_streams

    def takes_nodes(self, stream: int) -> bool:
        """Whether the stream is among `captured_streams`, but not among `failed_captures`."""
        return stream in self.captured_streams - self.failed_captures

    @contextmanager
    def beside_captures(self) -> Iterator[None]:
        self.relaxed[0] += 1
        try:
            yield
        finally:
            self.relaxed[0] -= 1

    def add_to_capture(self, stream: int, graph: RecordedGraph) -> None:
        """A node of the graph in `captures`, which holds the child."""
        self._log("add_to_capture", stream)
        nodes = self.captures[stream].nodes
        nodes.append(RecordedNode("graph", "child", tuple(nodes[-1:]), (graph,)))

    # Code

    def load(self, code: Any) -> Any:
        self._log("load")
        return code

    def kernel(self, module: Any, name: str) -> str:
        """A kernel is its name."""
        return name

    def parameter_sizes(self, kernel: Any) -> tuple[int, ...] | None:
        """Those of an object that has cuda.core's description of them."""
        infos = getattr(kernel, "arguments_info", None)
        return None if infos is None else tuple([info.size for info in infos])

    def resident_blocks(self, launch: Launch) -> int:
        """The blocks that threads alone allow: 2048 threads in a multiprocessor."""
        return self.multiprocessors * (2048 // prod(launch.block))
