"""Operands of products in both forms: ``python -m benchmarks.operands``, on a GPU.

Each line has microseconds of a product: at fixed addresses, as in an exported graph; with copies of
both operands and of the result; and by pointer, with the kernel that writes the pointer arrays. All
are nodes of one CUDA graph, several products in a row, in the order of one stream. `slower` is what
the library loses by pointer, `reuse` the operations for each byte of the matrices. The
`OperandPolicy` of `lowering.backends.cuda` is right if it chooses the faster form. The last line
for a dtype has the `reuse` that would lose least. Dtypes are arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any

import numpy as np

from benchmarks.harness.measure import medians
from lowering.backends.cuda import TARGET
from lowering.codegen.preamble import preamble
from lowering.cuda.graph.copies import COPY_KERNEL, COPY_SOURCE, COPY_THREADS, copy_grid
from lowering.cuda.interface import Gemm, Launch
from lowering.cuda.libraries.cublas import WORKSPACE_BYTES, Cublas
from lowering.cuda.libraries.pointer_arrays import ARRAYS_KERNEL, arrays_launch, arrays_source
from lowering.cuda.open_devices import OpenDevice, open_device
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.owners import SlotTable
from tracegraph.dtypes import bfloat16

SECONDS = 0.2
DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": bfloat16,
    "complex64": np.complex64,
    "complex128": np.complex128,
}
SQUARES = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
THIN = ((4096, 64, 4096), (64, 4096, 4096), (4096, 4096, 64), (8192, 256, 8192))
LONG = ((64, 64, 2048), (64, 64, 16384), (256, 256, 4096), (512, 512, 8192), (1024, 512, 2048))
LAYERS = tuple((256, n, k) for n in (10, 64, 256, 1024) for k in (64, 128, 256, 512, 1024))
SHAPES = (*((n, n, n) for n in SQUARES), *THIN, *LONG, *LAYERS)
"""The m, n and k of row-major products."""

TRANSPOSED = {(1024, 1024, 1024), (4096, 4096, 4096), *THIN}
"""Those that are timed with each operand transposed, too."""

RUNS, MOST_OPERATIONS = 20, 4e11
"""Products in a graph: as many, unless they would make more operations together."""

Issue = Callable[[Any, list[Any]], list[Any]]
"""Adds the nodes of one product to a graph behind others, and returns the last ones."""


@dataclass(frozen=True, slots=True)
class Operands:
    """A product with its memory: three matrices, and room for a copy of each."""

    device: OpenDevice
    gemm: Gemm
    sizes: tuple[int, ...]
    memory: list[Any]
    arrays: Any

    @classmethod
    def of(cls, device: OpenDevice, dtype: Any, shape: tuple[int, ...], trans: str) -> Operands:
        m, n, k = shape
        itemsize = np.dtype(dtype).itemsize
        sizes = tuple(itemsize * count for count in (m * k, k * n, m * n))
        memory = [device.driver.allocate(nbytes) for nbytes in (*sizes, *sizes)]
        some = np.random.default_rng(0).uniform(-1, 1, 1 << 20).astype(dtype)
        for block, nbytes in zip(memory, (*sizes, *sizes), strict=True):
            device.driver.copy_to_device(block.pointer, np.resize(some, nbytes // itemsize))
        left_t, right_t = (each == "T" for each in trans)
        left, right, target = (block.pointer for block in memory[:3])
        # read column by column, the product is that of the transposes in the other order
        gemm = Gemm(
            dtype=np.dtype(dtype),
            transpose_a=right_t,
            transpose_b=left_t,
            m=n,
            n=m,
            k=k,
            a=right,
            lda=k if right_t else n,
            stride_a=0,
            b=left,
            ldb=m if left_t else k,
            stride_b=0,
            c=target,
            ldc=n,
            stride_c=0,
            batch=1,
        )
        return cls(device, gemm, sizes, memory, device.driver.allocate(24))

    @property
    def operations(self) -> int:
        return 2 * self.gemm.m * self.gemm.n * self.gemm.k

    def fixed(self, graph: Any, before: list[Any]) -> list[Any]:
        """The product alone."""
        return self._captured(graph, before, self.gemm)

    def copied(self, graph: Any, before: list[Any]) -> list[Any]:
        """Copies of the operands, the product of these, and a copy of its result."""
        left, right, target, *copies = (block.pointer for block in self.memory)
        ready = [
            self._copied(graph, before, to, source, nbytes)
            for to, source, nbytes in zip(copies, (left, right), self.sizes, strict=False)
        ]
        gemm = replace(self.gemm, a=copies[1], b=copies[0], c=copies[2])
        done = self._captured(graph, ready, gemm)
        return [self._copied(graph, done, target, copies[2], self.sizes[2])]

    def by_pointer(self, graph: Any, before: list[Any]) -> list[Any]:
        """The kernel that writes three addresses, and the product of what is there."""
        source = arrays_source(3)
        kernel = self.device.standalone_kernel(preamble(source) + source, ARRAYS_KERNEL)
        values = [self.arrays.pointer]
        for block in self.memory[:3]:
            values += [block.pointer, 0, 0, 1]
        root = self.device.driver.add_kernel(graph, before, arrays_launch(kernel, 1), values).node
        return self._captured(graph, [root], self._pointers, "multiply_by_pointer")

    @property
    def _pointers(self) -> Gemm:
        left, right, target = (self.arrays.pointer + 8 * number for number in range(3))
        return replace(self.gemm, a=right, b=left, c=target)

    def _copied(self, graph: Any, before: list[Any], target: int, source: int, nbytes: int) -> Any:
        kernel = self.device.standalone_kernel(preamble(COPY_SOURCE) + COPY_SOURCE, COPY_KERNEL)
        launch = Launch(kernel, copy_grid(ceil_div(nbytes, 16)), (COPY_THREADS, 1, 1))
        values = [target, source, nbytes]
        return self.device.driver.add_kernel(graph, before, launch, values).node

    def _captured(
        self, graph: Any, before: list[Any], gemm: Gemm, method: str = "multiply"
    ) -> list[Any]:
        driver = self.device.driver
        library: Any = driver.library(Cublas)
        with driver.capture_lock.hold():
            ends, _ = driver.capture(graph, before, lambda: getattr(library, method)(gemm))
        return list(ends)

    def warm_up(self, workspace: Any) -> None:
        """Run both calls once outside of a graph, where the library loads code; compare them."""
        driver = self.device.driver
        library: Any = driver.library(Cublas)
        library.use_workspace(workspace.pointer, WORKSPACE_BYTES)
        addresses = [block.pointer for block in self.memory[:3]]
        driver.copy_to_device(self.arrays.pointer, np.array(addresses, np.uint64))
        driver.synchronize()
        found = []
        calls = (library.multiply, self.gemm), (library.multiply_by_pointer, self._pointers)
        for call, gemm in calls:
            driver.clear(self.memory[2].pointer, self.sizes[2])
            driver.synchronize()
            call(gemm)
            driver.synchronize_capture_stream()
            found.append(np.empty(gemm.m * gemm.n, gemm.dtype))
            driver.copy_to_host(found[-1], self.memory[2].pointer)
            driver.synchronize()
        direct, by_pointer = (each.astype(np.complex128) for each in found)
        error = np.abs(direct - by_pointer).max() / np.abs(direct).max()
        assert error < 8 * self.gemm.k**0.5 * _epsilon(self.gemm.dtype), error


def _epsilon(dtype: np.dtype[Any]) -> float:
    """Half a unit in the last place of 1, about."""
    half = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
    return half.get(str(dtype)) or float(np.finfo(dtype).eps)


def _launch(operands: Operands, issue: Issue, runs: int) -> Callable[[], None]:
    """Launches a graph of `runs` products in a row."""
    driver, slots = operands.device.driver, SlotTable()
    slots.retain(operands)
    graph, ends = driver.new_graph(), []
    for _ in range(runs):
        ends = issue(graph, ends)
    executable = driver.instantiate(driver.tie(graph, slots))
    start = driver.launcher(executable)

    def launch(kept: Any = executable) -> None:
        start()

    return launch


def _shapes() -> Iterator[tuple[tuple[int, int, int], str]]:
    for shape in SHAPES:
        yield shape, "NN"
        if shape in TRANSPOSED:
            yield from ((shape, trans) for trans in ("TN", "NT", "TT"))


def _best(rows: Sequence[tuple[float, float, float]]) -> float:
    """The most reuse by pointer, for which the times of these rows lose least."""

    def loss(most: float) -> float:
        return sum(
            log((by_pointer if reuse <= most else copied) / min(copied, by_pointer))
            for reuse, copied, by_pointer in rows
        )

    return min((0.0, *(reuse for reuse, *_ in rows), inf), key=loss)


def main(words: Sequence[str]) -> None:
    """Print the table of each dtype."""
    policy, device = TARGET.operands, open_device(0)
    assert policy is not None
    device.driver.activate()
    workspace = device.driver.allocate(WORKSPACE_BYTES)
    for name in words or DTYPES:
        print(f"{name}, µs: m, n, k, fixed, copied, by pointer, slower, reuse, chosen", flush=True)
        rows = []
        for shape, trans in _shapes():
            operands = Operands.of(device, DTYPES[name], shape, trans)
            operands.warm_up(workspace)
            runs = int(max(1, min(RUNS, MOST_OPERATIONS / operands.operations)))
            issues = (operands.fixed, operands.copied, operands.by_pointer)
            calls = [_launch(operands, issue, runs) for issue in issues]
            times = medians(calls, lambda _: device.driver.synchronize(), SECONDS)
            fixed, copied, by_pointer = (time / runs for time in times)
            reuse = operands.operations / sum(operands.sizes)
            prefers = policy.prefers(operands.gemm.dtype, 1, *shape, 1)
            if not policy.splits(operands.gemm.dtype, 1, *shape):
                rows.append((reuse, copied, by_pointer))
            mark = "  <- slower" if prefers != (by_pointer <= copied) else ""
            figures = (
                f"{fixed:10.1f} {copied:10.1f} {by_pointer:10.1f} {by_pointer / fixed - 1:7.0%}"
            )
            sizes = "".join(f"{extent:6}" for extent in shape)
            chosen = "by pointer" if prefers else "copied"
            print(f"{sizes} {trans} {figures} {reuse:7.0f}  {chosen}{mark}", flush=True)
        print(f"{name}: reuse of {_best(rows):.0f} loses least", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
