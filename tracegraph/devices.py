"""Names of devices."""

from __future__ import annotations

from typing import Any


def canonical_device(device: Any) -> str:
    """The full name of a device: ``"cuda"`` is ``"cuda:0"``.

    Raises:
        TypeError: not a string.
    """
    if not isinstance(device, str):
        kind = type(device).__qualname__
        raise TypeError(f'a device is a string such as "host" or "cuda:0", got {kind}')
    return "cuda:0" if device == "cuda" else device
