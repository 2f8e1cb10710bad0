"""The threads of a persistent kernel."""

from __future__ import annotations

from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """The threads that run a persistent kernel, and synchronise between its phases.

    With `clustered`, its blocks are one cluster, on devices that have clusters. A device with fewer
    multiprocessors than blocks runs fewer blocks. With `lanes`, the extents of the lanes of a loop,
    each thread makes all steps of one lane, and none synchronises. With `beside`, they are the
    first blocks of a launch, whose others wait for none.
    """

    blocks: int
    threads: int
    clustered: bool = False
    lanes: tuple[int, ...] = ()
    beside: bool = False

    def __str__(self) -> str:
        if self.lanes:
            return f"a thread for each of {' x '.join(map(str, self.lanes))} lanes"
        if self.blocks == 1:
            return "1 thread" if self.threads == 1 else f"{self.threads} threads"
        what = "a cluster of " if self.clustered else ""
        return f"{what}{self.blocks} blocks of {self.threads} threads"
