"""Handles that the driver returns: memory, code, events and executables."""

from __future__ import annotations

import weakref
from dataclasses import field
from typing import Any

import numpy as np
from cuda.bindings import driver

from lowering.driver.clean_up import freed
from lowering.driver.error_checks import NOT_READY, called, check
from lowering.driver.foreign_captures import relaxed
from lowering.driver.user_objects import TiedGraph
from lowering.errors import ClosedGraphError
from tracegraph.concurrency.hold_ups import free
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeviceAllocation:
    """Memory from the device's pool; it is freed, in stream order, when it is collected."""

    buffer: Any
    pointer: int
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class PinnedAllocation:
    """Pinned host memory, mapped for the device; it is used again when this is collected.

    `bytes` does not keep it alive.
    """

    buffer: Any
    pointer: int
    bytes: np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True, eq=False)
class CudaEvent:
    """An event of cuda.core, which is destroyed when it is collected, and its handle."""

    event: Any
    handle: Any

    def __call__(self) -> bool:
        """Whether it has been passed. To ask would invalidate somebody's global capture."""
        with relaxed():
            answer = driver.cuEventQuery(self.handle)
        if answer[0] == NOT_READY:
            return False
        check("cuEventQuery", answer)
        return True


@dataclass(slots=True, eq=False, weakref_slot=True)
class CudaExecutableGraph:
    """The handle of an executable graph, and the graph it came from, which owns what both point to.

    The executable is destroyed when this object is collected, and always before what it points to:
    its finalizer holds the graph, in whatever order a garbage cycle is collected. A closed one has
    no handle, which the driver refuses; so a launch needs no test.
    """

    handle: Any
    source: TiedGraph | None
    _destroy: weakref.finalize[..., Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._destroy = weakref.finalize(self, _destroy, self.handle, self.source)
        self._destroy.atexit = False  # the end of the process frees it, without waiting

    def require_open(self) -> None:
        """Raise ClosedGraphError if it is closed."""
        if self.handle is None:
            raise ClosedGraphError

    def close(self) -> None:
        """Destroy it, and drop what it points to. A second call does nothing."""
        try:
            self._destroy()
        finally:
            self.handle = self.source = None


def _destroy(handle: Any, source: TiedGraph) -> None:
    """Destroy an executable; the reference to its graph is dropped after that."""

    def destroy(_: TiedGraph = source) -> None:
        with relaxed():
            freed("an executable graph", "cuGraphExecDestroy", driver.cuGraphExecDestroy(handle))

    free(destroy)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CudaModule:
    """Code of cuda.core, in a list of one; it is unloaded when this object is collected.

    To unload would invalidate somebody's global capture.
    """

    code: list[Any]

    def __post_init__(self) -> None:
        weakref.finalize(self, _unload, self.code).atexit = False


def _unload(code: list[Any]) -> None:
    def unload() -> None:
        with relaxed():
            code.clear()

    free(unload)


def _destroy_event(event: Any) -> None:
    freed("an event", "cuEventDestroy", driver.cuEventDestroy(event))


_UNTIMED = int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CudaTimer:
    """An event that notes the time; destroyed when it is collected."""

    event: Any
    handle: int

    @classmethod
    def create(cls, *, timed: bool = True) -> CudaTimer:
        """A new one, which may be told to note no time."""
        event = called(driver.cuEventCreate, 0 if timed else _UNTIMED)
        timer = cls(event, int(event))
        weakref.finalize(timer, _destroy_event, event).atexit = False
        return timer

    def since(self, start: CudaTimer) -> float:
        """By the driver, which waits for this event."""
        called(driver.cuEventSynchronize, self.event)
        elapsed = driver.cuEventElapsedTime(start.event, self.event)
        return float(check("cuEventElapsedTime", elapsed))
