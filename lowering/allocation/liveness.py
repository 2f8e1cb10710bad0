"""Liveness of buffers: which ones are known to be dead when another one becomes live.

A buffer is known to be dead if dependences order all nodes that access it before the first node
of the new one. Testing every pair of buffers would take quadratic time. So each buffer whose last
access has passed is filed, in every block around it, under one of its nodes that was not yet known
to be over, and tested again only once that node is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush

from lowering.draft.dependences import DEPENDENCE_WINDOW, Order, precedes
from lowering.draft.draft_nodes import Block, DraftNode
from tracegraph.generated.dataclass import dataclass

_WINDOW = (1 << DEPENDENCE_WINDOW + 1) - 1


@dataclass(slots=True, eq=False)
class Life:
    """The moments of a buffer's first and last access, and the owner's nodes that access it."""

    start: int
    end: int
    path: tuple[tuple[Block, int], ...]  # blocks around the owner, and where in each
    owner: Block
    nodes: list[int] = field(default_factory=list)  # ascending, each once
    dead: bool = False

    def levels(self) -> Iterator[tuple[Block, Sequence[int]]]:
        """For each block from the root to the owner, the positions of nodes that access it."""
        for block, position in self.path:
            yield block, (position,)
        yield self.owner, self.nodes


class Lifetimes:
    """The lives that have begun, in the order of their starts."""

    __slots__ = ("_begun", "_branches", "_expired", "_live", "_orders")

    def __init__(self, orders: Mapping[Block, Order]) -> None:
        self._orders = orders
        self._begun = 0
        self._live: list[tuple[int, int, Life]] = []  # a heap by end
        self._expired: dict[Block, _Expired] = {}
        self._branches: dict[DraftNode, Block] = {}  # the block in each node that was begun in last

    def begin(self, new: Life) -> list[Life]:
        """The lives that are known to be dead when a new one begins, and were not before."""
        live = self._live
        while live and live[0][0] < new.start:
            life = heappop(live)[2]
            for block, nodes in life.levels():
                if block not in self._expired:
                    self._expired[block] = _Expired(self._orders[block].ancestors)
                self._expired[block].add(life, nodes)
        dead: list[Life] = []
        around: DraftNode | None = None
        for block, nodes in new.levels():
            if around is not None:
                last, self._branches[around] = self._branches.get(around, block), block
                if last is not block and last in self._expired:  # branches of one conditional
                    dead += self._expired.pop(last).take_all()
            if block in self._expired:
                dead += self._expired[block].take_dead(nodes[0])
            around = block.nodes[nodes[0]]
        self._begun += 1
        heappush(live, (new.end, self._begun, new))
        return dead


class _Expired:
    """The lives whose last access, in one block or the blocks inside it, has passed."""

    __slots__ = ("_ancestors", "_lives", "_now", "_waiting", "_waiting_mask")

    def __init__(self, ancestors: Sequence[int]) -> None:
        self._ancestors = ancestors
        self._lives: list[tuple[Life, Sequence[int]]] = []
        self._waiting: dict[int, list[tuple[Life, Sequence[int]]]] = {}  # by node
        self._waiting_mask = 0  # bit d: some life waits for node `now` - d
        self._now = 0

    def add(self, life: Life, nodes: Sequence[int]) -> None:
        """Add a life that these nodes access."""
        self._lives.append((life, nodes))
        self._advance_to(nodes[-1])
        self._wait(nodes[-1], (life, nodes))

    def take_dead(self, node: int) -> Iterator[Life]:
        """The lives known to be dead when a node starts; calls come in ascending order."""
        self._advance_to(node)
        known = self._ancestors
        ready = self._waiting_mask & known[node] << 1
        while ready:
            first = ready & -ready
            ready ^= first
            self._waiting_mask ^= first
            for entry in self._waiting.pop(node + 1 - first.bit_length()):
                life, nodes = entry
                if life.dead:
                    continue
                for position in reversed(nodes):
                    if not precedes(known, position, node):
                        self._wait(position, entry)
                        break
                else:
                    life.dead = True
                    yield life

    def take_all(self) -> Iterator[Life]:
        """All the lives that were not known to be dead before."""
        for life, _ in self._lives:
            if not life.dead:
                life.dead = True
                yield life

    def _advance_to(self, position: int) -> None:
        if position > self._now:
            self._waiting_mask = self._waiting_mask << (position - self._now) & _WINDOW
            self._now = position

    def _wait(self, position: int, entry: tuple[Life, Sequence[int]]) -> None:
        """File a life under a node, unless that is outside the window of dependences."""
        if self._now - position <= DEPENDENCE_WINDOW:
            self._waiting_mask |= 1 << (self._now - position)
            self._waiting.setdefault(position, []).append(entry)
