"""PartitionSpec: which axes of a mesh an axis of an array is divided over, and the blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from tracegraph import errors
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import ArrayType
from tracegraph.ir.varying import Axes
from tracegraph.sharding.mesh import Mesh

__all__ = ["PartitionSpec"]


class PartitionSpec:
    """For each axis of an array, the axis of the mesh over which it is divided, several, or None.

    Axes behind those named are not divided. Devices along axes of the mesh that are not named have
    the same block each: ``PartitionSpec()`` is an array that all have.

    Raises:
        ShardingError: an entry is no name of an axis, or an axis is named twice.

    >>> P = PartitionSpec
    >>> P("x", None, ("y", "z"))
    PartitionSpec('x', None, ('y', 'z'))
    >>> P("x") == P("x", None)
    True
    """

    __slots__ = ("entries",)

    entries: tuple[tuple[str, ...], ...]
    """The axes of the mesh for each axis of an array, up to the last that is divided."""

    @entry_point
    def __init__(self, *entries: str | Sequence[str] | None) -> None:
        given = [_names(entry) for entry in entries]
        named = [name for entry in given for name in entry]
        for name in named:
            if named.count(name) > 1:
                raise errors.ShardingError(
                    f"PartitionSpec names {name!r} twice; an axis of the mesh divides one axis"
                )
        while given and not given[-1]:
            given.pop()
        self.entries = tuple(given)

    @property
    def axes(self) -> Axes:
        """All axes of the mesh that it names."""
        return frozenset(name for entry in self.entries for name in entry)

    def __iter__(self) -> Iterator[str | tuple[str, ...] | None]:
        return (_shown(entry) for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, tuple(self)


def _names(entry: Any) -> tuple[str, ...]:
    if entry is None:
        return ()
    names = (entry,) if isinstance(entry, str) else entry
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise errors.ShardingError(
            "an entry of PartitionSpec is the name of an axis of the mesh, a tuple of names, or "
            f"None; got {errors.value_text(entry)}"
        )
    return tuple(names)


def _shown(entry: tuple[str, ...]) -> str | tuple[str, ...] | None:
    return entry if len(entry) > 1 else entry[0] if entry else None


def parts(mesh: Mesh, entry: tuple[str, ...]) -> int:
    """Into how many parts an axis is divided."""
    return prod(mesh.shape[name] for name in entry)


def require_axes(mesh: Mesh, spec: Any, what: str) -> PartitionSpec:
    """A spec that names axes of the mesh.

    Raises:
        ShardingError: it is none, or names others.
    """
    if not isinstance(spec, PartitionSpec):
        raise errors.ShardingError(
            f"{what} must be a PartitionSpec, such as PartitionSpec('x'), not "
            f"{errors.value_text(spec)}"
        )
    for name in sorted(spec.axes):
        if name not in mesh.shape:
            known = ", ".join(map(repr, mesh.axis_names))
            raise errors.ShardingError(
                f"{what} is {spec}, but the mesh has no axis {name!r}; its axes are {known}"
            )
    return spec


def local_type(mesh: Mesh, spec: PartitionSpec, type_: ArrayType, what: str) -> ArrayType:
    """The type of a block of an array, which all devices have.

    Raises:
        ShardingError: the array has too few axes, or an extent is not divisible.
    """
    _require_rank(spec, type_, what)
    shape = list(type_.shape)
    for axis, entry in enumerate(spec.entries):
        count = parts(mesh, entry)
        if shape[axis] % count:
            below = shape[axis] // count * count
            over = " and ".join(map(repr, entry))
            raise errors.ShardingError(
                f"axis {axis} of {what}, {type_}, has {shape[axis]} elements, which cannot be "
                f"divided equally among {count} devices along {over}; the nearest extents that "
                f"can are {below} and {below + count}"
            )
        shape[axis] //= count
    return type_.with_shape(shape)


def global_type(mesh: Mesh, spec: PartitionSpec, block: ArrayType, what: str) -> ArrayType:
    """The type of the array whose blocks have this type.

    Raises:
        ShardingError: a block has too few axes.
    """
    _require_rank(spec, block, what)
    shape = list(block.shape)
    for axis, entry in enumerate(spec.entries):
        shape[axis] *= parts(mesh, entry)
    return block.with_shape(shape)


def _require_rank(spec: PartitionSpec, type_: ArrayType, what: str) -> None:
    if len(spec) > type_.ndim:
        raise errors.ShardingError(
            f"{what}, {type_}, has {type_.ndim} axes, but {spec} divides axis {len(spec) - 1}"
        )


def block_index(
    mesh: Mesh, spec: PartitionSpec, shape: Sequence[int], device: int
) -> tuple[slice, ...]:
    """Where the block of a device is in the array of this shape.

    >>> mesh = Mesh((2, 2), ("x", "y"), device="host")
    >>> block_index(mesh, PartitionSpec(None, "x"), (3, 8), 2)
    (slice(0, 3, None), slice(4, 8, None))
    """
    place, index = mesh.place(device), []
    for axis, extent in enumerate(shape):
        entry = spec.entries[axis] if axis < len(spec) else ()
        number = 0
        for name in entry:
            number = number * mesh.shape[name] + place[name]
        size = extent // parts(mesh, entry)
        index.append(slice(number * size, (number + 1) * size))
    return tuple(index)
