"""Names of devices."""

from __future__ import annotations


def canonical_device(device: str) -> str:
    """The full name of a device: ``"cuda"`` is ``"cuda:0"``."""
    return f"{device}:0" if device == "cuda" else device
