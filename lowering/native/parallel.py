"""Nests whose chunks threads share: each is a function of its own, which the pool calls.

    void nest(ptr table, ptr arena, ptr frame, i64 chunk)

`frame` is memory of the calling function for what a chunk needs of it and gives back. Chunks call
no host: what a nest signals comes after all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from lowering.native.schedule import Chunks
from lowering.native.table import POOL, RUN_CHUNKS, Table
from lowering.native.writer import Writer

LONGEST_CALL = 20_000_000
"""Nanoseconds of a call of the pool, about: it cannot be stopped."""


class ChunkFunctions:
    """Writes functions of chunks into the module of a plan."""

    def __init__(self, writer: Writer, table: Table) -> None:
        self._writer, self._table = writer, table

    def write(self, frame: str, chunks: Chunks, body: Callable[[], object]) -> None:
        """Write the function that `body` writes, whose chunk is %chunk, and the call of the pool
        for all chunks; or, if they take long, a loop of calls, which can be stopped.
        """
        writer = self._writer
        with writer.function() as function:
            body()
        name = f"@nest{len(writer.functions)}"
        writer.functions.append(
            "\n".join(
                (
                    f"define internal void {name}(ptr noalias readonly %table, "
                    "ptr noalias %arena, ptr %frame, i64 %chunk) #1 {",
                    "entry:",
                    *function.frame,
                    *function.lines,
                    "  ret void",
                    "}",
                )
            )
        )
        calls = min(max(int(chunks.time / LONGEST_CALL), 1), chunks.count)
        size = -(-chunks.count // calls)
        pool, run = (self._table.load(writer, entry) for entry in (POOL, RUN_CHUNKS))

        def call(first: str, end: str) -> None:
            passed = f"ptr {pool}, ptr {name}, ptr %table, ptr %arena, ptr {frame}"
            writer.line(f"call void {run}({passed}, i64 {first}, i64 {end})")
            writer.work += int(chunks.time / calls)

        def group(number: str) -> None:
            call(*writer.piece(number, size, str(chunks.count)))

        if calls == 1:
            call("0", str(chunks.count))
        else:
            writer.loop("0", str(-(-chunks.count // size)), group)
