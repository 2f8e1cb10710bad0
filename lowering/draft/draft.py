"""Draft: a Plan under construction, from the first nests to the layout of its arena."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.draft.arena_layout import ArenaLayout
from lowering.draft.context import Context
from lowering.draft.dependences import accesses_of
from lowering.draft.draft_nodes import Block, DraftNode, FinishedNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Donation
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.program import Program


@dataclass(slots=True)
class Draft:
    """The blocks of a program, and the buffers of its inputs, constants and outputs.

    `donated` has numbers of inputs. Passes set `donations`, and last of all `memory`.
    """

    program: Program
    context: Context
    block: Block
    inputs: tuple[Buffer, ...]
    constants: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    donated: Sequence[int] = ()
    donations: tuple[Donation, ...] = ()
    memory: ArenaLayout | None = None


def copy_inputs(draft: Draft) -> None:
    """Copy the inputs that library calls read at a fixed address to scratch, before all else.

    What is read behind a barrier only is copied behind it. So is what may have changed there, as it
    has another copy then.
    """
    nodes, copies = draft.block.nodes, draft.context.copies()
    barriers = [i for i, each in enumerate(nodes) if _is_barrier(each)]
    if copies and barriers:
        accesses = [accesses_of(node).reads for node in nodes]
        for copy, scratch in zip(copies, draft.context.scratch_copies.values(), strict=True):
            first = next((i for i, reads in enumerate(accesses) if scratch in reads), 0)
            position = max([barrier + 1 for barrier in barriers if barrier < first], default=0)
            nodes.insert(position, copy)
            accesses.insert(position, frozenset())
            barriers = [barrier + (barrier >= position) for barrier in barriers]
    else:
        nodes[:0] = copies
    draft.block.owned.update(draft.context.scratch_copies.values())


def _is_barrier(node: DraftNode) -> bool:
    return isinstance(node, FinishedNode) and node.plan_node.is_barrier
