"""Records: how a print's arguments lie in the print ring.

A record is a head, the number of the print and the bytes of the record, and then the arguments.
Record and arguments start at multiples of 16, and so does the ring's size: no element is cut where
the ring begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.plan.rounding import round_up
from tracegraph.ir.types import ArrayType

HEAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Record:
    """The types of the arguments, where each starts, and the size of the whole."""

    types: tuple[ArrayType, ...]
    offsets: tuple[int, ...]
    nbytes: int

    @classmethod
    def of(cls, types: Iterable[ArrayType]) -> Record:
        """The record of arguments of these types.

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
