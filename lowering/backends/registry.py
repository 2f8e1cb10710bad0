"""Devices by name, and the backend that compiles for each."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from lowering.backends import Backend
from tracegraph.staging.interfaces import DeviceStream

ENTRY_POINTS = "tracegraph.backends"


@cache
def backend(device: str) -> Backend:
    """The backend of a device such as ``"host"``, ``"cuda"`` or ``"cuda:1"``.

    Raises:
        ValueError: there is no backend of that name, or the part after the colon is not a number.
    """
    name, colon, number = device.partition(":")
    if colon and not number.isdecimal():
        raise ValueError(f"device {device!r}: after the colon comes a number, as in 'cuda:0'")
    # Imported here, so that the host needs nothing of CUDA.
    if name == "host":
        from lowering.backends.host import HostBackend

        return HostBackend()
    if name == "cuda":
        from lowering.backends.cuda import CudaBackend

        return CudaBackend(int(number or 0))
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        known = ", ".join(repr(n) for n in ("host", "cuda", *found))
        raise ValueError(f"no backend for device {device!r}; the backends here are {known}")
    made: Backend = found[name].load()(device)
    return made


def reset() -> None:
    """Wait for all work of tracegraph's own backends, close all executables, and free memory.

    Raises:
        Exception: the first failure of a check in a program, after the rest is done.
    """
    failures = []
    for device in _own_devices():
        try:
            device.reset()
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def trim() -> None:
    """Wait for all work on GPUs, and give back what is kept for later."""
    for device in _own_devices():
        device.trim()


def _own_devices() -> list[Any]:
    """The host, and the GPUs that were opened."""
    cuda = sys.modules.get("lowering.cuda.device")  # absent, no GPU was opened
    return [backend("host"), *(cuda.open_devices() if cuda else ())]


def create_stream(device: str) -> DeviceStream | None:
    """A new stream of a GPU; None on devices of other kinds, whose backends have no streams.

    Raises:
        ValueError: there is no such device.
        RuntimeError: the GPU cannot be used.
    """
    backend(device)  # checks the name
    name, _, number = device.partition(":")
    if name != "cuda":
        return None
    from lowering.cuda.device import open_device
    from lowering.cuda.streams.owned_stream import OwnedStream

    return OwnedStream(open_device(int(number or 0)))


@cache
def default_device() -> str:
    """The device in the environment variable TRACEGRAPH_DEVICE, or the first GPU, or the host."""
    chosen = os.environ.get("TRACEGRAPH_DEVICE")
    if chosen:
        return chosen
    return "cuda:0" if _has_gpu() else "host"


def _has_gpu() -> bool:
    try:
        from cuda.core import Device

        return len(Device.get_all_devices()) > 0
    except Exception:  # no package, no driver, no device: each is told by a class of its own
        return False
