"""Pointer arrays: the addresses of matrices, which library calls read from device memory.

A captured call stores the address of each array, and the arrays belong to the graph. If all
matrices are at fixed addresses, the host writes these when the graph is built. If some are
arguments or results, root kernels write the arrays at each launch, from parameters that calls
update: matrices need no copies then, in bodies of loops and branches neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from lowering.cuda.interface import Launch
from lowering.plan.calls.library_call import LibraryCall
from lowering.plan.launch_graph import pointer_parts
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nodes import LibraryNode
from lowering.plan.target.hardware import PARAMETER_BYTES
from tracegraph.generated.dataclass import dataclass

THREADS = 256
BLOCKS = 64

ARRAYS_KERNEL = "tracegraph_pointer_arrays"


@dataclass(frozen=True, slots=True)
class PointerArray:
    """Addresses `stride` bytes apart; the first one is `offset` bytes after that of a buffer."""

    buffer: Buffer
    offset: int
    stride: int
    count: int


def pointer_arrays(call: LibraryCall) -> list[PointerArray]:
    """The arrays of a call, which follow one another: one for each of its batches."""
    found = []
    for batch in call.batches:
        itemsize, count = batch.buffer.type.dtype.itemsize, prod(batch.shape[:-2])
        stride = batch.strides[-3] * itemsize if count > 1 else 0
        found.append(PointerArray(batch.buffer, batch.offset * itemsize, stride, count))
    return found


def pointers(call: LibraryCall, address: Callable[[Buffer], int]) -> np.ndarray[Any, Any]:
    """All addresses in the arrays of a call, given those of buffers."""
    rows = [
        address(pointer_array.buffer)
        + pointer_array.offset
        + pointer_array.stride * np.arange(pointer_array.count)
        for pointer_array in pointer_arrays(call)
    ]
    return np.concatenate(rows).astype(np.uint64)


def pointers_bytes(call: LibraryCall) -> int:
    """The size of the arrays of a call."""
    return PARAMETER_BYTES * sum(pointer_array.count for pointer_array in pointer_arrays(call))


def alignments(nodes: Iterable[LibraryNode]) -> dict[Buffer, int]:
    """What the addresses of buffers must be multiples of for these calls, as far as they move."""
    found: dict[Buffer, int] = {}
    for node in nodes:
        for movable_array in node.call.movable_arrays:
            found[movable_array.buffer] = max(
                found.get(movable_array.buffer, 1), node.call.alignment
            )
    return found


def part_arrays(nodes: Sequence[LibraryNode]) -> int:
    """The arrays that each kernel writes; those that are missing in a part are empty."""
    counts = [sum(len(node.call.batches) for node in part) for part in pointer_parts(nodes)]
    return max(counts, default=0)


def arrays_launch(kernel: Any, longest: int) -> Launch:
    """The launch of the kernel for arrays of at most `longest` addresses."""
    return Launch(kernel, (min(ceil_div(longest, THREADS), BLOCKS), 1, 1), (THREADS, 1, 1))


def arrays_source(count: int) -> str:
    """CUDA C++ of the kernel for this number of arrays, whose threads stride over each."""
    numbers = range(count)
    parameters = "".join(
        f",\n    unsigned long long a{i}, unsigned long long o{i}, unsigned long long s{i}, "
        f"unsigned long long n{i}"
        for i in numbers
    )
    stores = "".join(f"  target = write(target, a{i} + o{i}, s{i}, n{i});\n" for i in numbers)
    return (
        f'extern "C" __global__ void __launch_bounds__({THREADS}) {ARRAYS_KERNEL}('
        f"\n    unsigned long long* target{parameters}) {{\n  tg_launch_dependents();\n"
        "  auto write = [](unsigned long long* array, unsigned long long first,\n"
        "                  unsigned long long stride, unsigned long long count) {\n"
        "    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    for (; i < count; i += (unsigned long long)gridDim.x * blockDim.x) {\n"
        "      array[i] = first + i * stride;\n"
        "    }\n"
        "    return array + count;\n"
        f"  }};\n{stores}}}\n"
    )
