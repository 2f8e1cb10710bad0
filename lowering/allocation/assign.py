"""First-fit placement of scratch buffers in one arena: buffers share bytes if their lifetimes are
disjoint.

Time is the order of execution, bodies included. A buffer is live from its first to its last access.
One that a loop uses but does not own is live through the whole loop, since the next step may read
it. Bytes are reused only along dependences that exist anyway, so that sharing never orders
independent work. Branches of one conditional exclude each other, and always may share.
"""

from __future__ import annotations

from lowering.allocation.free_ranges import FreeRanges
from lowering.allocation.liveness import Life, Lifetimes
from lowering.draft.arena_layout import ArenaLayout
from lowering.draft.dependences import Accesses, Order, accesses_around, order
from lowering.draft.draft import Draft
from lowering.draft.draft_nodes import Block, DraftLoop, DraftNode, blocks, control_reads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.target.hardware import ALIGNMENT


def assign_memory(draft: Draft) -> None:
    """Place the scratch buffers of all blocks in one arena."""
    draft.memory = _LivenessAnalysis(draft.block).first_fit()


class _LivenessAnalysis:
    """The dependences of each block's nodes, and the life of each scratch buffer."""

    def __init__(self, root: Block) -> None:
        self.spans: dict[DraftNode, tuple[int, int]] = {}  # first and last moment, bodies included
        self.orders: dict[Block, Order] = {}
        self.lives: dict[Buffer, Life] = {}
        self._number(root, 0)
        self._collect(root, ())

    def _number(self, block: Block, start: int) -> int:
        """Number the moments of a block in order of execution; the moment after it."""
        accesses = []
        now = start
        for node in block.nodes:
            first = now
            inside: list[Accesses] = []
            for inner in blocks(node):
                now = self._number(inner, now + 1)
                inside += self.orders[inner].accesses
            accesses.append(accesses_around(node, inside))
            self.spans[node] = (first, now)
            now += 1
        self.orders[block] = order(accesses)
        return now

    def _collect(self, block: Block, path: tuple[tuple[Block, int], ...]) -> None:
        accesses = self.orders[block].accesses
        for buffer in block.resident:
            start, end = self.spans[block.nodes[0]][0], self.spans[block.nodes[-1]][1]
            self.lives[buffer] = Life(start, end, path, block, list(range(len(block.nodes))))
        for position, node in enumerate(block.nodes):
            here = (*path, (block, position))
            for buffer in control_reads(node):
                self._access(buffer, here)
            if inside := blocks(node):
                for inner in inside:
                    self._collect(inner, here)
                continue
            accessed = accesses[position]
            for resource in accessed.reads | accessed.writes:
                if isinstance(resource, Buffer) and resource.space == "scratch":
                    self._access(resource, here)

    def _access(self, buffer: Buffer, path: tuple[tuple[Block, int], ...]) -> None:
        depth = 0
        while buffer not in path[depth][0].owned:
            depth += 1
        for block, place in path[depth:]:  # to the outermost loop that uses but does not own it
            node = block.nodes[place]
            if isinstance(node, DraftLoop):
                break
        start, end = self.spans[node]
        owner, position = path[depth]
        if buffer in owner.resident:
            return
        life = self.lives.get(buffer)
        if life is None:
            self.lives[buffer] = Life(start, end, path[:depth], owner, [position])
            return
        life.start, life.end = min(life.start, start), max(life.end, end)
        if life.nodes[-1] != position:
            life.nodes.append(position)

    def first_fit(self) -> ArenaLayout:
        """Place buffers in the order in which they become live, large ones first."""
        offsets: dict[Buffer, int] = {}
        places: dict[Life, tuple[int, int]] = {}  # offset and size
        total = unshared = 0
        lives, lifetimes, free_list = self.lives, Lifetimes(self.orders), FreeRanges()
        for buffer in sorted(lives, key=lambda b: (lives[b].start, -b.type.nbytes, b.number)):
            life = lives[buffer]
            for dead in lifetimes.begin(life):
                free_list.free(*places[dead])
            size = round_up(max(buffer.type.nbytes, 1), ALIGNMENT)
            offset = free_list.allocate(size)
            offsets[buffer], places[life] = offset, (offset, size)
            total = max(total, offset + size)
            unshared += size
        return ArenaLayout(offsets, total, total < unshared, self.orders)
