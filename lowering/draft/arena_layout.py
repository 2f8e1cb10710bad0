"""Arrangement: where the scratch buffers of a Plan are in its arena."""

from __future__ import annotations

from typing import NamedTuple

from lowering.draft.dependences import Order
from lowering.draft.stage import Block
from lowering.plan.buffer import Buffer


class Arrangement(NamedTuple):
    """The byte offset of every scratch buffer, in an arena of `nbytes`.

    `orders` are the dependences of the stages of each block without the arena; with it, they are
    the same unless buffers `shared` memory.
    """

    offsets: dict[Buffer, int]
    nbytes: int
    shared: bool
    orders: dict[Block, Order]
