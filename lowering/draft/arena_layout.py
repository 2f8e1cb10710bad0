"""Layout of the arena: the offsets of scratch buffers."""

from __future__ import annotations

from typing import NamedTuple

from lowering.draft.dependences import Order
from lowering.draft.draft_nodes import Block
from lowering.plan.nests.buffer import Buffer


class ArenaLayout(NamedTuple):
    """The byte offset of every scratch buffer, in an arena of `nbytes`.

    `orders` has the dependences of each block's nodes before buffers shared bytes. If some are
    `shared`, the graph needs further edges.
    """

    offsets: dict[Buffer, int]
    nbytes: int
    shared: bool
    orders: dict[Block, Order]
