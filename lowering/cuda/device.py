"""A device opened for use: its driver, its pool of memory, and code loaded for all Plans."""

from __future__ import annotations

import atexit
import gc
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from lowering.cuda.arena import Arenas
from lowering.cuda.compile import cubin
from lowering.cuda.ending import finish
from lowering.cuda.heap import Heap
from lowering.cuda.interface import Driver
from lowering.cuda.last_use import LastUse
from lowering.cuda.memory import Pool
from lowering.cuda.probes import supports
from lowering.cuda.timeline import Timeline
from lowering.features import Feature
from tracegraph.streams import Chosen

Flights = deque[tuple[Callable[[], bool], list[Any]]]
"""Launches that may not have run, each with the foreign arrays that it reads."""

MOST_LANES = 32
"""Streams that are remembered; beyond, those that have run out of work are forgotten."""


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A stream of a device, with what launches on it need."""

    device: OpenDevice
    driver: Driver
    timeline: Timeline
    pool: Pool
    owner: Any = None


class OpenDevice:
    """What all executables on one device share.

    `home` is the device's own stream. Once `has_lanes`, calls run on others, too: then `launching`
    is held by each launch, and `shared` is the last use of what all programs share: scratch memory
    and the print ring.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.timeline = Timeline(driver)
        self.heap = Heap(self.timeline)
        self.pool = Pool(self.heap)
        self.arenas = Arenas(self.heap)
        self.home = Lane(self, driver, self.timeline, self.pool)
        self.shared = LastUse(self.timeline)
        self.launching = threading.RLock()
        self.has_lanes = False
        self._lanes: dict[int, Lane] = {}
        self.name = f"cuda:{driver.ordinal}"
        self.orphans: dict[int, Flights] = {}
        self._kernels: dict[str, Any] = {}
        self._features: dict[Feature, bool] = {}

    def lane(self, chosen: Chosen) -> Lane:
        """The lane of a stream. The caller is in no launch.

        Raises:
            ValueError: the stream belongs to another device.
        """
        lane = self._lanes.get(chosen.handle)
        return self._open_lane(chosen) if lane is None else lane

    def _open_lane(self, chosen: Chosen) -> Lane:
        self.driver.activate()
        if chosen.handle == self.driver.stream:
            return self.home
        with self.launching:
            lane = self._lanes.get(chosen.handle)
            if lane is None:
                if len(self._lanes) >= MOST_LANES:
                    self._forget_idle()
                driver = self.driver.on(chosen.handle)
                timeline = Timeline(driver, self.timeline)
                lane = Lane(self, driver, timeline, Pool(self.heap, timeline), chosen.owner)
                self._lanes[chosen.handle] = lane
            known = [] if self.has_lanes else list(self.heap.executables)
            self.has_lanes = True
        for executable in known:
            executable.finish_call()  # one in progress may not know yet that there are lanes
        return lane

    def _forget_idle(self) -> None:
        idle = {handle: lane for handle, lane in self._lanes.items() if lane.timeline.idle}
        for lane in idle.values():
            lane.pool.close()
        self._lanes = {h: lane for h, lane in self._lanes.items() if h not in idle}

    def release_orphans(self) -> None:
        """Let go of what executables that are gone were passed, once their launches have run."""
        for number, flights in list(self.orphans.items()):
            if all(passed() for passed, _ in flights):
                self.orphans.pop(number, None)

    def standalone_kernel(self, source: str, name: str) -> Any:
        """A kernel that belongs to no Plan, compiled at its first use."""
        if name not in self._kernels:
            module = self.driver.load(self.compile(source))
            self._kernels[name] = self.driver.kernel(module, name)
        return self._kernels[name]

    def supports(self, feature: Feature) -> bool:
        """Whether graphs have a feature; found by trying at the first question."""
        if feature not in self._features:
            self.timeline.settle_loops()  # the try waits in the driver
            self._features[feature] = supports(feature, self.driver, self.compile)
        return self._features[feature]

    def memory_stats(self) -> dict[str, int]:
        """What `tracegraph.memory_stats` returns."""
        self.driver.activate()
        executables = [e for e in self.heap.executables if not e.closed]
        cached = sum(lane.pool.free_bytes for lane in self._all_lanes())
        free, total = self.driver.memory_info()
        return {
            "arrays": self.heap.held["arrays"] - cached,
            "cached": cached,
            "arenas": self.heap.held["arenas"],
            "constants": self.heap.held["constants"],
            "graph_bytes": sum(e.stats()["graph_bytes"] for e in executables),
            "graphs": len(executables),
            "high_water": self.heap.high_water,
            "free": free,
            "total": total,
        }

    def reset(self) -> None:
        """Wait for all work, close all executables, and give back what is not in use.

        Raises:
            Exception: what `Timeline.wait` raises, after the rest is done.
        """
        try:
            for lane in self._all_lanes():
                lane.timeline.wait()
        finally:
            for executable in list(self.heap.executables):
                executable.close()
            self._kernels.clear()
            gc.collect()
            self.heap.trim()

    def _all_lanes(self) -> list[Lane]:
        return [self.home, *self._lanes.values()]

    def code_bytes(self, code: Any) -> int:
        """The size of what `compile` returned."""
        return len(code.code)

    def compile(self, source: str) -> Any:
        """The cubin of `source` for this device."""
        return cubin(source, self.driver.arch)


_opening = threading.Lock()


def open_device(ordinal: int) -> OpenDevice:
    """The device with this number, opened at the first call.

    Raises:
        RuntimeError: there is no such GPU, or no driver.
    """
    with _opening:
        return _open(ordinal)


def open_devices() -> list[OpenDevice]:
    """Those opened so far."""
    return list(_opened)


_opened: list[OpenDevice] = []


@cache
def _open(ordinal: int) -> OpenDevice:
    try:
        from lowering.driver import CudaDriver

        driver = CudaDriver(ordinal)
    except Exception as error:
        raise RuntimeError(
            f"cuda:{ordinal} cannot be used: {error}; without an NVIDIA GPU and its driver, use "
            'the device "host"'
        ) from error
    device = OpenDevice(driver)
    atexit.register(finish, device.timeline)
    _opened.append(device)
    return device
