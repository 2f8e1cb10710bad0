"""Names of devices, and the packages that add some."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "tracegraph.backends"
"""The group of entry points by which other packages name the devices that they have backends of."""

MESH = "mesh:"
"""What the name of a mesh as a device begins with."""


def is_mesh(device: str) -> bool:
    """Whether a device is a mesh.

    >>> is_mesh("mesh:host:x=4"), is_mesh("cuda:0")
    (True, False)
    """
    return device.startswith(MESH)


def canonical_device(device: Any) -> str:
    """The full name of a device: ``"cuda"`` is ``"cuda:0"``.

    Raises:
        TypeError: not a string.
        ValueError: there is no backend of that name, or the part after the colon is not a number.

    >>> canonical_device("cuda"), canonical_device("host")
    ('cuda:0', 'host')
    """
    if not isinstance(device, str):
        kind = type(device).__qualname__
        raise TypeError(f'a device is a string such as "host" or "cuda:0", got {kind}')
    if not is_mesh(device):
        _require_known(device)
    return "cuda:0" if device == "cuda" else device


@cache  # of what is known: what raises is asked for again
def _require_known(device: str) -> None:
    name, colon, number = device.partition(":")
    if name not in ("host", "cuda") and name not in (others := other_backends()):
        known = ", ".join(map(repr, ("host", "cuda", *others)))
        raise ValueError(f"no backend for device {device!r}; the backends here are {known}")
    if colon and not number.isdecimal():
        raise ValueError(f"device {device!r}: after the colon comes a number, as in 'cuda:0'")


def other_backends() -> dict[str, EntryPoint]:
    """The entry points of other packages' backends, by the names of their devices."""
    from importlib.metadata import entry_points  # importing it takes 13 ms

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
