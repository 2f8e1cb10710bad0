"""Layout of a record in the print ring.

A record is a head (the number of the print site, the bytes of the record) and then the arguments.
Records and arguments begin at multiples of 16 bytes, and the ring's size is one, so no element is
split where the ring wraps around.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lowering.plan.nests.rounding import round_up
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType

HEAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Record:
    """The types and offsets of the arguments, and the size of the record."""

    types: tuple[ArrayType, ...]
    offsets: tuple[int, ...]
    nbytes: int

    @classmethod
    def of(cls, types: Iterable[ArrayType]) -> Record:
        """The layout for arguments of these types.

        >>> Record.of([ArrayType("bool", (3,)), ArrayType("float64")]).offsets
        (16, 32)
        """
        types, offsets, end = tuple(types), [], HEAD_BYTES
        for type_ in types:
            offsets.append(end)
            end += round_up(type_.nbytes, HEAD_BYTES)
        return cls(types, tuple(offsets), end)

    def arrays(self, raw: bytes) -> tuple[np.ndarray[Any, Any], ...]:
        """The arguments in the bytes of a record."""
        return tuple(
            np.frombuffer(raw, type_.dtype, type_.size, offset).reshape(type_.shape)
            for type_, offset in zip(self.types, self.offsets, strict=True)
        )
