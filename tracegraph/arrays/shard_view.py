"""ArrayShard: the block of an Array that one device of a mesh has."""

from __future__ import annotations

from typing import Any

from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ArrayShard:
    """A block: the number of its device in the mesh, where it is in the array, and its elements as
    an Array.
    """

    device: int
    index: tuple[slice, ...]
    data: Any
