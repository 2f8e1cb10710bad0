"""Buffer donation: outputs written over donated inputs, so that a large state is held once.

An output takes the memory of an input of its type under the rules for loop carries: nothing reads
the input after the first store to the output, and the kernel that makes that store reads, at each
point, only the element that it replaces. A plain copy of the input counts as the input itself until
something else is stored there.

So a loop that carries an input, or a branch or an update that changes a part of it, works in the
memory of the argument, and so does what is computed from that element by element. The copies into
and out of the carry disappear. If a library call stores the address of the carry, both stay,
for arguments move from call to call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from lowering.allocation.buffer_sharing import BufferSharing, reads_in_place
from lowering.allocation.in_place import copied_whole
from lowering.draft.draft import Draft
from lowering.draft.draft_nodes import (
    Block,
    DraftKernel,
    DraftNode,
    FinishedNode,
    node_writes,
    walk,
)
from lowering.plan.nests.analysis import stored_buffers
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest
from lowering.plan.plan import Donation
from tracegraph.ir.types import ArrayType

TRIES = 8
"""Free inputs that are tried for one output: bounds the time of planning, which stays linear."""


def donate(draft: Draft) -> None:
    """Place outputs of a draft in its donated inputs, one in each at most."""
    if draft.donated:
        donated = [draft.inputs[number] for number in draft.donated]
        draft.outputs, draft.donations = _overwrite(draft.block, draft.outputs, donated)


def _overwrite(
    block: Block, outputs: Sequence[Buffer], donated: Sequence[Buffer]
) -> tuple[tuple[Buffer, ...], tuple[Donation, ...]]:
    """Each output, or the input that it overwrites; and what became of each donation."""
    placement = _Placement(block, donated)
    for output in outputs:
        placement.place(output)
    placement.sharing.apply()
    memory = placement.memory
    placed = tuple(memory.get(output, output) for output in outputs)
    numbers = {buffer: number for number, buffer in enumerate(placed)}
    left = Counter(output.type for output in outputs if output not in memory)
    types = {output.type for output in outputs}
    found = []
    for source in donated:
        if source in numbers:
            why = ""
        elif source.type not in types:
            why = "no output is of its type"
        elif not left[source.type]:
            why = "all outputs of its type are written over other arguments"
        else:
            why = "it is read after outputs of its type are written"
        found.append(Donation(source.number, numbers.get(source), why))
    return placed, tuple(found)


class _Placement:
    """Outputs placed in donated inputs so far, and the inputs that are still free."""

    def __init__(self, block: Block, donated: Sequence[Buffer]) -> None:
        self.block = block
        self.memory: dict[Buffer, Buffer] = {}  # output -> the input that it overwrites
        self.numbers: dict[Buffer, int] = {}  # of inputs, among those of their type
        self.free: dict[ArrayType, dict[int, Buffer]] = {}  # by these numbers
        for source in donated:
            same = self.free.setdefault(source.type, {})
            self.numbers[source] = len(same)
            same[len(same)] = source
        self.visited: Counter[ArrayType] = Counter()  # outputs so far
        self.sharing = BufferSharing(block)
        self.writes: dict[Buffer, list[int]] = {}
        self.copied_from: dict[Buffer, Buffer] = {}  # what a buffer starts as a copy of
        for position, node in enumerate(block.nodes):
            copies = dict(_copies(node))
            for buffer in node_writes(node):
                writes = self.writes.setdefault(buffer, [])
                if not writes and buffer in copies:
                    self.copied_from[buffer] = copies[buffer]
                writes.append(position)
        self.scratch = block.owned - _fixed_buffers(block)
        self.copies: dict[ArrayType, list[Buffer]] = {}
        for buffer, source in self.copied_from.items():
            if buffer in self.scratch and source in self.numbers:
                self.copies.setdefault(buffer.type, []).append(buffer)

    def place(self, output: Buffer) -> None:
        """Place an output in a free input, together with scratch that it replaces, if possible."""
        number = self.visited[output.type]
        self.visited[output.type] += 1
        if not self.free.get(output.type) or output not in self.writes:
            return
        donated = None
        for scratch, later in self._scratch(output):
            donated = self._input(number, scratch, later)
            if donated is not None:
                self.sharing.replace(scratch, donated)
                break
        donated = donated or self._input(number, output)
        if donated is not None:
            self.sharing.replace(output, donated)
            self.memory[output] = donated
            del self.free[donated.type][self.numbers[donated]]

    def _scratch(self, output: Buffer) -> Iterator[tuple[Buffer, Sequence[int]]]:
        """The scratch that an output may share memory with, and where the output is then written.

        That is what it starts as a copy of; then copies of inputs that it may overwrite.
        """
        writes = self.writes[output]
        source = self.copied_from.get(output)
        if source is not None and self._is_free(source):
            same = self.sharing.stay_equal(output, source, writes[0])
            if same or self._may_replace(output, source):
                yield source, writes[1:]
        for copy in self.copies.get(output.type, ()):
            if self._is_free(copy) and self._may_replace(output, copy):
                yield copy, writes

    def _is_free(self, buffer: Buffer) -> bool:
        return buffer in self.scratch and self.sharing.resolve(buffer) is buffer

    def _may_replace(self, output: Buffer, scratch: Buffer) -> bool:
        """Whether an output may use the memory of scratch, as in `BufferSharing.can_share`."""
        first = self.writes[output][0]
        unwritten = self.writes[scratch][-1] < first
        return unwritten and self._may_follow(output, scratch, first)

    def _input(self, number: int, new: Buffer, later: Sequence[int] = ()) -> Buffer | None:
        """A free input that `new` may overwrite, and what the nodes `later` write there.

        The input that it starts as a copy of is tried first, then the one of the same number.
        """
        source = self.copied_from.get(new)
        free = self.free[new.type]
        own = None if source is None else self.numbers.get(source)
        for n in dict.fromkeys((own, number, *islice(free, TRIES))):
            old = None if n is None else free.get(n)
            if old is None:
                continue
            writes = [*self.writes[new][old is source :], *later]
            if not writes or self._may_follow(new, old, writes[0]):
                return old
        return None

    def _may_follow(self, new: Buffer, old: Buffer, first: int) -> bool:
        """Whether `new` may overwrite `old` if it is first stored by this node."""
        last = self.sharing.last_read.get(old, -1)
        if last != first:
            return last < first
        # the node is not rewritten: neither buffer shares memory yet
        return reads_in_place(self.block.nodes[first], new, old)


def _copies(node: DraftNode) -> Iterator[tuple[Buffer, Buffer]]:
    """(target, source) where all that a node stores to a buffer is an elementwise copy."""
    nests = node.nests if isinstance(node, DraftKernel) else ()
    stores = Counter(buffer for nest in nests for buffer in stored_buffers(nest))
    for nest in nests:
        if not isinstance(nest, MapNest) or nest.predicates:
            continue
        for store in nest.stores:
            source = copied_whole(store, nest.space)
            if source is not None and stores[store.buffer] == 1:
                yield store.buffer, source


def _fixed_buffers(block: Block) -> set[Buffer]:
    """The buffers of nodes that store their addresses, as library calls do; bodies included."""
    plan_nodes = [node.plan_node for node in walk(block) if isinstance(node, FinishedNode)]
    return set().union(*(plan_node.fixed_buffers for plan_node in plan_nodes))
