"""Sorting rows of an array: a node that is several kernels on CUDA, and a NumPy call on the host.

    rows of up to 32 keys          count what comes before each key: one kernel
    rows that fit in a block       radix sort in shared memory: one kernel
    longer rows                    radix sort, least significant digit first: a kernel that clears
                                   counters, one that counts digits, and one for each digit

The order is that of `tracegraph.ops.sorting`. A radix sort moves keys as they are, and takes the
digits of bits that are in their order.
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
from tracegraph.ir.op import Op
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

BUCKETS = 256
"""The values of a digit."""

MOST_COUNTED = 32
"""Keys of a row up to which each is compared with all others of the row."""

BLOCK_BYTES = 32 << 10
"""Bytes of keys up to which a row is sorted in the shared memory of one block."""

MOST_IN_BLOCK = 8192
"""Keys of a row up to which it is sorted in one block."""

TILE_THREADS = 384
"""Threads of a block in a pass of a radix sort."""

SHORT_ROW = 1 << 30
"""Keys of a row below which a count and two bits fit in 32 bits."""

LONGEST_ROW = (1 << 32) - 1
"""Keys of a row up to which positions fit in 32 bits."""


@record
class SortShape:
    """Rows of keys: how they are sorted, and the scratch memory that this takes."""

    dtype: np.dtype[Any]
    rows: int
    length: int

    @classmethod
    def of(cls, array: ArrayType) -> SortShape:
        """The rows of an array."""
        return cls(array.dtype, prod(array.shape[:-1]), array.shape[-1])

    @property
    def digits(self) -> int:
        """The digits of a key."""
        return self.dtype.itemsize

    @property
    def is_counted(self) -> bool:
        """Whether keys are compared one by one."""
        return self.length <= MOST_COUNTED

    @property
    def is_in_block(self) -> bool:
        """Whether a block sorts a row."""
        fits = self.length * max(self.dtype.itemsize, 4) <= BLOCK_BYTES
        return not self.is_counted and fits and self.length <= MOST_IN_BLOCK

    @property
    def kernels(self) -> int:
        """The kernels that sort the rows."""
        return 1 if self.is_counted or self.is_in_block else 2 + self.digits

    @property
    def items(self) -> int:
        """Keys of a thread in a pass of a radix sort: what registers and shared memory hold."""
        return {8: 12, 16: 6}.get(self.dtype.itemsize, 16)

    @property
    def tiles(self) -> int:
        """The tiles of a row in a pass."""
        return ceil_div(self.length, TILE_THREADS * self.items)

    @property
    def status_dtype(self) -> np.dtype[Any]:
        """Unsigned integers that hold a count of keys and two bits."""
        return np.dtype(np.uint32 if self.length < SHORT_ROW else np.uint64)

    def scratch(self, by_position: bool) -> tuple[ArrayType, ...]:
        """The types of the scratch buffers: counters, statuses, spare keys, spare positions."""
        if self.is_counted or self.is_in_block:
            return ()
        passes, word = self.digits, np.dtype(np.uint32)
        statuses = (min(passes, 2), self.rows * self.tiles * BUCKETS)
        keys = ArrayType(self.dtype, (self.rows, self.length))
        # passes alternate between two buffers; the last one writes to the result
        spare_keys = min(passes - 1, 2) if by_position else min(passes - 1, 1)
        spare_positions = min(passes - 1, 2) if by_position else 0
        return (
            ArrayType(word, (self.rows * passes * BUCKETS + passes,)),
            ArrayType(self.status_dtype, statuses),
            *[keys] * spare_keys,
            *[ArrayType(word, keys.shape)] * spare_positions,
        )


@record
class SortNode(Node):
    """Sorts the rows of `keys`.

    The `target` gets the keys in order, or the positions that they come from, as the op of
    `tracegraph.ops.sorting` has it. `scratch` is what `SortShape` asks for, and empty on the host.
    """

    kind: ClassVar[str] = "sort"
    noun: ClassVar[str] = "a sort"
    if_skipped: ClassVar[IfSkipped] = "runs"
    fixed_buffers: ClassVar[frozenset[Buffer]] = frozenset()

    op: Op
    keys: Reads[StridedArray]
    target: Writes[Buffer]
    scratch: Writes[tuple[Buffer, ...]]
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()

    @property
    def graph_nodes(self) -> tuple[str, ...]:
        return ("kernel",) * self.shape.kernels

    @property
    def by_position(self) -> bool:
        """Whether it finds positions."""
        return self.op.name == "argsort"

    @property
    def shape(self) -> SortShape:
        """How it sorts."""
        keys = self.keys
        return SortShape.of(ArrayType(keys.buffer.type.dtype, keys.shape))

    @property
    def weight(self) -> Weight:
        keys = self.keys.buffer.type.dtype.itemsize * prod(self.keys.shape)
        passes = 1 if not self.scratch else 1 + self.shape.digits
        return Weight(nbytes=passes * (keys + self.target.type.nbytes))

    @property
    def work(self) -> Work:
        passes = 1 if not self.scratch else 1 + self.shape.digits
        required = self.keys.distinct_bytes + self.target.type.nbytes
        return Work(required, passes * required)

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def title(self) -> str:
        rows = f"{self.shape.rows}x" if self.shape.rows != 1 else ""
        return f"{self.name} {rows}{self.shape.length}"

    @property
    def text(self) -> str:
        return f"{self.title}: {self.target} = {self.keys}"

    @property
    def run_host(self) -> Callable[..., object]:
        reference = self.op.reference

        def run(keys: np.ndarray[Any, Any], target: np.ndarray[Any, Any], *_: Any) -> None:
            target[...] = reference(keys)

        return run
