"""Where scratch buffers lie in the arena: buffers whose lifetimes do not meet share memory.

Time is the order of execution, bodies included. A buffer lives from its first to its last access;
one that a loop uses but does not own lives through the whole loop, since the next trip may read it.
Memory passes on only along dependences that exist anyway, so that sharing never orders independent
work; the branches of a conditional exclude each other, hence always may share.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lowering.buffer import Buffer
from lowering.edges import Order, order, precedes
from lowering.rounding import round_up
from lowering.stage import Block, LoopStage, Stage, blocks

ALIGNMENT = 256
"""Bytes; what the CUDA allocator gives, so that vector accesses and libraries are content."""


@dataclass(slots=True)
class _Life:
    """When a buffer is in use (moments, both included), and the owner's stages that touch it."""

    start: int
    end: int
    path: tuple[tuple[Block, int], ...]  # blocks around the owner, and where in each
    owner: Block
    stages: list[int] = field(default_factory=list)


class Arrangement(NamedTuple):
    """The byte offset of every scratch buffer in an arena of so many bytes.

    `orders` are what the blocks' stages depend on without it, and with it, unless it is `shared`.
    """

    offsets: dict[Buffer, int]
    nbytes: int
    shared: bool
    orders: dict[Block, Order]


def arrange(root: Block) -> Arrangement:
    """Where the scratch buffers of a block lie, and of the blocks inside."""
    return _Arranging(root).first_fit()


class _Arranging:
    def __init__(self, root: Block) -> None:
        self.spans: dict[Stage, tuple[int, int]] = {}
        self.orders: dict[Block, Order] = {}
        self.lives: dict[Buffer, _Life] = {}
        self._number(root, 0)
        self._collect(root, ())

    def _number(self, block: Block, start: int) -> int:
        self.orders[block] = order(block.stages)
        now = start
        for stage in block.stages:
            first = now
            for inner in blocks(stage):
                now = self._number(inner, now + 1)
            self.spans[stage] = (first, now)
            now += 1
        return now

    def _collect(self, block: Block, path: tuple[tuple[Block, int], ...]) -> None:
        accesses = self.orders[block].accesses
        for position, stage in enumerate(block.stages):
            here = (*path, (block, position))
            if blocks(stage):
                for inner in blocks(stage):
                    self._collect(inner, here)
                continue
            touched = accesses[position]
            for resource in touched.reads | touched.writes:
                if isinstance(resource, Buffer) and resource.space == "scratch":
                    self._access(resource, here)

    def _access(self, buffer: Buffer, path: tuple[tuple[Block, int], ...]) -> None:
        depth = 0
        while buffer not in path[depth][0].owned:
            depth += 1
        for block, place in path[depth:]:  # to the outermost loop that uses but does not own it
            stage = block.stages[place]
            if isinstance(stage, LoopStage):
                break
        start, end = self.spans[stage]
        owner, position = path[depth]
        life = self.lives.get(buffer)
        if life is None:
            self.lives[buffer] = _Life(start, end, path[:depth], owner, [position])
            return
        life.start, life.end = min(life.start, start), max(life.end, end)
        life.stages.append(position)

    def first_fit(self) -> Arrangement:
        offsets: dict[Buffer, int] = {}
        total = alone = 0
        active: list[tuple[int, int, Buffer]] = []  # start and end byte; by start
        lives = self.lives
        for buffer in sorted(lives, key=lambda b: (lives[b].start, -b.type.nbytes, b.number)):
            size = round_up(max(buffer.type.nbytes, 1), ALIGNMENT)
            begin = lives[buffer].start
            active = [
                entry
                for entry in active
                if lives[entry[2]].end >= begin or not self._hands_over(entry[2], buffer)
            ]
            offset = 0
            for start, end, _ in active:
                if start - offset >= size:
                    break
                offset = max(offset, end)
            insort(active, (offset, offset + size, buffer), key=lambda entry: entry[:2])
            offsets[buffer] = offset
            total = max(total, offset + size)
            alone += size
        return Arrangement(offsets, total, total < alone, self.orders)

    def _hands_over(self, old: Buffer, new: Buffer) -> bool:
        """Whether all use of `old`, which ends before, is surely over when `new` is first used."""
        was, will = self.lives[old], self.lives[new]
        if was.owner is will.owner:
            return self._are_over(was.owner, was.stages, min(will.stages))
        for (block, before), (other, now) in zip(_levels(was), _levels(will), strict=False):
            if block is not other:
                return True  # two branches of one conditional
            after = min(now)
            if len(before) > 1 or len(now) > 1 or before != now:
                return self._are_over(block, before, after)
        return False

    def _are_over(self, block: Block, stages: Collection[int], after: int) -> bool:
        """Whether the stages of a block at these positions are when the one `after` them starts."""
        known = self.orders[block].ancestors
        return all(precedes(known, position, after) for position in stages)


def _levels(life: _Life) -> Iterator[tuple[Block, set[int]]]:
    """For each block from the root to the owner, the positions at which the buffer is touched."""
    for block, position in life.path:
        yield block, {position}
    yield life.owner, set(life.stages)
