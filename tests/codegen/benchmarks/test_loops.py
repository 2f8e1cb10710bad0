"""The loops that benchmarks take as limits compile for GPUs, and do their rows' work."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from benchmarks.rows import heat, mandelbrot
from benchmarks.rows.hand_loops import SOURCE, code_for

BLOCKS, THREADS = 3, 64

SHIM = r"""
#include <barrier>
#include <memory>
#include <thread>
#include <vector>
#define __device__
#define __global__
#define __launch_bounds__(n)
#define __cudart_builtin__
#define CUDARTAPI

struct Index { unsigned x; };
struct Block {
  unsigned char memory[256];
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::vector<double> given;
  int flag = 0;
  explicit Block(int threads) : all(threads), given(threads) {
    for (int i = 0; i < threads; i += 32) warps.emplace_back(new std::barrier<>(32));
  }
};
static thread_local Index threadIdx, blockIdx;
static Index gridDim, blockDim;
static thread_local Block* block;
static void __syncthreads() { block->all.arrive_and_wait(); }
static int __syncthreads_or(int flag) {
  if (flag) __sync_fetch_and_or(&block->flag, 1);
  __syncthreads();
  const int any = block->flag;
  __syncthreads();
  if (threadIdx.x == 0) block->flag = 0;
  __syncthreads();
  return any;
}
static void __threadfence() { __sync_synchronize(); }
static unsigned atomicAdd(unsigned* to, unsigned x) { return __sync_fetch_and_add(to, x); }
template <class T> static T __shfl_xor_sync(unsigned, T x, int apart) {
  std::barrier<>& warp = *block->warps[threadIdx.x / 32];
  block->given[threadIdx.x] = x;
  warp.arrive_and_wait();
  x = block->given[threadIdx.x ^ apart];
  warp.arrive_and_wait();
  return x;
}
static unsigned conditions[2];
extern "C" void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  conditions[handle] = value;
}
template <class F> static void launch(int blocks, int threads, F kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  std::vector<std::unique_ptr<Block>> all;
  std::vector<std::thread> running;
  for (int b = 0; b < blocks; ++b) all.emplace_back(new Block(threads));
  for (int b = 0; b < blocks; ++b)
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&, b, t] {
        blockIdx.x = b;
        threadIdx.x = t;
        block = all[b].get();
        kernel();
      });
  for (auto& thread : running) thread.join();
}
"""

ENTRIES = r"""
#define ENTRY(name, call, ...) \
  extern "C" void run_##name(int blocks, int threads, __VA_ARGS__) { \
    launch(blocks, threads, [=] { call; }); \
  }
typedef unsigned* W;
typedef unsigned U;
typedef float* P;
typedef float F;
typedef long long* L;
ENTRY(relax, relax<F>(a, b, n, s, f, g, w), P a, P b, U n, U s, F f, F g, W w)
ENTRY(scale_and_stack, scale_and_stack<F>(a, b, c, n, s, f, p, w),
      P a, P b, P c, U n, U s, F f, P p, W w)
ENTRY(scale_while, scale_while<F>(a, l, c, n, f, g, p, w), P a, L l, P c, U n, F f, F g, P p, W w)
ENTRY(heat, heat<F>(a, b, c, r, n, s, f, w), P a, P b, P c, U r, U n, U s, F f, W w)
ENTRY(mandelbrot, mandelbrot<F>(a, b, c, l, x, y, n, m, v, w),
      P a, P b, int* c, L l, P x, P y, U n, U m, W v, W w)
