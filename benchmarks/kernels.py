"""Bandwidth of generated kernels beside a copy: ``python -m benchmarks.kernels``.

Each kernel is run as a chain of nodes in a graph, and so is a copy that moves as many bytes. Where
a function is planned as a user's would be, all its kernels are timed, one after the other.
Figures are GB/s of what must be read and written; the fastest of several samples counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.harness.limits import COPY_BYTES, copies
from lowering.codegen import KernelCode, WorkspaceAddress, unit_source
from lowering.cuda.compilation.compile import cubin
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import KernelNode
from tracegraph.ir.types import ArrayType

from .kernel_work import (
    Work,
    column_sums,
    cumsum,
    layer_norm,
    row_sums,
    scaled,
    sine,
    softmax,
    squares,
    standardise,
    strided,
    transpose,
)

BYTES = COPY_BYTES["cuda"]
FILL = 0x3C  # a byte that makes a small number of every floating-point dtype
SAMPLES = 5
FEWEST_RUNS, MOST_RUNS, BYTES_A_SAMPLE = 8, 256, 1 << 33
_SAME = 1 << 16  # sizes that differ by less have the same limit


Launches = Sequence[tuple[Any, Any, list[Any]]]
"""Configurations, kernels and arguments, one after the other."""

Shifts = tuple[int, int]
"""By how many elements the memory that is read, and that which is written, is off alignment."""


def cases() -> Iterator[tuple[Callable[..., Work], str, tuple[int, ...], Shifts]]:
    """Functions, dtypes, shapes, and how the memory lies."""
    for make, dtype, shape, shift in _cases():
        yield make, dtype, shape, (shift, shift)
        if shift and make not in (squares, column_sums):
            yield make, dtype, shape, (shift, 0)


def _cases() -> Iterator[tuple[Callable[..., Work], str, tuple[int, ...], int]]:
    """The same with one shift for all memory."""
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        size = BYTES // ArrayType(dtype, ()).nbytes
        rows = size >> 12
        for shift, less in ((0, 0), (0, 3), (1, 3)):
            yield sine, dtype, (size - less,), shift
        for fewer in (16, 20, 23):
            yield scaled, dtype, (1 << fewer,), 0
            yield sine, dtype, (1 << fewer,), 0
            yield squares, dtype, (1 << fewer,), 0
        for shift in (0, 1):
            yield squares, dtype, (size - shift,), shift
            yield column_sums, dtype, (rows, 1 << 12), shift
            yield transpose, dtype, (rows, 1 << 12), shift
        yield transpose, dtype, (rows - 5, (1 << 12) - 3), 0
        for columns in (64, 1000, 4096, 16384, 100_000):
            yield softmax, dtype, (size // columns, columns), 0
        for columns in (1000, 1001, 4096):
            yield softmax, dtype, (size // columns, columns), 1
        if dtype != "bfloat16":
            yield strided, dtype, (size,), 0
            for make in (row_sums, layer_norm, standardise):
                yield make, dtype, (rows, 1 << 12), 0
            for make in (row_sums, column_sums, transpose, softmax):
                for small in ((1 << 8, 1 << 8), (1 << 10, 1 << 10), (1 << 11, 1 << 12)):
                    yield make, dtype, small, 0
        if dtype in ("float32", "float64"):
            yield cumsum, dtype, (1 << 24,), 0
            yield cumsum, dtype, (size - 1,), 0
    for dtype in ("int8", "int16"):
        size = BYTES // ArrayType(dtype, ()).nbytes
        yield squares, dtype, (size,), 0
        rows = size >> 12
        yield column_sums, dtype, (rows, 1 << 12), 0
        for shift in (0, 1):
            yield transpose, dtype, (rows, 1 << 12), shift
        yield transpose, dtype, (rows - 5, (1 << 12) - 3), 0


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run the cases whose name has this in it")
    only = parser.parse_args().only
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    memory = [device.allocate(BYTES + 256, stream=stream) for _ in range(2)]
    for block in memory:
        block.fill(FILL, stream=stream)
    # a copy writes what kernels write, too: what they read stays as it is
    addresses = [np.uint64(int(block.handle)) for block in reversed(memory)]

    @cache
    def limit(nbytes: int) -> float:
        """GB/s of the fastest copy of as many bytes, half of them read and half written."""
        launches = copies(nbytes // 2)
        seconds = (_seconds(stream, [(*one, addresses)], nbytes) for one in launches)
        return nbytes / min(seconds) / 1e9

    print(f"{'copy':<44} {limit(2 * BYTES):8.0f} GB/s", flush=True)
    for make, dtype, shape, shifts in cases():
        name = f"{make.__name__} {dtype} {'x'.join(map(str, shape))} +{shifts[0]}"
        name += " read" if shifts[0] != shifts[1] else ""
        if only in name:
            work = make(dtype, *shape)
            rate, notes = _measure(work, shifts, device, stream, memory)
            part = rate / limit(round_up(work.nbytes, _SAME))
            print(f"{name:<44} {rate:8.0f} GB/s {part:5.0%}   {notes}", flush=True)


def _measure(
    work: Work, shifts: Shifts, device: Any, stream: Any, memory: list[Any]
) -> tuple[float, str]:
    """GB/s of all kernels, and what they take of a multiprocessor."""
    from cuda.core import LaunchConfig

    unit = unit_source(work.plan)
    module = cubin(unit.source, f"sm_{device.arch}")
    held = []

    def allocate(nbytes: int, fill: int) -> int:
        held.append(device.allocate(max(nbytes, 1), stream=stream))
        held[-1].fill(fill, stream=stream)
        return int(held[-1].handle)

    arena = allocate(work.plan.arena_bytes, 0)
    places = {buffer: arena + offset for buffer, offset in work.plan.offsets.items()}
    first, *others, last = work.buffers
    for buffer, block, shift in zip((first, last), memory, shifts, strict=True):
        places[buffer] = int(block.handle) + shift * buffer.type.dtype.itemsize
    places |= {buffer: allocate(buffer.type.nbytes, FILL) for buffer in others}
    launches, notes = [], []
    for node in work.plan.graph.nodes:
        assert isinstance(node, KernelNode)
        code = unit.kernels[node]
        arguments = [
            np.uint64(allocate(p.nbytes, 0) if isinstance(p, WorkspaceAddress) else places[p])  # type: ignore[index]
            for p in code.parameters
        ]
        config = LaunchConfig(grid=code.grid, block=code.block, shmem_size=code.shared_bytes)
        kernel = module.get_kernel(code.name)
        launches.append((config, kernel, arguments))
        notes.append(_notes(code, kernel))
    seconds = _seconds(stream, launches, work.nbytes)
    return work.nbytes / seconds / 1e9, "; ".join(notes)


def _notes(code: KernelCode, kernel: Any) -> str:
    spilled = kernel.attributes.local_size_bytes
    notes = (
        f"{prod(code.grid)} x {prod(code.block)} threads, {code.shared_bytes} B shared, "
        f"{kernel.attributes.num_regs} registers"
    )
    return notes + (f", {spilled} B local" if spilled else "")


def _seconds(stream: Any, launches: Launches, nbytes: int) -> float:
    """What one run takes in a chain of several, the first chain left out."""
    from cuda.core.graph import GraphDefinition

    runs = min(max(BYTES_A_SAMPLE // nbytes, FEWEST_RUNS), MOST_RUNS)
    definition = GraphDefinition()
    node: Any = definition
    for config, kernel, arguments in [*launches] * runs:
        node = node.launch(config, kernel, *arguments)
    graph = definition.instantiate()
    samples = []
    for _ in range(1 + SAMPLES):
        start = perf_counter()
        graph.launch(stream)
        stream.sync()
        samples.append((perf_counter() - start) / runs)
    return min(samples[1:])


if __name__ == "__main__":
    main()
