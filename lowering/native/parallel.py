"""Nests whose chunks threads share: each is a function of its own, which the pool calls.

    void nest(ptr table, ptr arena, ptr frame, i64 chunk)

`frame` is memory of the calling function for what a chunk needs of it and gives back. Chunks call
no host: what a nest signals comes after all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from lowering.native.table import POOL, RUN_CHUNKS, Table
from lowering.native.writer import Writer


class ChunkFunctions:
    """Writes functions of chunks into the module of a plan."""

    def __init__(self, writer: Writer, table: Table) -> None:
        self._writer, self._table = writer, table

    def write(self, frame: str, count: int, body: Callable[[], object]) -> None:
        """Write the function that `body` writes, whose chunk is %chunk, and the call of the pool
        for all chunks.
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
        pool, run = (self._entry(entry) for entry in (POOL, RUN_CHUNKS))
        passed = f"ptr {pool}, ptr {name}, ptr %table, ptr %arena, ptr {frame}, i64 {count}"
        writer.line(f"call void {run}({passed})")

    def _entry(self, name: str) -> str:
        place = self._table.place(name)
        entry = self._writer.assign(f"getelementptr inbounds ptr, ptr %table, i64 {place}")
        return self._writer.assign(f"load ptr, ptr {entry}")
