"""Selecting the largest elements of rows: a node that is one or more kernels on CUDA, and a NumPy
call on the host.

    many rows, or short ones       a block for each row: one kernel
    few long rows                  a block for each part of a row; others select among what these
                                   have found, until there is one part: a kernel for each level

Elements at places of the order, such as the middle, are found by a block for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

import numpy as np

from lowering.plan.calls.library_call import IfSkipped, StridedArray
from lowering.plan.construct import Path
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import Reads, Writes
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nests.weight import Weight
from lowering.plan.nests.work import Work
from lowering.plan.nodes import Node
from lowering.plan.target.hardware import WARP
from tracegraph.ir.op import Op
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

THREAD_KEYS = 4
"""Keys of a thread in a tile."""

MOST_THREADS = 256
"""Threads of a block, which then holds twice a tile of keys in shared memory."""

BLOCKS = 528
"""Blocks that rows are divided among: four for each multiprocessor of an H100."""

PART = 4096
"""Keys of a part of a row, at least: four tiles."""


@record
class SelectionShape:
    """Rows of keys, of which `count` are selected: how many threads and blocks do it."""

    dtype: np.dtype[Any]
    rows: int
    length: int
    count: int

    @property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """For each kernel, the length of the rows that it reads and the parts of each."""
        found, length = [], self.length
        while True:
            parts = max(min(ceil_div(BLOCKS, self.rows), length // PART), 1)
            found.append((length, parts))
            if parts == 1:
                return tuple(found)
            length = parts * self.count

    def threads(self, length: int) -> int:
        """The threads of a block that has a tile of `length` keys, or all that are selected."""
        threads = WARP
        while threads < MOST_THREADS and threads * THREAD_KEYS < max(length, self.count):
            threads *= 2
        return threads

    @property
    def scratch(self) -> tuple[ArrayType, ...]:
        """The types of scratch buffers: keys and positions that each level but the last finds."""
        types: list[ArrayType] = []
        for _, parts in self.levels[:-1]:
            shape = self.rows, parts * self.count
            types += [ArrayType(self.dtype, shape), ArrayType(np.dtype(np.uint32), shape)]
        return tuple(types)


@record
class SelectionNode(Node):
    """Finds the positions of the largest elements of the rows of `keys`, the largest first.

    The op is `largest`, or `ranked`, which has `places` of the order. `scratch` is what
    `SelectionShape` asks for, and empty on the host.
    """

    kind: ClassVar[str] = "selection"
    noun: ClassVar[str] = "a selection"
    if_skipped: ClassVar[IfSkipped] = "runs"
    fixed_buffers: ClassVar[frozenset[Buffer]] = frozenset()

    op: Op
    keys: Reads[StridedArray]
    target: Writes[Buffer]
    scratch: Writes[tuple[Buffer, ...]]
    places: tuple[int, ...] = ()
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()

    @property
    def graph_nodes(self) -> tuple[str, ...]:
        return ("kernel",) * (1 if self.places else len(self.shape.levels))

    @property
    def shape(self) -> SelectionShape:
        """How it selects."""
        *batch, length = self.keys.shape
        dtype = self.keys.buffer.type.dtype
        return SelectionShape(dtype, prod(batch), length, self.target.type.shape[-1])

    @property
    def weight(self) -> Weight:
        return Weight(nbytes=self.work.moved)

    @property
    def work(self) -> Work:
        required = self.keys.distinct_bytes + self.target.type.nbytes
        again = self.keys.distinct_bytes if self.places else 0  # at least
        return Work(required, required + again + 2 * sum([b.type.nbytes for b in self.scratch]))

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def title(self) -> str:
        shape = self.shape
        rows = f"{shape.rows}x" if shape.rows != 1 else ""
        if self.places:
            return f"{self.name} {', '.join(map(str, self.places))} of {rows}{shape.length}"
        return f"{self.name} {shape.count} of {rows}{shape.length}"

    @property
    def text(self) -> str:
        return f"{self.title}: {self.target} = {self.keys}"

    @property
    def run_host(self) -> Callable[..., object]:
        reference, count = self.op.reference, self.shape.count
        attrs: dict[str, Any] = {"places": self.places} if self.places else {"count": count}

        def run(keys: np.ndarray[Any, Any], target: np.ndarray[Any, Any], *_: Any) -> None:
            target[...] = reference(keys, **attrs)

        return run
