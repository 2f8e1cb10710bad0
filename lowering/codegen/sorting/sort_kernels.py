"""The kernels of a SortNode, in order: each one depends on the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from lowering.codegen.kernel_code import KernelCode
from lowering.codegen.preamble import c_type
from lowering.codegen.sorting.kernel_arguments import Argument, kernel_of_arguments
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div, round_up
from lowering.plan.sort import BUCKETS, TILE_THREADS, SortNode
from tracegraph.generated.dataclass import dataclass

_THREADS = 256
_WORD = 4
_DIGIT_BYTES = BUCKETS * _WORD

_COUNT_BLOCKS = 528
"""Blocks that count digits, four for each multiprocessor of an H100: each adds 256 sums for each
digit to memory, so that more blocks would collide more often."""

_COUNTED_KEYS = 8192
"""Keys that a block counts, at least."""

_RESIDENT = 2
"""Blocks of a pass on a multiprocessor, at least: so registers are not too many."""


@dataclass(frozen=True, slots=True)
class SortKernels:
    """The kernels of one node.

    Lengths are parameters, so that sorts of one dtype share kernels. `indirect` buffers are read
    through the pointer table.
    """

    node: SortNode
    indirect: Set[Buffer]

    def __iter__(self) -> Iterator[tuple[str, KernelCode]]:
        """The text of each kernel, called `NAME`, and how it is launched."""
        shape = self.node.shape
        if shape.is_counted:
            yield self._by_counting()
        elif shape.is_in_block:
            yield self._in_block()
        else:
            yield self._clear()
            yield self._count()
            for place in range(shape.digits):
                yield self._pass(place)

    @property
    def _key(self) -> str:
        return c_type(self.node.shape.dtype)

    @property
    def _ends(self) -> dict[str, Argument]:
        """The operands of a sort in one kernel."""
        node = self.node
        by_position = node.by_position
        return {
            f"const {self._key}* keys": node.keys.buffer,
            "tg_i64 offset": node.keys.offset,
            f"{self._key}* sorted": None if by_position else node.target,
            "tg_i64* order": node.target if by_position else None,
            "tg_i64 length": node.shape.length,
        }

    def _by_counting(self) -> tuple[str, KernelCode]:
        shape = self.node.shape
        count = shape.rows * shape.length
        body = f"""\
  const tg_i64 i = blockIdx.x * {_THREADS}ll + threadIdx.x;
  if (i < count) tg_sort_by_counting(keys + offset, sorted, order, i, (int)length);
"""
        arguments = {**self._ends, "tg_i64 count": count}
        return self._kernel(body, arguments, ceil_div(count, _THREADS), _THREADS)

    def _in_block(self) -> tuple[str, KernelCode]:
        node, shape = self.node, self.node.shape
        threads, items = _block_geometry(shape.length)
        used = max(threads * items * self._exchanged, threads // 32 * _DIGIT_BYTES)
        body = f"""\
  tg_sort_in_block<{threads}, {items}, {_flag(node.by_position)}>(
      keys + offset, sorted, order, blockIdx.x, (int)length, {shape.digits}, shared,
      (tg_u32*)(shared + {used}));
"""
        return self._kernel(body, self._ends, shape.rows, threads, used + _DIGIT_BYTES)

    def _clear(self) -> tuple[str, KernelCode]:
        """Clear the counters, and the statuses of the first pass."""
        counters, statuses, *_ = self.node.scratch
        sizes = counters.type.size, statuses.type.shape[1]
        arguments: dict[str, Argument] = {
            "tg_u32* counters": counters,
            f"{c_type(statuses.type.dtype)}* statuses": statuses,
            "tg_i64 n": sizes[0],
            "tg_i64 m": sizes[1],
        }
        body = f"""\
  const tg_i64 i = blockIdx.x * {_THREADS}ll + threadIdx.x;
  if (i < n) counters[i] = 0;
  if (i < m) statuses[i] = 0;
