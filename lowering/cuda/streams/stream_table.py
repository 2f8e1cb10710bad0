"""StreamTable: the streams of a device that calls use, and how one is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from lowering.cuda.interface import Driver
from lowering.cuda.memory.arena import Arenas
from lowering.cuda.memory.pool import DevicePool
from lowering.cuda.streams.stream_state import StreamState
from lowering.cuda.streams.timeline import Timeline
from tracegraph.current_stream import Chosen

MOST_FOREIGN = 32
"""Streams of other libraries that are remembered; beyond that, idle ones are left."""


class StreamTable:
    """The streams of one device by handle.

    One that was left is found no more. Once it is idle, the graphs of executables for it and the
    memory that it keeps are dropped.
    """

    def __init__(self, default: StreamState) -> None:
        self._default = default
        self._adding, self._sweeping = threading.Lock(), threading.Lock()
        self._found = {default.driver.stream: default}
        self._left: dict[StreamState, None] = {}
        default.heap.caches.append(self.sweep)

    def __iter__(self) -> Iterator[StreamState]:
        return iter([*self._found.values(), *self._left])

    def __len__(self) -> int:
        return len(self._found) + len(self._left)

    def of(self, chosen: Chosen) -> StreamState:
        """The state of a stream, made at its first use.

        Raises:
            ValueError: the stream belongs to another device.
        """
        if self._left:
            self.sweep()
        stream = self._found.get(chosen.handle)
        return self._open_foreign(chosen) if stream is None else stream

    def _open_foreign(self, chosen: Chosen) -> StreamState:
        self._default.driver.activate()
        foreign_streams = [stream for stream in list(self._found.values()) if stream.foreign]
        if len(foreign_streams) >= MOST_FOREIGN:
            for stream in foreign_streams:
                if stream.timeline.idle:
                    self.leave(stream)
        self.sweep()
        with self._adding:
            found = self._found.get(chosen.handle)
            if found is not None:
                return found
            stream = self._open(self._default.driver.on(chosen.handle, chosen.owner), foreign=True)
            self._found[chosen.handle] = stream
        return stream

    def open_own(self, handle: int, owner: Any) -> StreamState:
        """The state of a stream that was just made, which `owner` keeps open."""
        self.sweep()
        with self._adding:
            before = self._found.get(handle)
            if before is not None:  # a foreign stream was destroyed, and its handle used again
                self.leave(before)
            stream = self._open(self._default.driver.on(handle, owner), foreign=False)
            self._found[handle] = stream
        return stream

    def _open(self, driver: Driver, foreign: bool) -> StreamState:
        heap, timeline = self._default.heap, Timeline(driver, self._default.timeline)
        pool, arenas = DevicePool(heap, timeline), Arenas(heap, driver)
        return StreamState(driver, heap, timeline, pool, arenas, foreign)

    def leave(self, stream: StreamState) -> None:
        """Leave a stream that is not used again. Takes no lock, since a garbage collection may call
        it in any thread and at any point.
        """
        if self._found.get(stream.driver.stream) is stream:
            self._found.pop(stream.driver.stream, None)
        self._left[stream] = None

    def sweep(self) -> None:
        """Release the streams that were left and are idle. Waits for no stream, call or thread."""
        if not self._left or not self._sweeping.acquire(blocking=False):
            return
        try:
            for stream in list(self._left):
                executables = self._default.heap.executables
                if stream.timeline.idle and all(e.leave(stream) for e in executables):
                    stream.pool.close()
                    self._left.pop(stream, None)
        finally:
            self._sweeping.release()
