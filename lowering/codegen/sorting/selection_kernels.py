"""The kernels of a SelectionNode: of the parts of rows, then of parts of what these have found."""

from __future__ import annotations

from collections.abc import Iterator, Set

from lowering.codegen.kernel_code import KernelCode
from lowering.codegen.preamble import c_type
from lowering.codegen.sorting.kernel_arguments import Argument, kernel_of_arguments
from lowering.plan.nests.buffer import Buffer
from lowering.plan.selection import MOST_THREADS, THREAD_KEYS, SelectionNode
from lowering.plan.sort import BUCKETS
from tracegraph.generated.dataclass import dataclass

_WORD = 4

_CAPACITY = 2048
"""Keys that a block sorts, at most."""


@dataclass(frozen=True, slots=True)
class SelectionKernels:
    """The kernels of one node.

    Lengths are parameters, so that selections of one dtype share kernels. `indirect` buffers are
    read through the pointer table.
    """

    node: SelectionNode
    indirect: Set[Buffer]

    def __iter__(self) -> Iterator[tuple[str, KernelCode]]:
        """The text of each kernel, called `NAME`, and how it is launched."""
        node, shape = self.node, self.node.shape
        if node.places:
            yield self._ranked()
            return
        keys, offset = node.keys.buffer, node.keys.offset
        places: Buffer | None = None
        found = iter(node.scratch)
        for length, parts in shape.levels:
            if parts == 1:
                yield self._kernel(keys, offset, places, length, 1, None, None, node.target)
                return
            best, positions = next(found), next(found)
            yield self._kernel(keys, offset, places, length, parts, best, positions, None)
            keys, offset, places = best, 0, positions

    def _kernel(
        self,
        keys: Buffer,
        offset: int,
        places: Buffer | None,
        length: int,
        parts: int,
        best: Buffer | None,
        positions: Buffer | None,
        order: Buffer | None,
    ) -> tuple[str, KernelCode]:
        shape = self.node.shape
        key, threads = c_type(shape.dtype), shape.threads(length // parts)
        arguments: dict[str, Argument] = {
            f"const {key}* keys": keys,
            "tg_i64 offset": offset,
            "const tg_u32* places": places,
            f"const {key}* origin": self.node.keys.buffer,
            "tg_i64 origin_offset": self.node.keys.offset,
            f"{key}* best": best,
            "tg_u32* positions": positions,
            "tg_i64* order": order,
            "tg_i64 length": length,
            "tg_i64 whole": shape.length,
            "tg_i64 parts": parts,
            "tg_i64 count": shape.count,
        }
        body = f"""\
  tg_largest<{threads}, {THREAD_KEYS}>(
      keys + offset, places, origin + origin_offset, best, positions, order, length, whole, parts,
      count, shared);
"""
        held = 2 * threads * THREAD_KEYS
        shared = held * (shape.dtype.itemsize + _WORD) + _WORD
        blocks = shape.rows * parts
        return kernel_of_arguments(body, arguments, self.indirect, blocks, threads, shared)

    def _ranked(self) -> tuple[str, KernelCode]:
        """A block for each row; the places are parameters."""
        node, shape = self.node, self.node.shape
        key, count = c_type(shape.dtype), len(node.places)
        arguments: dict[str, Argument] = {
            f"const {key}* keys": node.keys.buffer,
            "tg_i64 offset": node.keys.offset,
            f"{key}* found": node.target,
            "tg_i64 length": shape.length,
            **{f"tg_i64 place{number}": place for number, place in enumerate(node.places)},
        }
        places = ", ".join([f"place{number}" for number in range(count)])
        body = f"""\
  const tg_places<{count}> places = {{{{{places}}}}};
  tg_ranked<{MOST_THREADS}, {_CAPACITY}>(
      keys + offset, found, length, places, {shape.dtype.itemsize}, shared);
"""
        shared = _CAPACITY * (shape.dtype.itemsize + _WORD) + (BUCKETS + 4) * _WORD
        return kernel_of_arguments(body, arguments, self.indirect, shape.rows, MOST_THREADS, shared)
