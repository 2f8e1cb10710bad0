"""Records of launch geometry: how blocks and threads share the work of each kind of nest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lowering.codegen.maps.transpose_tiles import Transpose
from lowering.codegen.offsets import offsets_of
from lowering.plan.target.hardware import WARP
from tracegraph.generated.dataclass import dataclass

FULL_DEVICE = 512
"""Blocks that fill a large GPU: four for each multiprocessor of an H200, which has 132."""

MANY_THREADS = 1 << 19
"""More threads than a large GPU runs at once (270,336 on an H200). Below, a thread has one vector:
float16 of 2**19 elements reaches 78 % of a copy instead of 59, float32 75 instead of 69 (H200)."""

LARGE_ROWS = 1 << 20
"""Elements of rows from which they are vectorised: fewer are spread over more threads."""


@dataclass(frozen=True, slots=True)
class MapGeometry:
    """`blocks` blocks of threads with `points` points each; the points of a block are contiguous.

    `width` consecutive points may be one vector access.
    """

    threads: int
    points: int
    blocks: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class TileGeometry:
    """One tile of a transpose for each block."""

    threads: int
    transpose: Transpose
    blocks: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class RowGeometry:
    """A block is `outputs` × `lanes` threads; the lanes share the loop of one output, or row.

    With `adjacent`, neighbouring threads are lanes of one output, else they are of neighbouring
    outputs. `splits` blocks share the loops of one tile of outputs: 1 if there are several passes.
    `width` consecutive steps may be one vector access. A `cluster` of blocks may share each output;
    `lanes` then counts the threads of all of them.
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
        """Whether the lanes of an output are reduced by warp shuffles."""
        return self.adjacent and self.threads >= WARP

    @property
    def shared_slots(self) -> int:
        """Elements that each component of an accumulator has in shared memory."""
        if not self.by_shuffle:
            return self.threads if self.lanes > 1 else 0
        return self.threads // WARP if self.lanes > WARP else 0

    def shared_offsets(self, components: Iterable[np.dtype[Any]]) -> list[int]:
        """The begin of each component's array in shared memory, and the end of the last."""
        return offsets_of(self.shared_slots * dtype.itemsize for dtype in components)


@dataclass(frozen=True, slots=True)
class ProductGeometry:
    """Tiles of a product. A block has `groups` of `rows` × `columns` threads, each with a tile of a
    matrix of its own, and each thread has `row_outputs` × `column_outputs` outputs. Or `slices` of
    `rows` × `columns` threads have the same tile, and share the products of its sums.

    A block reads `depth` products of each sum at a time, and each slice multiplies a part of them.
    `splits` blocks share the sums of a tile: each has a `share` of the products. The compiler has
    to leave registers for `resident` blocks of a multiprocessor, so that one loads while another
    multiplies. With `by_warps`, tensor cores multiply: a warp is 8 × 4 threads, and its matrices
    say which outputs a thread has.
    """

    rows: int
    columns: int
    row_outputs: int
    column_outputs: int
    groups: int
    slices: int
    depth: int
    batch: int
    row_tiles: int
    column_tiles: int
    splits: int
    share: int
    shared_bytes: int
    workspace_bytes: int
    resident: int
    by_warps: bool

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.slices * self.rows * self.columns

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return self.rows * self.row_outputs

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.columns * self.column_outputs

    @property
    def tiles(self) -> int:
        """Tiles of outputs; those of the groups of a block count as one."""
        return -(-self.batch // self.groups) * self.row_tiles * self.column_tiles

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.tiles * self.splits


@dataclass(frozen=True, slots=True)
class ScanGeometry:
    """A thread for each line or, with `by_block`, `splits` blocks for each line."""

    threads: int
    by_block: bool
    blocks: int
    shared_bytes: int
    splits: int = 1
    workspace_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ScatterGeometry:
    """`owners` threads, a power of two, for each independent point. All evaluate the targets of all
    updates, and each makes those whose target it owns. With `atomic`, `points` updates for each
    thread; with `shared_bytes`, each block folds its own in shared memory first. With `grouped`, a
    thread for each update; that of the first or last of an element makes all of them.
    """

    threads: int
    owners: int
    blocks: int
    atomic: bool = False
    points: int = 1
    shared_bytes: int = 0
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class PrintGeometry:
    """One block. Its threads read the begin of their record from shared memory."""

    threads: int
    blocks: int = 1
    shared_bytes: int = 16


LaunchGeometry = (
    MapGeometry
    | TileGeometry
    | RowGeometry
    | ProductGeometry
    | ScanGeometry
    | ScatterGeometry
    | PrintGeometry
)


def shared_bytes(geometry: LaunchGeometry) -> int:
    """Bytes of shared memory that a block needs."""
    return 0 if isinstance(geometry, MapGeometry) else geometry.shared_bytes


def workspace_bytes(geometry: LaunchGeometry) -> int:
    """Bytes of workspace that the blocks of a nest share."""
    if isinstance(geometry, (RowGeometry, ProductGeometry, ScanGeometry)):
        return geometry.workspace_bytes
    return 0
