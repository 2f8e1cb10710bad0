"""Mesh: devices in a grid, whose axes have names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.devices import MESH
from tracegraph.distributed.membership import local_device, settled
from tracegraph.errors.keywords import required_int
from tracegraph.errors.tracebacks import entry_point
from tracegraph.tracing.function_table import FUNCTIONS

__all__ = ["Mesh"]


class Mesh:
    """Devices in a grid, whose axes have names, by which functions of each device exchange arrays.

    Args:
        shape: the number of devices along each axis; an int for one axis.
        axis_names: a name for each axis; a string for one axis.
        device: ``"cuda"``: the first GPUs of this machine, in which kernels exchange arrays.
            ``"host"``: each device is a thread of this process, which runs the same plan as a GPU
            would. None is the kind of device that functions run on.

    Of several processes, which `tracegraph.distributed.initialize` has joined, each has an equal
    share of the devices, in the order of processes. Meshes are compared by value.

    Raises:
        ShardingError: an extent is not positive, or names are not distinct words, one an axis.
        MeshDeviceError: there are no meshes of such devices, or as many processes cannot share
            them equally.

    >>> mesh = Mesh((2, 2), ("x", "y"), device="host")
    >>> mesh
    Mesh(x=2, y=2, device='host')
    >>> mesh.size, mesh.shape["x"]
    (4, 2)
    """

    __slots__ = ("_devices", "_process", "axis_names", "kind", "processes", "shape")

    axis_names: tuple[str, ...]
    """The names of the axes, in order."""
    shape: Mapping[str, int]
    """The number of devices along each axis, by its name."""
    kind: str
    """The kind of device: ``"host"`` or ``"cuda"``."""
    processes: int
    """How many processes share the devices."""

    @entry_point
    def __init__(
        self,
        shape: int | Sequence[int],
        axis_names: str | Sequence[str],
        *,
        device: str | None = None,
    ) -> None:
        extents = _extents(shape)
        several = isinstance(axis_names, Iterable) and not isinstance(axis_names, str)
        names: tuple[Any, ...] = tuple(axis_names) if several else (axis_names,)
        for name in names:
            if not isinstance(name, str) or not name.isidentifier():
                got = errors.value_text(name)
                raise errors.ShardingError(f"the name of an axis is a word such as 'x', not {got}")
        if len(names) != len(extents) or len(set(names)) < len(names):
            raise errors.ShardingError(
                f"a mesh has a distinct name for each axis: got the shape {extents} and the names "
                f"{names}"
            )
        self.axis_names, self.shape = (
            names,
            MappingProxyType(dict(zip(names, extents, strict=True))),
        )
        self.kind = _kind(device)
        self._devices = np.arange(prod(extents)).reshape(extents)
        self._process, self.processes = settled()
        if self.size % self.processes:
            raise errors.MeshDeviceError(
                f"{self} has {self.size} devices, which {self.processes} processes cannot share "
                "equally: make the number of devices a multiple of that of processes"
            )

    @property
    def size(self) -> int:
        """The number of devices."""
        return self._devices.size

    @property
    def device(self) -> str:
        """The mesh as the device of an Array: ``"mesh:host:x=4"``."""
        axes = ",".join(f"{name}={extent}" for name, extent in self.shape.items())
        return f"{MESH}{self.kind}:{axes}"

    @property
    def devices(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices, as an array of the shape of the mesh."""
        return self._devices.copy()

    @property
    def local_devices(self) -> range:
        """The numbers of the devices of this process.

        >>> Mesh(4, "x", device="host").local_devices
        range(0, 4)
        """
        each = self.size // self.processes
        return range(self._process * each, (self._process + 1) * each)

    @property
    def ordinals(self) -> list[int]:
        """Which of the GPUs that this process sees its devices are."""
        own = len(self.local_devices)
        if self.processes == 1:
            return list(range(own))
        return [local_device(number, own) for number in range(own)]

    def process_of(self, device: int) -> int:
        """The number of the process that has a device."""
        return device * self.processes // self.size

    def place(self, device: int) -> dict[str, int]:
        """Where a device is along each axis.

        >>> Mesh((2, 3), ("x", "y"), device="host").place(4)
        {'x': 1, 'y': 1}
        """
        at = np.unravel_index(device, self._devices.shape)
        return dict(zip(self.axis_names, map(int, at), strict=True))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self.device == other.device)

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        axes = "".join(f"{name}={extent}, " for name, extent in self.shape.items())
        return f"Mesh({axes}device={self.kind!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (tuple(self.shape.values()), self.axis_names, self.kind)


def mesh_of(device: str) -> Mesh:
    """The mesh that a device names.

    >>> mesh_of("mesh:host:x=4")
    Mesh(x=4, device='host')
    """
    kind, _, axes = device.removeprefix(MESH).partition(":")
    pairs = [axis.partition("=") for axis in axes.split(",")]
    return Mesh(
        [int(extent) for _, _, extent in pairs], [name for name, _, _ in pairs], device=kind
    )


def require_mesh(function: str, mesh: object) -> None:
    """Refuse what is no mesh.

    Raises:
        ShardingError: it is none.
    """
    if not isinstance(mesh, Mesh):
        got = errors.value_text(mesh)
        raise errors.ShardingError(f"{function}: mesh must be a tracegraph.Mesh, not {got}")


def _made(shape: tuple[int, ...], axis_names: tuple[str, ...], kind: str) -> Mesh:
    return Mesh(shape, axis_names, device=kind)


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        several = shape if isinstance(shape, Sequence) else (shape,)
        extents = tuple([required_int("shape", n, "a number of devices") for n in several])
    except TypeError:
        extents = ()
    if not extents or min(extents) < 1:
        raise errors.ShardingError(
            f"the shape of a mesh is a positive number of devices for each axis, got {shape!r}"
        )
    return extents


def _kind(device: Any) -> str:
    chosen = FUNCTIONS["default_device"]() if device is None else device
    if not isinstance(chosen, str):
        got = errors.value_text(device)
        raise errors.ShardingError(f'the device of a mesh is a string such as "host", not {got}')
    kind, numbered, _ = chosen.partition(":")
    if numbered and device is not None:
        raise errors.MeshDeviceError(
            f"a mesh is of the first devices of a kind: write device={kind!r}, not {device!r}"
        )
    if kind not in ("host", "cuda"):
        raise errors.MeshDeviceError(
            f'there are no meshes of {kind!r} devices: the kinds are "host" and "cuda"'
        )
    return kind
