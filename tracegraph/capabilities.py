"""What devices can do."""

from __future__ import annotations

from tracegraph.devices import canonical_device
from tracegraph.staging.compiler import compiler, default_device
from tracegraph.staging.device_features import DeviceFeatures

__all__ = ["DeviceFeatures", "features"]


def features(device: str | None = None) -> DeviceFeatures:
    """What a device and its driver can do, found by small graphs that try it once.

    What the environment variable TRACEGRAPH_FEATURES declares missing counts as missing.

    Args:
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the one that functions run on.

    Raises:
        TypeError: `device` is not a string.
        ValueError: there is no such device.
        RuntimeError: the GPU cannot be used.

    >>> features("host").conditional_nodes
    False
    """
    chosen = default_device() if device is None else canonical_device(device)
    return compiler().backend(chosen).features()
