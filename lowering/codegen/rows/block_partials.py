"""Shares: blocks that share the loop of an output tell each other what they have found.

Blocks take tickets, which number them in the order in which they begin and count the launches:
whoever waits, waits for blocks that run already. Each result is written and read as one with its
round, the number of the launch: who sees the round has the result, without a fence, and nothing is
cleared between launches.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.geometry_records import ReduceShape
from lowering.codegen.rows.accumulator_layout import told_bytes
from lowering.codegen.rows.accumulators import Fold
from lowering.codegen.source_writer import Body
from lowering.plan.rounding import ceil_div

AT_ONCE = 4
"""Values that a lane asks for, at least, before it looks whether the first is there."""


def take_ticket(body: Body, workspace: str, number: str) -> None:
    """Let the first thread of the block take its `ticket`, at the counter of this number; nobody
    waits for it before it is shared.
    """
    tickets = f"reinterpret_cast<tg_u64*>({workspace})"
    body.line(f"const tg_u64 ticket = thread == 0 ? atomicAdd({tickets} + {number}, 1ull) : 0;")


def share_ticket(body: Body, blocks: int, offset: int) -> None:
    """Declare what the ticket tells all threads of the block, by way of an offset in shared memory:
    its `place` among the `blocks` at the same counter, by when they began, and the `round`.
    """
    body.line(f"tg_u64* const taken = reinterpret_cast<tg_u64*>(shared + {offset});")
    body.line("if (thread == 0) *taken = ticket;")
    body.line("__syncthreads();")
    body.line(f"const int place = int(*taken % {blocks}ull);")
    body.line(f"const tg_u32 round = tg_u32(*taken / {blocks}ull) + 1u;")


def declare_told(body: Body, folds: Sequence[Fold], workspace: str, offsets: Sequence[int]) -> None:
    """Declare where in the workspace the results of each cell of the folds are told."""
    places = iter(offsets)
    for fold in folds:
        for cell, dtype in zip(fold.cells("told"), fold.dtypes, strict=True):
            kind = f"tg_told<{told_bytes(dtype.itemsize) // 8}>"
            body.line(f"{kind}* const {cell} = ({kind}*)({workspace} + {next(places)});")


def tell(body: Body, folds: Sequence[Fold], slot: str) -> None:
    """Tell the totals to whoever listens to a slot; `round` is declared."""
    for fold in folds:
        for mine, told in zip(fold.cells("total"), fold.cells("told"), strict=True):
            body.line(f"tg_tell({told} + {slot}, {mine}, round);")


def hear(
    body: Body,
    folds: Sequence[Fold],
    shape: ReduceShape,
    others: tuple[str, str],
    slot: str = "other",
) -> None:
    """Let the lanes wait for the results of `others`, from the first of a range to before the last,
    and fold them into the totals in an order that depends on the shape only. The result of `other`
    is told at a slot.
    """
    lanes, (begin, end) = shape.lanes, others
    cells = sum(len(fold.dtypes) for fold in folds)
    parts = max(1, min(AT_ONCE // cells, ceil_div(shape.splits, lanes)))
    each = f"for (int part = 0, other = first; part < {parts}; ++part, other += {lanes})"
    with body.block(f"for (int first = {begin} + lane; first < {end}; first += {parts * lanes})"):
        for fold in folds:
            for cell, kind in zip(fold.cells("heard"), fold.types, strict=True):
                body.line(f"{kind} {cell}[{parts}];")
        with body.block("for (bool all = false; !all;)"):
            body.line("all = true;")
            with body.unrolled(each):
                body.line(f"if (other >= {end}) break;")
                for fold in folds:
                    for told, cell in zip(fold.cells("told"), fold.cells("heard"), strict=True):
                        body.line(f"all &= tg_listen({told} + {slot}, round, {cell}[part]);")
        with body.unrolled(each):
            body.line(f"if (other >= {end}) break;")
            for fold in folds:
                fold.absorb(body, "total", tuple(f"{cell}[part]" for cell in fold.cells("heard")))
