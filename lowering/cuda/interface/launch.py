"""Launches: a kernel with its grid, its blocks and their memory."""

from __future__ import annotations

from typing import Any

from tracegraph.generated.dataclass import dataclass

__all__ = ["Launch", "has_clusters"]


@dataclass(frozen=True, slots=True)
class Launch:
    """What a kernel launch runs: the function, blocks, threads of a block, dynamic shared bytes.

    With `cooperative`, all blocks are resident at the same time. `cluster` are the blocks of a
    cluster, where the code of the kernel does not say it.
    """

    kernel: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cooperative: bool = False
    cluster: tuple[int, int, int] | None = None


def has_clusters(arch: str) -> bool:
    """Whether devices of an architecture, such as ``"sm_90"``, have thread block clusters."""
    return int(arch.removeprefix("sm_")) >= 90
