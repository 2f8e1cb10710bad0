"""Kernels of users, and programs that call them at every place: for all executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracegraph

N = 1000
THREADS = 128


def blocks(x: Any, *_: Any) -> int:
    return -(-x.size // THREADS)


@tracegraph.kernel(
    source="""
extern "C" __global__ void lif(const float* __restrict__ v, const float* current, float leak,
                               int n, float* after, bool* spiked) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = __fadd_rn(__fmul_rn(v[i], leak), current[i]);
  spiked[i] = x > 1.0f;
  after[i] = x > 1.0f ? 0.0f : x;
}""",
    out=lambda v, current, leak, n: (v, v.with_dtype(bool)),
    grid=blocks,
    block=THREADS,
    scalars={"leak": "float32", "n": "int32"},
)
def lif(v: Any, current: Any, leak: Any, n: Any) -> Any:
    """Leaky integrate-and-fire neurons: potentials after a step, and which have fired."""
    x = v * leak + current
    return np.where(x > 1, np.float32(0), x), x > 1


def saxpy_text(a: Any, x: Any, y: Any) -> str:
    real = {"float32": "float", "float64": "double"}[str(y.dtype)]
    return f"""
extern "C" __global__ void saxpy(double a, const {real}* x, {real}* y) {{
  int i = blockIdx.x * {THREADS} + threadIdx.x;
  if (i < {y.size}) y[i] = a * x[i] + y[i];
}}"""


@tracegraph.kernel(
    source=saxpy_text,
    out=lambda a, x, y: y,
    grid=lambda a, x, y: -(-y.size // THREADS),
    block=THREADS,
    scalars={"a": "float64"},
    aliases={0: "y"},
    batching="sequential",
)
def saxpy(a: Any, x: Any, y: Any) -> Any:
    """y + a x, in place. The numbers of the tests are small, so that nothing is rounded."""
    y += a * x
    return y


@tracegraph.kernel(
    source="""
namespace { __device__ double helper(double x) { return 2 * x; } }
extern "C" __global__ void rows(const double* x, const long long* shift, double* sums) {
  extern __shared__ double parts[];
  parts[threadIdx.x] = helper(x[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x) return;
  double sum = 0;
  for (int i = 0; i < blockDim.x; ++i) sum += parts[i];
  sums[blockIdx.x] = sum + *shift;
}""",
    entry="rows",
    out=lambda x, shift: x.with_shape(x.shape[:1]),
    grid=lambda x, shift: x.shape[0],
    block=lambda x, shift: x.shape[1],
    shared_memory=lambda x, shift: 8 * x.shape[1],
    batching=lambda lanes, batched, x, shift: _rows_of_lanes(lanes, batched, x, shift),
)
def doubled_rows(x: Any, shift: Any) -> Any:
    """Sums of rows, doubled, and a number; helper is also the name of another kernel's function."""
    return (2 * x).sum(axis=1) + shift


def _rows_of_lanes(lanes: int, batched: tuple[bool, ...], x: Any, shift: Any) -> Any:
    x = x if batched[0] else np.broadcast_to(x, (lanes, *x.shape))
    sums = doubled_rows(x.reshape(-1, x.shape[-1]), 0).reshape(lanes, -1)
    return sums + (shift[:, np.newaxis] if batched[1] else shift)


@tracegraph.kernel(
    source="""
namespace { __device__ double helper(double x) { return x + 1; } }
extern "C" __global__ void rows(const double* x, double* y) {
  y[threadIdx.x] = helper(x[threadIdx.x]);
}""",
    entry="rows",
    out=lambda x: x,
    grid=1,
    block=lambda x: x.size,
)
def incremented(x: Any) -> Any:
    """x + 1, by functions that have the names of those of `doubled_rows`."""
    return x + 1


# programs


def once(v: Any, current: Any) -> Any:
    after, spiked = lif(v * 2, current, 0.5, N)
    return after + 1, spiked.sum()


def in_fori(v: Any, current: Any) -> Any:
    def step(i: Any, carry: Any) -> Any:
        v, count = carry
        v, spiked = lif(v, current * 0.5, 0.75, N)
        return v, count + spiked.sum()

    return tracegraph.fori_loop(0, 40, step, (v, 0))


def in_while(v: Any, current: Any) -> Any:
    def step(carry: Any) -> Any:
        v, count = carry
        v, spiked = lif(v, current, 0.75, N)
        return v, count + spiked.sum()

    return tracegraph.while_loop(lambda carry: carry[1] < 2000, step, (v, 0))


def in_scan(v: Any, current: Any) -> Any:
    currents = np.stack([current, current * 0.5, current * 0.25])
    return tracegraph.scan(lambda v, c: lif(v, c, 0.5, N), v, currents)


def in_branch(v: Any, current: Any) -> Any:
    return tracegraph.cond(
        v.sum() > current.sum(),
        lambda v: lif(v, current, 0.5, N)[0],
        lambda v: lif(current, v, 0.5, N)[0],
        v,
    )


def updated(x: Any, y: Any) -> Any:
    """The array before is used, too."""
    return saxpy(2.0, x, y) + y


def updated_in_a_loop(x: Any, y: Any) -> Any:
    return tracegraph.fori_loop(0, 50, lambda i, y: saxpy(1.0, x, y), y)


def of_views(x: Any, y: Any) -> Any:
    """Not contiguous, reversed, and a row that is not the first."""
    rows = doubled_rows(x[:900].reshape(30, 30).T, 3)
    return rows, incremented(y[::-1][:30]), incremented(x[900:].reshape(2, 50)[1])


def of_reshaped(x: Any, y: Any) -> Any:
    return doubled_rows(x.reshape(10, 100), y[0].astype(int)), incremented(x[:7] * y[:7])


def twice_the_same(x: Any, y: Any) -> Any:
    return saxpy(1.0, y, y), saxpy(3.0, x, x)


def one_argument(x: Any, y: Any) -> Any:
    return incremented(x[:100])


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        return self.function.__name__


def _numbers(seed: int, dtype: Any) -> Any:
    return np.random.default_rng(seed).integers(0, 16, N).astype(dtype) / dtype(8)


PROGRAMS = [
    *[
        Program(f, (_numbers(0, np.float32), _numbers(1, np.float32)))
        for f in (once, in_fori, in_while, in_scan, in_branch)
    ],
    *[
        Program(f, (_numbers(0, np.float64), _numbers(1, np.float64)))
        for f in (updated, updated_in_a_loop, of_views, of_reshaped, twice_the_same, one_argument)
    ],
]

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=str)
