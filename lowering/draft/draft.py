"""Draft: a Plan under construction, from the first nests to the layout of its arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lowering.draft.arena_layout import ArenaLayout
from lowering.draft.context import Context
from lowering.draft.stage import Block
from lowering.plan.buffer import Buffer
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
    """Copy the inputs that library calls read at a fixed address to scratch, before all else."""
    draft.block.stages[:0] = draft.context.staging()
    draft.block.owned.update(draft.context.staged.values())
