"""OwnedBuffer: an array in device memory that the user has, and the object that keeps it.

Nothing here frees or pools the memory. A launch that reads it holds the owner until it has run, and
an exported graph as long as that lives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.cuda.interface import Driver
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.timeline import Timeline
from tracegraph.errors import RawMemoryError
from tracegraph.ir.types import ArrayType


class OwnedBuffer:
    """A contiguous row-major array at an address, as `lowering.backends.DeviceBuffer` has it.

    Args:
        pointer: the address of the first element.
        type_: its dtype and shape.
        owner: what keeps the memory. If it is a Buffer of cuda.core, it may be closed: its
            allocation is kept as well.
        device: the GPU.
        stream: the handle of the stream that writes the memory; None if uses need not wait.

    Raises:
        RawMemoryError: the address is not in memory that the GPU can access, or the owner was
            closed.
        ValueError: the stream belongs to another device.
    """

    __slots__ = ("__weakref__", "_allocation", "_device", "_producer", "owner", "pointer", "type")

    def __init__(
        self, pointer: int, type_: ArrayType, owner: Any, device: OpenDevice, stream: int | None
    ) -> None:
        driver = device.driver
        driver.activate()
        if type_.nbytes:
            _require_accessible(driver, device.name, pointer, type_)
        self.pointer, self.type, self.owner = pointer, type_, owner
        self._allocation = driver.retained(owner)
        self._device = device
        self._producer = None if stream is None else driver.on(stream, owner)

    @property
    def device(self) -> str:
        """The device that it was made for."""
        return self._device.name

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, read-only, with the stream that writes the memory."""
        return {
            "version": 3,
            "shape": self.type.shape,
            "typestr": self.type.dtype.str,
            "data": (self.pointer if self.type.size else 0, True),
            "strides": None,
            "stream": None if self._producer is None else self._producer.stream,
        }

    def order(self, driver: Driver) -> None:
        """Let a driver's stream wait for what the stream of the memory does until now."""
        if self._producer is not None and self._producer.stream != driver.stream:
            driver.wait(self._producer.record())

    def to_host(self) -> np.ndarray[Any, Any]:
        """A copy in host memory, of what the stream of the memory has written until now."""
        target = np.empty(self.type.shape, self.type.dtype)
        timeline = self._ordered()
        if target.size:
            timeline.read(target, self.pointer)
        return target

    def synchronize(self) -> None:
        """Wait for the stream of the memory."""
        self._ordered().wait()

    def hand_over(self, stream: int) -> None:
        """Let the stream with this handle, of any library, wait for that of the memory."""
        if self._producer is not None and self._producer.stream != stream:
            self._device.driver.activate()
            self._producer.hand_over(self._producer.record(), stream)

    def _ordered(self) -> Timeline:
        timeline = self._device.timeline
        timeline.driver.activate()
        self.order(timeline.driver)
        return timeline

    def __repr__(self) -> str:
        return f"OwnedBuffer({self.type} at {self.pointer:#x} on {self.device})"


def _require_accessible(driver: Driver, device: str, pointer: int, type_: ArrayType) -> None:
    for address in (pointer, pointer + type_.nbytes - 1):
        place = driver.locate(address)
        if place not in (device, "host"):
            which = "its first byte" if address == pointer else "its last byte"
            where = "in no memory that CUDA knows" if place is None else f"on {place}"
            raise RawMemoryError(
                f"an array of type {type_} at {pointer:#x} is not in memory of {device}: {which}, "
                f"at {address:#x}, is {where}"
            )
