"""Algorithms for many small matrices as kernels: a group of lanes, or a warp, for each matrix.

The code is in small_matrices.cuh. A kernel is compiled for the rows and the dtype of its matrices,
and gets their number as a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from math import prod
from typing import Any

import numpy as np

from tracegraph.algorithms.jacobi import SWEEPS, negligible
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType
from tracegraph.ops.custom_kernels import (
    CudaText,
    CustomKernel,
    KernelCall,
    Scalar,
    custom_kernel,
)
from tracegraph.ops.factorizations.matrices import real_dtype

MOST_ROWS = 32
"""A row has a lane of a warp."""
MOST_COLUMNS = 64
"""Right-hand sides of a system, which are solved one after the other."""

THREADS = 128
_SHARED_BYTES = 48 << 10
"""What a block may use without asking."""

_INT64 = np.dtype(np.int64)
_REAL = {4: "float", 8: "double"}
_OUTPUTS = {
    "cholesky": ("T",),
    "lu": ("T", "int", "int"),
    "eigh": ("R", "T"),
    "triangular_solve": ("T",),
}
_SOURCE = files("tracegraph.algorithms").joinpath("small_matrices.cuh").read_text()


def are_small(types: Sequence[ArrayType]) -> bool:
    """Whether operands of these types are for kernels."""
    m, n = types[0].shape[-2:]
    return m == n and 2 <= n <= MOST_ROWS and all(t.shape[-1] <= MOST_COLUMNS for t in types)


def cholesky(a: Any) -> Any:
    """The lower triangular L of A = L Lᴴ; NaN in all of it if A is not positive definite."""
    return _factored("cholesky", a, "cholesky(a, out0, count);")


def lu(a: Any) -> Any:
    """The factors, packed, the pivots, and the rows in the order of the factors."""
    return _factored("lu", a, "lu(a, out0, out1, out2, count);")


def eigh(a: Any, *, vectors: bool = True) -> Any:
    """The eigenvalues in ascending order, and the eigenvectors as columns."""
    call = "eigh<true>(a, out0, out1," if vectors else "eigh<false>(a, out0, nullptr,"
    body = f"extern __shared__ __align__(16) unsigned char shared[];\n  {call} count, shared);"
    return _factored("eigh", a, body, vectors=vectors)


def triangular_solve(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The x of A x = b, from one triangle of A."""
    n, columns = b.shape[-2:]
    flags = ", ".join(str(flag).lower() for flag in (lower, unit))
    body = f"triangular_solve<{flags}>(a, b, out0, count, columns);"
    kernel = _kernel("triangular_solve", a.dtype, n, body, (("lower", lower), ("unit", unit)))
    return _applied(kernel, (a, b), columns)


def _factored(name: str, a: Any, body: str, **attrs: Any) -> Any:
    return _applied(_kernel(name, a.dtype, a.shape[-1], body, tuple(attrs.items())), (a,))


def _applied(kernel: CustomKernel, operands: tuple[Any, ...], *sizes: int) -> Any:
    count = prod(operands[0].shape[:-2])
    scalars = tuple([Scalar.of(size, _INT64) for size in (count, *sizes)])
    return apply(custom_kernel, *operands, call=KernelCall(kernel, scalars))


@lru_cache(maxsize=256)
def _kernel(
    name: str, dtype: np.dtype[Any], n: int, body: str, attrs: tuple[tuple[str, Any], ...]
) -> CustomKernel:
    """The kernel of an op for matrices of `n` rows: its outputs are those of the op."""
    op, options = get(name), dict(attrs)
    arrays = ("a", "b") if name == "triangular_solve" else ("a",)
    parameters = (*arrays, "count", "columns")[: 2 * len(arrays)]
    lanes = 1 << max(n - 1, 0).bit_length()
    pieces = 1 if name == "eigh" else 32 // lanes
    shared = _shared_bytes(dtype, n, options["vectors"]) if name == "eigh" else 0
    threads = THREADS if shared * (THREADS // 32) <= _SHARED_BYTES else 32

    def out(*given: Any) -> Any:
        types = op.result_types([each for each in given if isinstance(each, ArrayType)], options)
        return types if len(types) > 1 else types[0]

    def blocks(a: ArrayType, *_: Any) -> int:
        return -(-prod(a.shape[:-2]) // (pieces * threads // 32))

    def reference(*given: Any) -> Any:
        return op.reference(*given[: len(arrays)], **options)

    constants = {"N": n, "LANES": lanes, "THREADS": threads}
    text = _text(name, dtype, constants, body, parameters)
    return CustomKernel(
        name=name,
        where=f"linalg.{name} of matrices of {n} rows",
        reference=reference,
        parameters=parameters,
        code=CudaText(text, f"small_{name}"),
        out=out,
        batching=None,
        scalars=dict.fromkeys(parameters[len(arrays) :], _INT64),
        grid=blocks,
        block=threads,
        shared_bytes=shared * (threads // 32),
    )


def _text(
    name: str, dtype: np.dtype[Any], constants: dict[str, Any], body: str, parameters: Sequence[str]
) -> str:
    """The unit of a kernel."""
    part = real_dtype(dtype)
    real = _REAL[part.itemsize]
    constants |= {"EPS": np.finfo(part).eps, "TINY": negligible(part), "SWEEPS": SWEEPS}
    declared = [
        f"long long {each}" if each in ("count", "columns") else f"const T* {each}"
        for each in parameters
    ]
    outputs = _OUTPUTS[name][:1] if "nullptr" in body else _OUTPUTS[name]
    declared += [f"{type_}* out{i}" for i, type_ in enumerate(outputs)]
    return "\n".join(
        [
            *(f"#define {constant} {value}" for constant, value in constants.items()),
            "template <class P> struct complex_of;",
            f"typedef {real} R;",
            f"typedef {f'complex_of<{real}>' if dtype.kind == 'c' else real} T;",
            _SOURCE,
            f'extern "C" __global__ void __launch_bounds__({constants["THREADS"]})',
            f"small_{name}({', '.join(declared)}) {{",
            f"  {body}",
            "}",
            "",
        ]
    )


def _shared_bytes(dtype: np.dtype[Any], n: int, vectors: bool) -> int:
    """Of a warp: the matrix and the basis, with an even number of columns; sines and cosines."""
    pairs = (n + 1) // 2
    words = (2 if vectors else 1) * 2 * pairs * (2 * pairs + 1) + pairs
    return words * dtype.itemsize + pairs * real_dtype(dtype).itemsize