extern "C" void run_while(int threads, P x, L steps, P start, U n, F factor, F threshold) {
  launch(1, threads, [=] { while_begin<F>(x, steps, start, n, threshold, 0); });
  while (conditions[0])
    launch(1, threads, [=] { while_step<F>(x, steps, n, factor, threshold, 0); });
}
extern "C" void run_nested(int threads, P x, P start, U n, F f, F g, W counters, U outer, U inner) {
  launch(1, threads, [=] { nested_begin<F>(x, start, n, counters, outer, 0); });
  while (conditions[0]) {
    launch(1, 1, [=] { nested_round(counters, outer, inner, 0, 1); });
    while (conditions[1])
      launch(1, threads, [=] { nested_step<F>(x, n, f, g, counters, inner, 1); });
  }
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_loops_compile_for_gpus(arch):
    pytest.importorskip("cuda.bindings.nvrtc")
    for dtype in ("float32", "float64"):
        assert code_for(arch, np.dtype(dtype)).code


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """Functions of the kernels, by name, each thread of a kernel one of the system's."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ to compile for the host")
    folder = tmp_path_factory.mktemp("loops")
    source, binary = folder / "loops.cpp", folder / "loops.so"
    text = SOURCE.replace("__shared__ T parts[32];", "T* const parts = (T*)block->memory;")
    source.write_text(SHIM + text + ENTRIES)
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([compiler, *flags, str(source), "-o", str(binary)], check=True)
    library = ctypes.CDLL(str(binary))

    def call(name, *arguments):
        converted = [
            ctypes.c_void_p(x.ctypes.data)
            if isinstance(x, np.ndarray)
            else (ctypes.c_float if isinstance(x, float) else ctypes.c_uint)(x)
            for x in arguments
        ]
        getattr(library, f"run_{name}")(*converted)

    return call


@pytest.fixture(params=[1, BLOCKS])
def grid(request):
    """Blocks and threads, the sums of blocks, and a counter."""
    return request.param, np.empty(2 * BLOCKS, np.float32), np.zeros(1, np.uint32)


@pytest.fixture
def x():
    return np.random.default_rng(0).random(211, np.float32) + 1


def test_relax(loops, grid, x):
    blocks, _, arrived = grid
    out = np.empty_like(x)
    loops("relax", blocks, THREADS, out, x, x.size, 4, 0.99, 0.5, arrived)
    for _ in range(4):
        x = x * np.float32(0.99) + np.float32(0.5)
    np.testing.assert_allclose(out, x, rtol=1e-6)


def test_scale_and_stack(loops, grid, x):
    blocks, parts, arrived = grid
    out, sums = np.empty_like(x), np.empty(5, np.float32)
    loops("scale_and_stack", blocks, THREADS, out, sums, x, x.size, 5, 0.5, parts, arrived)
    np.testing.assert_array_equal(out, x / 32)
    np.testing.assert_allclose(sums, [x.sum() / 2**k for k in range(5)], rtol=1e-5)


def test_scale_while(loops, grid, x):
    blocks, parts, arrived = grid
    out, steps = np.empty_like(x), np.zeros(1, np.int64)
    threshold = float(x.sum() * 0.1)
    loops("scale_while", blocks, THREADS, out, steps, x, x.size, 0.5, threshold, parts, arrived)
    assert steps[0] == 4
    np.testing.assert_array_equal(out, x / 16)


def test_while_node(loops, x):
    out, steps = np.empty_like(x), np.full(1, -1, np.int64)
    loops("while", THREADS, out, steps, x, x.size, 0.5, float(x.sum() * 0.1))
    assert steps[0] == 4
    np.testing.assert_array_equal(out, x / 16)


def test_nested_while_nodes(loops, x):
    out, counters = np.empty_like(x), np.zeros(2, np.uint32)
    loops("nested", THREADS, out, x, x.size, 0.5, 1.0, counters, 3, 2)
    for _ in range(6):
        x = x * np.float32(0.5) + np.float32(1)
    np.testing.assert_array_equal(out, x)


def test_heat(loops, grid, x):
    blocks, _, arrived = grid
    start = x[:198].reshape(11, 18)
    out, other = np.empty_like(start), np.empty_like(start)
    loops("heat", blocks, THREADS, out, other, start, *start.shape, 2, 0.1, arrived)
    wanted = start
    for _ in range(2):
        wanted = heat._step(np.roll, wanted)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


@pytest.mark.parametrize("far", [0.0, 3.0])
def test_mandelbrot(loops, grid, far):
    """Near points stay inside; of far ones all escape at once."""
    blocks, _, arrived = grid
    x = np.linspace(-2, 0.6, 150, dtype=np.float32) + np.float32(far)
    y = np.full_like(x, 0.3 + far)
    re, im, counts = np.empty_like(x), np.empty_like(x), np.empty(x.size, np.int32)
    steps, alive = np.zeros(1, np.int64), np.zeros(9, np.uint32)
    arrays = (re, im, counts, steps, x, y)
    loops("mandelbrot", blocks, THREADS, *arrays, x.size, 9, alive, arrived)
    wanted, taken = _mandelbrot(x, y, 9)
    assert steps[0] == taken
    assert np.mean(counts != wanted) < 0.01


def _mandelbrot(x, y, most):
    state = (x * 0, y * 0, np.zeros(x.shape, np.int32), 0)
    while state[3] < most and (state[0] ** 2 + state[1] ** 2 <= 4).any():
        state = mandelbrot._advance(np.where, x, y, state)
    return state[2:]
