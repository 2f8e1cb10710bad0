"""Shapes: how the blocks and threads of each kind of nest share its work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.codegen.maps.transpose_tiles import Transpose
from lowering.codegen.offsets import offsets_of

WARP = 32  # threads that run together
FULL_DEVICE = 512  # blocks that keep a large GPU busy
MANY_THREADS = 1 << 19  # more than a large GPU runs together
LARGE_ROWS = 1 << 20  # steps of rows from which a thread takes several as one


@dataclass(frozen=True, slots=True)
class MapGeometry:
    """`blocks` blocks of threads with `points` points each; a block's points are contiguous.

    Of these, `width` that follow each other may be accessed as one.
    """

    threads: int
    points: int
    blocks: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class TileGeometry:
    """Each block has one tile of a transpose."""

    threads: int
    transpose: Transpose
    blocks: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class RowGeometry:
    """A block is `outputs` × `lanes` threads; the lanes share the loop of one output, or row.

    With `adjacent`, lanes of one output are neighbours, else outputs are. `splits` blocks share the
    loops of one tile of outputs: 1 if there are several passes over the loop. Of the steps, `width`
    that follow each other may be accessed as one. A `cluster` of blocks may share each output: its
    lanes are those of all of them.
    """

    outputs: int
    lanes: int
    adjacent: bool
    tiles: int
    splits: int
    shared_bytes: int
    workspace_bytes: int
    width: int = 1
    cluster: int = 1

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.tiles * self.splits * self.cluster

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.outputs * self.lanes // self.cluster

    @property
    def stride(self) -> int:
        """Threads from one lane of an output to the next."""
        return 1 if self.adjacent else self.outputs

    @property
    def by_shuffle(self) -> bool:
        """Whether the lanes of an output are neighbours in whole warps, which exchange results."""
        return self.adjacent and self.threads >= WARP

    @property
    def shared_slots(self) -> int:
        """Results that a block has in shared memory at a time, for each cell of a fold."""
        if not self.by_shuffle:
            return self.threads if self.lanes > 1 else 0
        return self.threads // WARP if self.lanes > WARP else 0

    def shared_offsets(self, cells: Iterable[np.dtype[Any]]) -> list[int]:
        """Where in shared memory the results of each cell begin, and where the last end."""
        return offsets_of(self.shared_slots * cell.itemsize for cell in cells)


@dataclass(frozen=True, slots=True)
class ScanGeometry:
    """One thread a line; or, with `together`, `splits` blocks a line."""

    threads: int
    together: bool
    blocks: int
    shared_bytes: int
    splits: int = 1
    workspace_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ScatterGeometry:
    """`owners` threads for each independent point: they all walk the updates in order, and each
    makes those to the targets that it owns. A power of two.
    """

    threads: int
    owners: int
    blocks: int


@dataclass(frozen=True, slots=True)
class PrintGeometry:
    """One block, which shares the place of its record in the print ring."""

    threads: int
    blocks: int = 1
    shared_bytes: int = 16


LaunchGeometry = (
    MapGeometry | TileGeometry | RowGeometry | ScanGeometry | ScatterGeometry | PrintGeometry
)
