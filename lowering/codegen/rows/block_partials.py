"""Decoupled look-back: blocks publish partial results, and poll those of other blocks.

After Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (2016).
A ticket numbers each block in the order in which blocks begin, so a block polls only blocks that
run already. It also counts launches: a partial is stored in one transaction with its epoch, the
number of the launch. A reader that sees the epoch has the value, without a fence, and nothing is
cleared between launches.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.rows.accumulator_layout import partial_bytes
from lowering.codegen.rows.accumulators import NumberedAccumulator
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.rounding import ceil_div

POLLED_TOGETHER = 4
"""Partials that a lane loads before it checks the first, so that round trips to L2 overlap. Other
numbers were not measured."""


def take_ticket(writer: SourceWriter, workspace: str, number: str) -> None:
    """Let the first thread take the block's `ticket` from counter `number`. The atomic overlaps
    with other work until the ticket is broadcast.
    """
    tickets = f"reinterpret_cast<tg_u64*>({workspace})"
    writer.line(f"const tg_u64 ticket = thread == 0 ? atomicAdd({tickets} + {number}, 1ull) : 0;")


def broadcast_ticket(writer: SourceWriter, blocks: int, offset: int) -> None:
    """Broadcast the ticket through shared memory at `offset`, and declare what it says: the block's
    `arrival` number among the `blocks` of its counter, and the `epoch`.
    """
    writer.line(f"tg_u64* const shared_ticket = reinterpret_cast<tg_u64*>(shared + {offset});")
    writer.line("if (thread == 0) *shared_ticket = ticket;")
    writer.line("__syncthreads();")
    writer.line(f"const int arrival = int(*shared_ticket % {blocks}ull);")
    writer.line(f"const tg_u32 epoch = tg_u32(*shared_ticket / {blocks}ull) + 1u;")


def declare_partials(
    writer: SourceWriter,
    folds: Sequence[NumberedAccumulator],
    workspace: str,
    offsets: Sequence[int],
) -> None:
    """Declare pointers to the partials of each component, in the workspace."""
    places = iter(offsets)
    for fold in folds:
        for variable, dtype in zip(fold.variables("partial"), fold.dtypes, strict=True):
            kind = f"tg_partial<{partial_bytes(dtype.itemsize) // 8}>"
            writer.line(f"{kind}* const {variable} = ({kind}*)({workspace} + {next(places)});")


def publish(writer: SourceWriter, folds: Sequence[NumberedAccumulator], slot: str) -> None:
    """Publish the totals at a slot; `epoch` is declared."""
    for fold in folds:
        for total, partial in zip(fold.variables("total"), fold.variables("partial"), strict=True):
            writer.line(f"tg_publish({partial} + {slot}, {total}, epoch);")


def poll(
    writer: SourceWriter,
    folds: Sequence[NumberedAccumulator],
    geometry: RowGeometry,
    others: tuple[str, str],
    slot: str = "other",
) -> None:
    """Let the lanes poll the partials of `others`, a half-open range, and fold them into the totals
    in an order that depends on the geometry only. The partial of `other` is at `slot`.
    """
    lanes, (begin, end) = geometry.lanes, others
    components = sum(len(fold.dtypes) for fold in folds)
    parts = max(1, min(POLLED_TOGETHER // components, ceil_div(geometry.splits, lanes)))
    each = f"for (int part = 0, other = first; part < {parts}; ++part, other += {lanes})"
    with writer.block(f"for (int first = {begin} + lane; first < {end}; first += {parts * lanes})"):
        for fold in folds:
            for variable, kind in zip(fold.variables("polled"), fold.types, strict=True):
                writer.variable(kind, variable, parts)
        with writer.block("for (bool all = false; !all;)"):
            writer.line("all = true;")
            with writer.unrolled(each):
                writer.line(f"if (other >= {end}) break;")
                for fold in folds:
                    for partial, variable in zip(
                        fold.variables("partial"), fold.variables("polled"), strict=True
                    ):
                        writer.line(f"all &= tg_poll({partial} + {slot}, epoch, {variable}[part]);")
        with writer.unrolled(each):
            writer.line(f"if (other >= {end}) break;")
            for fold in folds:
                fold.accumulate(
                    writer,
                    "total",
                    tuple(f"{variable}[part]" for variable in fold.variables("polled")),
                )
