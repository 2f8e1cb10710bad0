"""Buffers of cuda.core: their allocation stays, though somebody closes them.

`Buffer.close` gives up the Buffer's share of its allocation, and cuda.core frees that with the last
share. Graph definitions take shares of the Buffers that they are given, until they are destroyed.
So a definition that is never launched keeps an allocation.
"""

from __future__ import annotations

from typing import Any

from cuda.core import Buffer
from cuda.core.graph import GraphDefinition
from cuda.core.utils import StridedMemoryView

from tracegraph.errors import RawMemoryError


def retained(owner: Any) -> Any:
    """What keeps the allocation behind a Buffer, or a view of one; None for other owners.

    Raises:
        RawMemoryError: it was closed.
    """
    while isinstance(owner, StridedMemoryView):
        owner = owner.exporting_obj
    if not isinstance(owner, Buffer):
        return None
    if owner.is_closed:
        raise RawMemoryError(
            "the owner, a Buffer of cuda.core, is closed, so that its memory is free; make the "
            "array before it is closed"
        )
    if not owner.size:
        return None
    keeping = GraphDefinition()
    keeping.memset(owner, 0, 1)
    return keeping
