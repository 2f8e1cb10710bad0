"""Kernels for small matrices access only what is theirs, and wait for what others write."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering.algorithms import are_small
from lowering.algorithms.small_matrices import small
from tests.emulation.access_checks import CheckedKernels
from tests.emulation.emulator import COMPILER, for_host
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.tracing.trace import trace_program

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

COUNT = 3
"""Matrices: the last warp or block is not full."""

SIZES = [
    *(("float64", 2), ("complex64", 5), ("float32", 8), ("complex128", 9), ("float64", 12)),
    *(("float32", 17), ("complex64", 33)),
]
MOST_ROTATED = 17
"""Rows of matrices whose columns are rotated, which takes most of the time."""

Function = Callable[..., Any]
FACTORS: list[tuple[str, Function]] = [
    ("cholesky", small.cholesky),
    ("lu", small.lu),
    ("eigh", small.eigh),
    ("eigh", lambda a: small.eigh(a, vectors=False)),
    ("svd", small.rotated),
    ("qr", small.qr),
]
SOLVES: list[Function] = [
    lambda a, b: small.triangular_solve(a, b, lower=True),
    lambda a, b: small.triangular_solve(a, b, lower=False, unit=True),
]


def matrices(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    """Positive definite ones, or any if they are not square."""
    rng = np.random.default_rng(shape[-1])
    a = rng.standard_normal(shape)
    a = a + 1j * rng.standard_normal(shape) if "c" in dtype else a
    a = a @ np.conj(a.mT) + np.eye(shape[-1]) if shape[-1] == shape[-2] else a
    return a.astype(dtype)


def cases() -> list[tuple[Function, tuple[np.ndarray[Any, Any], ...]]]:
    found: list[tuple[Function, tuple[np.ndarray[Any, Any], ...]]] = []
    for dtype, n in SIZES:
        a = matrices(dtype, COUNT, n, n)
        for name, function in FACTORS:
            if n > MOST_ROTATED and name in ("eigh", "svd"):
                continue
            if are_small(name, [ArrayType(a.dtype, a.shape)]):
                found.append((function, (a,)))
        found.append((small.qr, (matrices(dtype, COUNT, 2 * n + 1, n),)))
        for function in SOLVES:
            found += [(function, (a, matrices(dtype, COUNT, n, k))) for k in (1, 6, 70)]
    return found


MACROS = ("N", "LANES", "THREADS", "EPS", "TINY", "SWEEPS", "ROWS", "COLUMNS", "GROUP")
UNDEFINED = "".join(f"#undef {each}\n" for each in MACROS)


def test_all_accesses_are_in_range_and_in_order(tmp_path: Path) -> None:
    texts, launches = [], []
    for number, (function, arrays) in enumerate(cases()):
        program = trace_program(function, [*map(type_of, arrays)], "small")
        (call,) = [eqn.attrs["call"] for eqn in program.body.eqns if eqn.op is custom_kernel]
        assert isinstance(call, KernelCall)
        launch = call.launch([type_of(x) for x in arrays])
        text = launch.text.replace(f"{call.kernel.name}(", f"kernel_{number}(")
        outs = [np.zeros(each.shape, each.dtype) for each in launch.out_types]
        arguments = [*arrays, *(scalar.word for scalar in call.scalars), *outs]
        texts.append((UNDEFINED + for_host(text, False), len(arguments)))
        launches.append((call.kernel.name, arguments, launch))
    kernels = CheckedKernels(texts, tmp_path)
    faults = {}
    for number, (name, arguments, launch) in enumerate(launches):
        fault = kernels.fault(
            number, arguments, launch.grid[0], prod(launch.block), launch.shared_bytes
        )
        if fault:
            faults[f"{name} of {arguments[0].dtype}"] = fault
    assert not faults


WORDS = 64
"""Threads of a block; also elements of its array, and words of its shared memory."""

STATEMENTS = {
    "x[i] = s[i] = x[i];": "",
    "s[i] = 1; __syncthreads(); x[i] = s[63 - i];": "",
    "s[i] = 1; __syncwarp(~0u); x[i] = s[i ^ 1];": "",
    "x[i] = x[i + 1];": "thread 63 of block 0 reads out of range a byte of an array 256",
    "x[i - 1] = 0;": "thread 0 of block 0 writes out of range a byte of an array -4",
    "s[i + 1] = 0;": "thread 63 of block 0 writes out of range the shared byte 256",
    "s[i] = 1; x[i] = s[i & 32];": "reads without a barrier after a write the shared byte 0",
    "s[i] = 1; __syncwarp(~0u); x[i] = s[63];": (
        "writes without a barrier after a read the shared byte 252"
    ),
    "if (i == 0) s[0] = 1; __shfl_sync(~0u, 0, 0); if (i < 32) x[i] = s[0];": (
        "reads without a barrier after a write the shared byte 0"
    ),
    "if (i < 32) x[i] = s[0]; __shfl_sync(~0u, 0, 0); if (i == 0) s[0] = 1;": (
        "thread 0 of block 0 writes without a barrier after a read the shared byte 0"
    ),
}
"""What a thread does, and what is wrong with it."""


def test_faults_are_found(tmp_path: Path) -> None:
    shared = "extern __shared__ __align__(16) unsigned char shared[];"
    names = "float* const s = (float*)shared; const int i = threadIdx.x;"
    texts = [
        for_host(f"__global__ void kernel_{k}(float* x) {{ {shared} {names} {each} }}\n", False)
        for k, each in enumerate(STATEMENTS)
    ]
    kernels = CheckedKernels([(text, 1) for text in texts], tmp_path)
    x = np.zeros(WORDS, np.float32)
    for k, (statement, wrong) in enumerate(STATEMENTS.items()):
        fault = kernels.fault(k, [x], 1, WORDS, x.nbytes)
        assert wrong in fault, statement
        assert bool(wrong) == bool(fault), (statement, fault)
