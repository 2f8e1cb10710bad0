"""Writing outputs over donated inputs, so that a large state is held once and updated in place.

An output takes the memory of an input of its type under the rules for loop carries: nothing reads
the input after the first store to the output, and the kernel that makes that store reads, at each
point, only the element that it replaces. Until something else is stored, a plain copy of the input
is the input itself.

So a loop that carries an input, or a branch or an update that changes a part of it, works in the
memory of the argument, and so does what is then made of that, element by element; both the copy
into the carry and the one out of it go. Where a library
call works on the carry, both stay: its addresses are fixed, and those of arguments move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lowering.buffer import Buffer
from lowering.coalesce import Sharing, drop_self_copies, is_own_point, reads_in_place
from lowering.kernel import MapNest
from lowering.plan import Donation
from lowering.stage import (
    Block,
    KernelStage,
    NodeStage,
    Stage,
    nest_stores,
    space_index,
    stage_reads,
    stage_writes,
    walk,
)
from tracegraph.scalar import Load
from tracegraph.types import ArrayType


def overwrite(
    block: Block, outputs: Sequence[Buffer], donated: Sequence[Buffer]
) -> tuple[tuple[Buffer, ...], tuple[Donation, ...]]:
    """Let outputs live in donated inputs, each in one at most.

    The outputs, as the inputs that they live in or as they were, and what became of each donation.
    """
    overwriting = _Overwriting(block, donated)
    for output in outputs:
        overwriting.place(output)
    overwriting.sharing.apply()
    drop_self_copies(block)
    memory = overwriting.memory
    placed = tuple(memory.get(output, output) for output in outputs)
    numbers = {buffer: number for number, buffer in enumerate(placed)}
    left = Counter(output.type for output in outputs if output not in memory)
    types = {output.type for output in outputs}
    found = []
    for source in donated:
        why = ""
        if source.type not in types:
            why = "no output is of its type"
        elif not left[source.type]:
            why = "all outputs of its type are written over other arguments"
        else:
            why = "it is read after outputs of its type are written"
        output_number = numbers.get(source)
        found.append(Donation(source.number, output_number, "" if source in numbers else why))
    return placed, tuple(found)


class _Overwriting:
    """The donated inputs of a block that are free, and the memory of the outputs placed so far."""

    def __init__(self, block: Block, donated: Sequence[Buffer]) -> None:
        self.block = block
        self.memory: dict[Buffer, Buffer] = {}
        self.free: dict[ArrayType, list[Buffer]] = {}
        for source in donated:
            self.free.setdefault(source.type, []).append(source)
        self.sharing = Sharing(block)
        self.writes: dict[Buffer, list[int]] = {}
        for position, stage in enumerate(block.stages):
            for buffer in stage_writes(stage):
                self.writes.setdefault(buffer, []).append(position)
        self.scratch = block.owned - _library_memory(block)
        self.copies: dict[ArrayType, list[Buffer]] = {}
        for buffer, positions in self.writes.items():
            if buffer in self.scratch and buffer.type in self.free:
                begins = _copied(block.stages[positions[0]], buffer)
                if begins in self.free[buffer.type]:
                    self.copies.setdefault(buffer.type, []).append(buffer)

    def place(self, output: Buffer) -> None:
        """Find a free input for an output, if it may be with scratch that the output lives in."""
        if not self.free.get(output.type) or output not in self.writes:
            return
        found = None
        for scratch, later in self._scratch(output):
            found = self._input(scratch, later)
            if found is not None:
                self.sharing.rename(scratch, found)
                break
        found = found or self._input(output)
        if found is not None:
            self.sharing.rename(output, found)
            self.memory[output] = found
            self.free[found.type].remove(found)

    def _scratch(self, output: Buffer) -> Iterator[tuple[Buffer, Sequence[int]]]:
        """The scratch that an output may live in, and where the output is then written.

        That is what it begins as a copy of, or what it replaces of that which begins as an input.
        """
        sharing, writes = self.sharing, self.writes[output]
        source = _copied(sharing.stage(writes[0]), output)
        if source in self.scratch and (
            sharing.stay_equal(output, source, writes[0]) or sharing.can_share(output, source)
        ):
            yield source, writes[1:]
        for copy in self.copies.get(output.type, ()):
            if sharing.name(copy) is copy and sharing.can_share(output, copy):
                yield copy, writes

    def _input(self, new: Buffer, later: Sequence[int] = ()) -> Buffer | None:
        """A free input to write `new` over, and at the stages `later` what goes on living there.

        Before all others the input that it begins as a copy of.
        """
        begins = _copied(self.sharing.stage(self.writes[new][0]), new)
        free = self.free[new.type]
        for old in [begins, *free] if begins in free else free:
            writes = [*self.writes[new][old is begins :], *later]
            if not writes or self._may_follow(new, old, writes[0]):
                return old
        return None

    def _may_follow(self, new: Buffer, old: Buffer, first: int) -> bool:
        """Whether a stage may be the first to store `new` where `old` is."""
        if self.sharing.last_read.get(old, -1) > first:
            return False
        return reads_in_place(self.sharing.stage(first), new, old)


def _copied(stage: Stage, target: Buffer) -> Buffer | None:
    """What a stage copies to `target`, element by element, if that is all that it stores there."""
    if not isinstance(stage, KernelStage):
        return None
    nests = [n for n in stage.nests if any(s.buffer is target for s in nest_stores(n))]
    if len(nests) != 1 or not isinstance(nests[0], MapNest):
        return None
    (nest,) = nests
    own = space_index(nest.space)
    stores = [store for store in nest_stores(nest) if store.buffer is target]
    match stores:
        case [store] if isinstance(store.value, Load) and store.guard is None:
            load = store.value
            plain = is_own_point(load, nest.space) and store.indices == own
            same = load.buffer.type == target.type and target.type.shape == nest.space
            return load.buffer if plain and same else None
    return None


def _library_memory(block: Block) -> set[Buffer]:
    """What library calls work on, in bodies too."""
    calls = [stage for stage in walk(block) if isinstance(stage, NodeStage)]
    return set().union(*(stage_reads(call) | stage_writes(call) for call in calls))
