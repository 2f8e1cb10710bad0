"""Lifetimes of buffers, and which of those that ended are surely over when another one begins.

A buffer is surely over if the stages that touch it are when the first stage of the new one starts.
To ask that of every buffer for every new one would take quadratic time. So each that has ended
waits, in every block around it, at one of its stages that was not over when last asked; it is asked
again only when that stage is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from lowering.draft.dependences import REMEMBERED, Order, precedes
from lowering.draft.stage import Block, Stage

_WINDOW = (1 << REMEMBERED + 1) - 1


@dataclass(slots=True, eq=False)
class Life:
    """When a buffer is in use (moments, both included), and the owner's stages that touch it."""

    start: int
    end: int
    path: tuple[tuple[Block, int], ...]  # blocks around the owner, and where in each
    owner: Block
    stages: list[int] = field(default_factory=list)  # ascending, each once
    over: bool = False

    def levels(self) -> Iterator[tuple[Block, Sequence[int]]]:
        """For each block from the root to the owner, the positions at which it is touched."""
        for block, position in self.path:
            yield block, (position,)
        yield self.owner, self.stages


class Lifetimes:
    """The lives that have begun, in the order of their starts."""

    __slots__ = ("_alive", "_begun", "_branches", "_ended", "_orders")

    def __init__(self, orders: Mapping[Block, Order]) -> None:
        self._orders = orders
        self._begun = 0
        self._alive: list[tuple[int, int, Life]] = []  # a heap by end
        self._ended: dict[Block, _Ended] = {}
        self._branches: dict[Stage, Block] = {}  # the block in each stage that was begun in last

    def begin(self, new: Life) -> list[Life]:
        """The lives that are surely over when a new one begins, and were not before."""
        alive = self._alive
        while alive and alive[0][0] < new.start:
            life = heappop(alive)[2]
            for block, stages in life.levels():
                if block not in self._ended:
                    self._ended[block] = _Ended(self._orders[block].ancestors)
                self._ended[block].add(life, stages)
        over: list[Life] = []
        around: Stage | None = None
        for block, stages in new.levels():
            if around is not None:
                last, self._branches[around] = self._branches.get(around, block), block
                if last is not block and last in self._ended:  # branches of one conditional
                    over += self._ended.pop(last).all_over()
            if block in self._ended:
                over += self._ended[block].over(stages[0])
            around = block.stages[stages[0]]
        self._begun += 1
        heappush(alive, (new.end, self._begun, new))
        return over


class _Ended:
    """The lives that ended within one block, whose stages are numbered, and the inner ones."""

    __slots__ = ("_ancestors", "_lives", "_now", "_waiting", "_where")

    def __init__(self, ancestors: Sequence[int]) -> None:
        self._ancestors = ancestors
        self._lives: list[tuple[Life, Sequence[int]]] = []
        self._waiting: dict[int, list[tuple[Life, Sequence[int]]]] = {}
        self._where = 0  # bit d: something waits at stage `now` - d
        self._now = 0

    def add(self, life: Life, stages: Sequence[int]) -> None:
        """Let a life wait, which those stages touch."""
        self._lives.append((life, stages))
        self._come_to(stages[-1])
        self._wait(stages[-1], (life, stages))

    def over(self, after: int) -> Iterator[Life]:
        """The lives that are over when a stage starts, given in ascending order."""
        self._come_to(after)
        known = self._ancestors
        ready = self._where & known[after] << 1
        while ready:
            first = ready & -ready
            ready ^= first
            self._where ^= first
            for entry in self._waiting.pop(after + 1 - first.bit_length()):
                life, stages = entry
                if life.over:
                    continue
                for position in reversed(stages):
                    if not precedes(known, position, after):
                        self._wait(position, entry)
                        break
                else:
                    life.over = True
                    yield life

    def all_over(self) -> Iterator[Life]:
        """All the lives that were not over before."""
        for life, _ in self._lives:
            if not life.over:
                life.over = True
                yield life

    def _come_to(self, position: int) -> None:
        if position > self._now:
            self._where = self._where << (position - self._now) & _WINDOW
            self._now = position

    def _wait(self, position: int, entry: tuple[Life, Sequence[int]]) -> None:
        """Let a life wait at a stage, unless that is too far back to be known over ever again."""
        if self._now - position <= REMEMBERED:
            self._where |= 1 << (self._now - position)
            self._waiting.setdefault(position, []).append(entry)