"""
        return self._kernel(body, arguments, ceil_div(max(sizes), _THREADS), _THREADS)

    def _count(self) -> tuple[str, KernelCode]:
        """Count the digits of each row, in parts of it."""
        node, shape = self.node, self.node.shape
        most = max(ceil_div(_COUNT_BLOCKS, shape.rows), 1)
        parts = min(ceil_div(shape.length, _COUNTED_KEYS), most)
        arguments: dict[str, Argument] = {
            f"const {self._key}* keys": node.keys.buffer,
            "tg_i64 offset": node.keys.offset,
            "tg_u32* counters": node.scratch[0],
            "tg_i64 length": shape.length,
            "tg_i64 parts": parts,
            "tg_i64 part": ceil_div(shape.length, parts),
        }
        body = f"""\
  const tg_i64 row = blockIdx.x / parts, begin = blockIdx.x % parts * part;
  const tg_i64 end = begin + part < length ? begin + part : length;
  tg_count_digits<{_THREADS}, {shape.digits}>(
      keys + offset + row * length, begin, end, counters + row * {shape.digits * BUCKETS},
      (tg_u32*)shared);
"""
        shared = shape.digits * _DIGIT_BYTES
        return self._kernel(body, arguments, shape.rows * parts, _THREADS, shared)

    def _pass(self, place: int) -> tuple[str, KernelCode]:
        """Sort by one digit."""
        node, shape = self.node, self.node.shape
        counters, statuses, *_ = node.scratch
        keys, sorted_, positions, order = self._moves(place)
        word = statuses.type.dtype
        used = max(TILE_THREADS * shape.items * self._exchanged, TILE_THREADS // 32 * _DIGIT_BYTES)
        arguments: dict[str, Argument] = {
            f"const {self._key}* keys": keys,
            "tg_i64 offset": 0 if place else node.keys.offset,
            f"{self._key}* sorted": sorted_,
            "const tg_u32* from": positions,
            "void* order": order,
            "tg_u32* counters": counters,
            "tg_i64 tickets": shape.rows * shape.digits * BUCKETS,
            f"{c_type(word)}* statuses": statuses,
            "tg_i64 length": shape.length,
            "tg_i64 tiles": shape.tiles,
            "tg_i64 place": place,
        }
        body = f"""\
  const tg_rows rows = {{length, (tg_u32)tiles, (int)place, {shape.digits}}};
  tg_sort_pass<{TILE_THREADS}, {shape.items}, {_flag(node.by_position)}>(
      keys + offset, sorted, from, order, counters, counters + tickets, statuses, rows, shared,
      ({c_type(word)}*)(shared + {used}));
"""
        shared = used + BUCKETS * word.itemsize + _DIGIT_BYTES + _WORD
        blocks = shape.rows * shape.tiles
        return self._kernel(
            body, arguments, blocks, TILE_THREADS, round_up(shared, 16), resident=_RESIDENT
        )

    @property
    def _exchanged(self) -> int:
        """Bytes of an item that threads exchange through shared memory: a key, or a position."""
        return max(self.node.shape.dtype.itemsize, _WORD if self.node.by_position else 1)

    def _moves(self, place: int) -> tuple[Argument, Argument, Argument, Argument]:
        """What a pass reads and writes: keys and keys, positions and positions."""
        node, last = self.node, self.node.shape.digits - 1
        _, _, *spare = node.scratch
        if not node.by_position:
            # of the results of the passes, every other one is in the target, and so the last one is
            ends = [node.target if (last - k) % 2 == 0 else spare[0] for k in range(last + 1)]
            return (ends[place - 1] if place else node.keys.buffer), ends[place], None, None
        keys, positions = spare[: len(spare) // 2], spare[len(spare) // 2 :]
        before, after = (place - 1) % 2, place % 2
        return (
            keys[before] if place else node.keys.buffer,
            keys[after] if place < last else None,
            positions[before] if place else None,
            positions[after] if place < last else node.target,
        )

    def _kernel(
        self,
        body: str,
        arguments: Mapping[str, Argument],
        blocks: int,
        threads: int,
        shared: int = 0,
        *,
        resident: int = 1,
    ) -> tuple[str, KernelCode]:
        launch = blocks, threads, shared, resident
        return kernel_of_arguments(body, arguments, self.indirect, *launch)


def _block_geometry(length: int) -> tuple[int, int]:
    """The threads of a block, and the keys of each: eight or more, so that ranking pays."""
    threads = 64
    while threads < 512 and threads * 8 < length:
        threads *= 2
    return threads, max(ceil_div(length, threads), 1)


def _flag(value: bool) -> str:
    return "true" if value else "false"
