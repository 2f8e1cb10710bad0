"""Copy kernels: contiguous bytes inside a graph, and strided arrays before a launch.

A copy inside a graph is a kernel node, not a memcpy node: it is as fast, and takes new addresses by
the same parameter update as every other kernel.
"""

from __future__ import annotations

from lowering.cuda.interface import ForeignArray
from lowering.plan.nests.rounding import ceil_div

COPY_KERNEL = "tracegraph_copy"
COPY_THREADS = 256
COPY_BLOCKS = 1024

COPY_SOURCE = f"""\
extern "C" __global__ void __launch_bounds__({COPY_THREADS}) {COPY_KERNEL}(
    char* target, const char* source, unsigned long long bytes) {{
  tg_wait_for_primaries();
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long wide = 0;
  if (((unsigned long long)target | (unsigned long long)source) % 16 == 0) {{
    wide = bytes / 16;
    for (unsigned long long i = first; i < wide; i += step) {{
      ((uint4*)target)[i] = ((const uint4*)source)[i];
    }}
  }}
  for (unsigned long long i = 16 * wide + first; i < bytes; i += step) target[i] = source[i];
}}
"""

PACK_KERNEL = "tracegraph_pack"
PACK_AXES = 16

PACK_SOURCE = f"""\
extern "C" __global__ void __launch_bounds__({COPY_THREADS}) {PACK_KERNEL}(
    char* target, const char* source, long long count, long long itemsize,
{"".join(f"    long long n{i}, long long s{i},{chr(10)}" for i in range(PACK_AXES))}\
    long long axes) {{
  const long long extents[] = {{{", ".join(f"n{i}" for i in range(PACK_AXES))}}};
  const long long strides[] = {{{", ".join(f"s{i}" for i in range(PACK_AXES))}}};
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {{
    long long rest = i, offset = 0;
    for (int axis = (int)axes - 1; axis >= 0; --axis) {{
      offset += rest % extents[axis] * strides[axis];
      rest /= extents[axis];
    }}
    for (long long b = 0; b < itemsize; ++b) {{
      target[i * itemsize + b] = source[offset * itemsize + b];
    }}
  }}
}}
"""


def copy_grid(work: int) -> tuple[int, int, int]:
    """Blocks for `work` units, one a thread at first; the kernels stride over the rest."""
    return (min(max(ceil_div(work, COPY_THREADS), 1), COPY_BLOCKS), 1, 1)


def pack_values(target: int, array: ForeignArray) -> list[int]:
    """Parameters that copy a strided array into contiguous memory.

    Raises:
        ValueError: the array has more axes than the kernel takes.
    """
    if len(array.shape) > PACK_AXES:
        raise ValueError(
            f"a strided device array may have at most {PACK_AXES} axes, got {len(array.shape)}; "
            "make it contiguous first"
        )
    count = 1
    for extent in array.shape:
        count *= extent
    padding = PACK_AXES - len(array.shape)
    pairs = [*zip(array.shape, array.strides, strict=True), *[(1, 0)] * padding]
    words = [target, array.pointer, count, array.dtype.itemsize]
    words += [word % 2**64 for pair in pairs for word in pair]
    return [*words, len(array.shape)]
