"""Draft: a Plan under construction, from the first nests to the layout of its arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lowering.draft.arena_layout import ArenaLayout
from lowering.draft.context import Context
from lowering.draft.dependences import accesses_of
from lowering.draft.stage import Block, NodeStage, Stage
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Donation
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


def stage_inputs(draft: Draft) -> None:
    """Copy the inputs that library calls read at a fixed address to scratch, before all else.

    What is read behind a barrier only is copied behind it. So is what may have changed there, as it
    has another copy then.
    """
    stages, staging = draft.block.stages, draft.context.staging()
    barriers = [i for i, each in enumerate(stages) if _is_barrier(each)]
    if staging and barriers:
        accesses = [accesses_of(stage).reads for stage in stages]
        for copy, staged in zip(staging, draft.context.staged.values(), strict=True):
            first = next((i for i, reads in enumerate(accesses) if staged in reads), 0)
            position = max([barrier + 1 for barrier in barriers if barrier < first], default=0)
            stages.insert(position, copy)
            accesses.insert(position, frozenset())
            barriers = [barrier + (barrier >= position) for barrier in barriers]
    else:
        stages[:0] = staging
    draft.block.owned.update(draft.context.staged.values())


def _is_barrier(stage: Stage) -> bool:
    return isinstance(stage, NodeStage) and stage.node.is_barrier
