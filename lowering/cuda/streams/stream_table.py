"""Lanes: the streams of a device that calls run on, and how they are left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lowering.cuda.interface import Driver
from lowering.cuda.memory.arena import Arenas
from lowering.cuda.memory.pool import Pool
from lowering.cuda.streams.stream_state import Lane
from lowering.cuda.streams.timeline import Timeline
from tracegraph.streams import Chosen

if TYPE_CHECKING:
    from lowering.cuda.device import OpenDevice

MOST_GUESTS = 32
"""Streams of other libraries that are remembered; beyond, those that are idle are left."""


class Lanes:
    """The lanes of one device by the handle of the stream.

    One that is left is found no more. Once its stream is idle, the graphs of executables for it are
    dropped, and the memory that it has kept.
    """

    def __init__(self, device: OpenDevice) -> None:
        self._device = device
        self._adding, self._sweeping = threading.Lock(), threading.Lock()
        self._found = {device.driver.stream: device.home}
        self._left: dict[Lane, None] = {}
        device.heap.caches.append(self.sweep)

    def __iter__(self) -> Iterator[Lane]:
        return iter([*self._found.values(), *self._left])

    def __len__(self) -> int:
        return len(self._found) + len(self._left)

    def of(self, chosen: Chosen) -> Lane:
        """The lane of a stream, opened at its first use.

        Raises:
            ValueError: the stream belongs to another device.
        """
        if self._left:
            self.sweep()
        lane = self._found.get(chosen.handle)
        return self._open_guest(chosen) if lane is None else lane

    def _open_guest(self, chosen: Chosen) -> Lane:
        self._device.driver.activate()
        guests = [lane for lane in list(self._found.values()) if lane.guest]
        if len(guests) >= MOST_GUESTS:
            for lane in guests:
                if lane.timeline.idle:
                    self.leave(lane)
        self.sweep()
        with self._adding:
            found = self._found.get(chosen.handle)
            if found is not None:
                return found
            lane = self._open(self._device.driver.on(chosen.handle, chosen.owner), guest=True)
            self._found[chosen.handle] = lane
        return lane

    def open_own(self, handle: int, owner: Any) -> Lane:
        """The lane of a stream that was just made, which `owner` keeps open."""
        self.sweep()
        with self._adding:
            before = self._found.get(handle)
            if before is not None:  # a guest's stream was destroyed, and its handle given again
                self.leave(before)
            lane = self._open(self._device.driver.on(handle, owner), guest=False)
            self._found[handle] = lane
        return lane

    def _open(self, driver: Driver, guest: bool) -> Lane:
        device = self._device
        timeline = Timeline(driver, device.timeline)
        pool, arenas = Pool(device.heap, timeline), Arenas(device.heap, driver)
        return Lane(device, driver, timeline, pool, arenas, guest)

    def leave(self, lane: Lane) -> None:
        """Leave a lane, whose stream nobody will use any more. Takes no lock: it may be called in
        any thread and at any point.
        """
        if self._found.get(lane.driver.stream) is lane:
            self._found.pop(lane.driver.stream, None)
        self._left[lane] = None

    def sweep(self) -> None:
        """Let go of lanes that were left and are idle. Waits for no stream, call or thread."""
        if not self._left or not self._sweeping.acquire(blocking=False):
            return
        try:
            for lane in list(self._left):
                executables = self._device.heap.executables
                if lane.timeline.idle and all(e.leave(lane) for e in executables):
                    lane.pool.close()
                    self._left.pop(lane, None)
        finally:
            self._sweeping.release()
