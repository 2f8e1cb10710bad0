"""Kernels of users on a GPU: everywhere in a graph, with every attribute of a launch."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.target import features
from lowering.plan.target.overrides import override
from tests.cases.custom_functions import (
    distinct,
    each_case,
    each_fold,
    folded,
    operands,
    picked,
    softplus,
    strongest,
)
from tests.cases.custom_kernels import (
    PROGRAMS,
    N,
    Program,
    doubled_rows,
    each_program,
    incremented,
    lif,
    saxpy,
    updated_in_a_loop,
)
from tracegraph import errors, tree
from tracegraph.testing import check_kernel

V = (np.arange(N) % 16 / 8).astype(np.float32)
X = np.arange(float(N))


WAYS: dict[str, Callable[[], Any]] = {
    "as they are": nullcontext,
    "over donated arguments": nullcontext,
    "loops in one kernel": lambda: override(loops="one_kernel", branches="predicated"),
    "driven by the host": lambda: features.override(conditional_nodes=False),
    "without updates in bodies": lambda: features.override(body_updates=False),
}


@pytest.mark.parametrize("way", WAYS)
@each_program
def test_programs(program: Program, way: str) -> None:
    expected = tree.leaves(program.function(*program.arguments))
    donated = range(len(program.arguments)) if way == "over donated arguments" else ()
    with WAYS[way]():
        jitted = tracegraph.jit(program.function, device="cuda", donate_argnums=donated)
        for _ in range(3):
            arguments = [tracegraph.asarray(each, device="cuda") for each in program.arguments]
            for a, b in zip(expected, tree.leaves(jitted(*arguments)), strict=True):
                np.testing.assert_array_equal(np.asarray(b), a)


def test_kernels_and_their_references() -> None:
    check_kernel(lif, V, V[::-1].copy(), 0.5, N)
    check_kernel(saxpy, 2.0, X, X)
    check_kernel(saxpy, 2.0, V, V)
    check_kernel(doubled_rows, X.reshape(10, 100), np.array(3))
    check_kernel(incremented, X[:64])


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("y[threadIdx.x] = 0;", "result"),
        ("y[threadIdx.x] = x[threadIdx.x]; x[threadIdx.x] = -1;", "has written to array 0"),
    ],
)
def test_a_kernel_that_differs_or_writes_to_an_argument_is_found(body: str, match: str) -> None:
    source = f'extern "C" __global__ void f(double* x, double* y) {{ {body} }}'
    block = lambda x: x.size  # noqa: E731
    wrong = tracegraph.kernel(source=source, entry="f", out=lambda x: x, grid=1, block=block)
    with pytest.raises(AssertionError, match=match):
        check_kernel(wrong(lambda x: x), X[:64])


def test_new_addresses() -> None:
    jitted = tracegraph.jit(lambda x: incremented(x), device="cuda")
    kept = []
    for k in range(20):
        x = tracegraph.asarray(X[:64] + k, device="cuda")
        kept.append((x, jitted(x)))
    for k, (_, y) in enumerate(kept):
        np.testing.assert_array_equal(np.asarray(y), X[:64] + k + 1)


def test_a_donated_state_is_updated_where_it_is() -> None:
    jitted = tracegraph.jit(updated_in_a_loop, device="cuda", donate_argnums=1)
    x, y = (tracegraph.asarray(X, device="cuda") for _ in range(2))
    address = y.data.pointer
    y = jitted(x, y)
    assert y.data.pointer == address
    np.testing.assert_array_equal(np.asarray(y), 51 * X)


def test_eagerly_on_the_device() -> None:
    found = incremented(tracegraph.asarray(X[:64], device="cuda"))
    assert found.device == "cuda:0"
    np.testing.assert_array_equal(np.asarray(found), X[:64] + 1)


def test_lanes() -> None:
    x, y = np.arange(12.0).reshape(3, 4), np.ones(4)
    mapped = tracegraph.vmap(lambda x: saxpy(2.0, x, y))
    found = tracegraph.jit(mapped, device="cuda")(x)
    np.testing.assert_array_equal(np.asarray(found), 2 * x + 1)


CLUSTER = """
extern "C" __global__ void ranks(const int* x, int* y) {
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  y[blockIdx.x] = x[blockIdx.x] + 100 * size + rank;
}"""


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_clusters(size: int) -> None:
    kernel = tracegraph.kernel(
        source=CLUSTER, entry="ranks", out=lambda x: x, grid=16, block=32, cluster=size
    )(lambda x: x + np.int32(100 * size) + (np.arange(16) % size).astype(np.int32))
    check_kernel(kernel, np.arange(16, dtype=np.int32))


def test_attributes_stay_when_addresses_change() -> None:
    kernel = tracegraph.kernel(
        source=CLUSTER,
        entry="ranks",
        out=lambda x: x,
        grid=16,
        block=32,
        cluster=4,
        shared_memory=100 << 10,
    )(lambda x: x + np.int32(400) + (np.arange(16) % 4).astype(np.int32))
    jitted = tracegraph.jit(lambda x: kernel(x), device="cuda")
    kept = []
    for k in range(5):
        x = np.arange(16, dtype=np.int32) + k
        kept.append((tracegraph.asarray(x, device="cuda"),))
        kept[-1] += (jitted(*kept[-1]),)
        np.testing.assert_array_equal(np.asarray(kept[-1][1]), kernel(x))
    assert jitted.stats()["updates"] > 0


@pytest.mark.parametrize("nbytes", [1 << 10, 48 << 10, 100 << 10, 200 << 10])
def test_dynamic_shared_memory(nbytes: int) -> None:
    kernel = tracegraph.kernel(
        source="""extern "C" __global__ void last(const int* x, int n, int* y) {
          extern __shared__ int words[];
          for (int i = threadIdx.x; i < n; i += blockDim.x) words[i] = i;
          __syncthreads();
          if (threadIdx.x == 0) *y = *x + words[n - 1];
        }""",
        entry="last",
        out=lambda x, n: x,
        grid=1,
        block=256,
        scalars={"n": "int32"},
        shared_memory=lambda x, n: 4 * n,
    )(lambda x, n: x + (n - 1))
    check_kernel(kernel, np.array(5, np.int32), nbytes // 4)


COOPERATIVE = """
extern "C" __global__ void barrier(const int* x, unsigned* arrived, int* y) {
  // each block adds what all blocks have written before
  y[blockIdx.x] = x[blockIdx.x];
  __threadfence();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (*(volatile unsigned*)arrived < gridDim.x) {}
    __threadfence();
    int sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += ((volatile int*)y)[i];
    y[gridDim.x + blockIdx.x] = sum;
  }
}"""


def barrier(blocks: int) -> Any:
    return tracegraph.kernel(
        source=COOPERATIVE,
        entry="barrier",
        out=lambda x, arrived: (arrived, x.with_shape((2 * blocks,))),
        grid=blocks,
        block=64,
        aliases={0: "arrived"},
        cooperative=True,
    )(lambda x, arrived: (arrived + np.uint32(blocks), np.append(x, np.full_like(x, x.sum()))))


def test_cooperative_kernels() -> None:
    check_kernel(barrier(100), np.arange(100, dtype=np.int32), np.array(0, np.uint32))


def test_a_cooperative_kernel_in_a_loop() -> None:
    kernel = barrier(32)

    def step(i: Any, x: Any) -> Any:
        _, sums = kernel(x, np.uint32(0))
        return sums[:32] + sums[32:] % 7

    f = lambda x: tracegraph.fori_loop(0, 40, step, x)  # noqa: E731
    x = np.arange(32, dtype=np.int32)
    found = tracegraph.jit(f, device="cuda")(x)
    np.testing.assert_array_equal(
        np.asarray(found), np.asarray(tracegraph.jit(f, device="host")(x))
    )


def test_a_cooperative_kernel_that_does_not_fit() -> None:
    with pytest.raises(errors.KernelLaunchError, match="is cooperative, and has 100000 blocks"):
        check_kernel(barrier(100_000), np.zeros(100_000, np.int32), np.array(0, np.uint32))


def compiled_object() -> Any:
    from cuda.core import Program, ProgramOptions

    text = """extern "C" __global__ void scaled(const float* x, float a, float* y) {
      y[threadIdx.x] = a * x[threadIdx.x];
    }"""
    from lowering.cuda.open_devices import open_device

    options = ProgramOptions(arch=open_device(0).driver.arch, std="c++17")
    return Program(text, "c++", options=options).compile("cubin").get_kernel("scaled")


def test_a_compiled_kernel_of_cuda_core() -> None:
    def declare(scalars: dict[str, str]) -> Any:
        return tracegraph.kernel(
            compiled_object(),
            out=lambda x, a: x,
            grid=1,
            block=lambda x, a: x.size,
            scalars=scalars,
        )(lambda x, a: (x * a).astype(x.dtype))

    scaled = declare({"a": "float32"})
    check_kernel(scaled, V[:64], 3.0)

    def in_a_loop(x: Any) -> Any:
        return tracegraph.fori_loop(0, 10, lambda i, x: scaled(x, 2.0), x)

    jitted = tracegraph.jit(in_a_loop, device="cuda")
    jitted(V[:64])
    gc.collect()
    np.testing.assert_array_equal(np.asarray(jitted(V[:64])), V[:64] * 1024)
    with pytest.raises(errors.KernelLaunchError, match="has 3 parameters, of 8, 4, 8 bytes"):
        check_kernel(declare({"a": "float64"}), V[:64], 3.0)


def test_an_error_of_the_compiler_leaves_the_device_usable() -> None:
    wrong = tracegraph.kernel(
        source="nonsense", entry="f", out=lambda x: x, grid=1, block=32
    )(lambda x: x)  # fmt: skip
    with pytest.raises(errors.KernelCompileError, match="nonsense"):
        check_kernel(wrong, X)
    check_kernel(incremented, X[:64])


def test_exported(stream: Any) -> None:
    program = PROGRAMS[1]
    compiled = tracegraph.jit(program.function, device="cuda").lower(*program.arguments).compile()
    exported = compiled.export_graph(*program.arguments)
    executable = exported.definition.instantiate()
    executable.launch(stream)
    stream.sync()
    expected = tree.leaves(program.function(*program.arguments))
    for a, b in zip(expected, tree.leaves(exported.results), strict=True):
        np.testing.assert_array_equal(np.asarray(b), a)


@each_case
def test_elementwise_functions(function: Any, dtypes: Any) -> None:
    check_kernel(function, *operands(dtypes))


def test_elementwise_functions_in_loops_and_derivatives() -> None:
    def f(x: Any) -> Any:
        return tracegraph.fori_loop(0, 30, lambda i, y: softplus(y) / 2 - picked(y, x) / 8, x).sum()

    gradient = tracegraph.grad(f)
    x = np.linspace(-1.0, 1.0, 100)
    found = tracegraph.jit(gradient, device="cuda")(x)
    expected = tracegraph.jit(gradient, device="host")(x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-10)


@each_fold
def test_reductions(fold: Any, dtype: Any) -> None:
    x = distinct(dtype)
    expected = tree.leaves(folded(fold)(x))
    found = tree.leaves(tracegraph.jit(folded(fold), device="cuda")(x))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(np.asarray(b), a)


@pytest.mark.parametrize("n", [1, 31, 1000, 100_000, 3_000_000])
def test_long_reductions_and_scans(n: int) -> None:
    x = np.random.default_rng(n).permutation(n) - n // 3
    for f in (strongest, strongest.accumulate):
        found = np.asarray(tracegraph.jit(f, device="cuda")(x))
        expected = x[np.argmax(np.abs(x))]
        assert (found if f is strongest else found[-1]) in (expected, -expected)
