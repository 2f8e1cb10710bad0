"""Shares: blocks that share the loop of an output publish each other what they have found.

Blocks take tickets, which number them in the order in which they begin and count the launches:
whoever waits, waits for blocks that run already. Each result is written and read as one with its
round, the number of the launch: who sees the round has the result, without a fence, and nothing is
cleared between launches.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.rows.accumulator_layout import partial_bytes
from lowering.codegen.rows.accumulators import Fold
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.rounding import ceil_div

POLLED_TOGETHER = 4
"""Values that a lane asks for, at least, before it looks whether the first is there."""


def take_ticket(writer: SourceWriter, workspace: str, number: str) -> None:
    """Let the first thread of the block take its `ticket`, at the counter of this number; nobody
    waits for it before it is shared.
    """
    tickets = f"reinterpret_cast<tg_u64*>({workspace})"
    writer.line(f"const tg_u64 ticket = thread == 0 ? atomicAdd({tickets} + {number}, 1ull) : 0;")


def broadcast_ticket(writer: SourceWriter, blocks: int, offset: int) -> None:
    """Declare what the ticket tells all threads of the block, by way of an offset in shared memory:
    its `place` among the `blocks` at the same counter, by when they began, and the `round`.
    """
    writer.line(f"tg_u64* const shared_ticket = reinterpret_cast<tg_u64*>(shared + {offset});")
    writer.line("if (thread == 0) *shared_ticket = ticket;")
    writer.line("__syncthreads();")
    writer.line(f"const int arrival = int(*shared_ticket % {blocks}ull);")
    writer.line(f"const tg_u32 epoch = tg_u32(*shared_ticket / {blocks}ull) + 1u;")


def declare_partials(
    writer: SourceWriter, folds: Sequence[Fold], workspace: str, offsets: Sequence[int]
) -> None:
    """Declare where in the workspace the results of each cell of the folds are told."""
    places = iter(offsets)
    for fold in folds:
        for cell, dtype in zip(fold.variables("partial"), fold.dtypes, strict=True):
            kind = f"tg_partial<{partial_bytes(dtype.itemsize) // 8}>"
            writer.line(f"{kind}* const {cell} = ({kind}*)({workspace} + {next(places)});")


def publish(writer: SourceWriter, folds: Sequence[Fold], slot: str) -> None:
    """Tell the totals to whoever listens to a slot; `round` is declared."""
    for fold in folds:
        for mine, told in zip(fold.variables("total"), fold.variables("partial"), strict=True):
            writer.line(f"tg_publish({told} + {slot}, {mine}, epoch);")


def poll(
    writer: SourceWriter,
    folds: Sequence[Fold],
    geometry: RowGeometry,
    others: tuple[str, str],
    slot: str = "other",
) -> None:
    """Let the lanes wait for the results of `others`, from the first of a range to before the last,
    and fold them into the totals in an order that depends on the shape only. The result of `other`
    is told at a slot.
    """
    lanes, (begin, end) = geometry.lanes, others
    cells = sum(len(fold.dtypes) for fold in folds)
    parts = max(1, min(POLLED_TOGETHER // cells, ceil_div(geometry.splits, lanes)))
    each = f"for (int part = 0, other = first; part < {parts}; ++part, other += {lanes})"
    with writer.block(f"for (int first = {begin} + lane; first < {end}; first += {parts * lanes})"):
        for fold in folds:
            for cell, kind in zip(fold.variables("polled"), fold.types, strict=True):
                writer.line(f"{kind} {cell}[{parts}];")
        with writer.block("for (bool all = false; !all;)"):
            writer.line("all = true;")
            with writer.unrolled(each):
                writer.line(f"if (other >= {end}) break;")
                for fold in folds:
                    for told, cell in zip(
                        fold.variables("partial"), fold.variables("polled"), strict=True
                    ):
                        writer.line(f"all &= tg_poll({told} + {slot}, epoch, {cell}[part]);")
        with writer.unrolled(each):
            writer.line(f"if (other >= {end}) break;")
            for fold in folds:
                fold.accumulate(
                    writer, "total", tuple(f"{cell}[part]" for cell in fold.variables("polled"))
                )
