"""Algorithms for many small matrices as kernels: a group of lanes, or a warp, for each matrix.

The code is in small_matrices.cuh. A kernel is compiled for the rows and the dtype of its matrices,
and gets their number as a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from lowering.algorithms import svd as one_sided
from lowering.algorithms.jacobi import SWEEPS, negligible
from lowering.algorithms.kernel_texts import kernel_text
from tracegraph.arrays.eager import apply
from tracegraph.ir.custom_kernels import CustomKernel
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.op import Op, Opaque, get
from tracegraph.ir.types import ArrayType
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.ops.factorizations.matrices import NDArray, real_dtype

MOST_ROWS = 32
"""A row has a lane of a warp."""
MOST_COLUMNS = 64
"""Right-hand sides of a system, which are solved one after the other."""

THREADS = 128
_SHARED_BYTES = 48 << 10
"""What a block may use without asking."""

_INT64 = np.dtype(np.int64)
_OUTPUTS = {
    "lu": ("T", "int", "int"),
    "eigh": ("R", "T"),
    "eigvalsh": ("R",),
    "orthogonal_columns": ("T", "T"),
}
"""The C++ types of the outputs by kernel; others have one, of the type of the elements."""


def _orthogonal_type(a: ArrayType, *, vectors: bool) -> ArrayType | tuple[ArrayType, ...]:
    return (a, a) if vectors else a


def _orthogonal(a: NDArray, *, vectors: bool) -> Any:
    u, values, vh = np.linalg.svd(a)
    columns = (u * values[..., None, :]).astype(a.dtype)
    return (columns, np.conj(np.swapaxes(vh, -1, -2))) if vectors else columns


orthogonal_columns = Op(
    "orthogonal_columns",
    "Orthogonal columns of square matrices and, if asked for, the unitary V of a = columns Vᴴ.",
    _orthogonal_type,
    _orthogonal,
    Opaque(),
    lambda: (),
)


def are_small(name: str, types: Sequence[ArrayType]) -> bool:
    """Whether there are kernels for an op on operands of these types.

    Those for tridiagonal systems, in `partitions`, are for all.
    """
    if name == "tridiagonal_solve":
        return True
    m, n = types[0].shape[-2:]
    if name in ("svd", "pinv"):
        return 2 <= min(m, n) <= MOST_ROWS
    return m == n and 2 <= n <= MOST_ROWS and all(t.shape[-1] <= MOST_COLUMNS for t in types)


def cholesky(a: Any) -> Any:
    """The lower triangular L of A = L Lᴴ; NaN in all of it if A is not positive definite."""
    return _factored("cholesky", "cholesky(a, out0, count);", get("cholesky"), a)


def lu(a: Any) -> Any:
    """The factors, packed, the pivots, and the rows in the order of the factors."""
    return _factored("lu", "lu(a, out0, out1, out2, count);", get("lu"), a)


def eigh(a: Any, *, vectors: bool = True) -> Any:
    """The eigenvalues in ascending order, and the eigenvectors as columns."""
    name = "eigh" if vectors else "eigvalsh"
    return _factored(name, _in_shared("eigh", vectors), get("eigh"), a, vectors=vectors)


def svd(a: Any, *, vectors: bool = True) -> Any:
    """U, the singular values in descending order, and Vᴴ of A = U S Vᴴ, reduced.

    The columns of a triangular factor are rotated by a kernel.
    """
    return one_sided.svd(a, vectors=vectors, sweeps=rotated)


def pinv(a: Any, rtol: Any) -> Any:
    """V S⁺ Uᴴ, where S⁺ inverts the singular values above `rtol` of the largest."""
    return one_sided.pinv(a, rtol, sweeps=rotated)


def rotated(a: Any, vectors: bool) -> tuple[Any, Any]:
    """Columns that were rotated until they are orthogonal; the product of the rotations, or None.

    Elements are about 1 at most.
    """
    name = "orthogonal_columns" if vectors else "lengths_of_columns"
    body = _in_shared("orthogonal_columns", vectors)
    found = _factored(name, body, orthogonal_columns, a, vectors=vectors)
    return found if vectors else (found, None)


def triangular_solve(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The x of A x = b, from one triangle of A."""
    n, columns = b.shape[-2:]
    flags = ", ".join(str(flag).lower() for flag in (lower, unit))
    body = f"triangular_solve<{flags}>(a, b, out0, count, columns);"
    name = f"{'unit_' if unit else ''}{'lower' if lower else 'upper'}_solve"
    attrs = ("lower", lower), ("unit", unit)
    return _applied(
        _kernel(name, body, get("triangular_solve"), a.dtype, n, attrs), (a, b), columns
    )


def _in_shared(function: str, vectors: bool) -> str:
    """The call of a function that works in shared memory, and may compute vectors."""
    flag, last = ("true", "out1") if vectors else ("false", "nullptr")
    shared = "extern __shared__ __align__(16) unsigned char shared[];"
    return f"{shared}\n  {function}<{flag}>(a, out0, {last}, count, shared);"


def _factored(name: str, body: str, op: Op, a: Any, **attrs: Any) -> Any:
    return _applied(_kernel(name, body, op, a.dtype, a.shape[-1], tuple(attrs.items())), (a,))


def _applied(kernel: CustomKernel, operands: tuple[Any, ...], *sizes: int) -> Any:
    count = prod(operands[0].shape[:-2])
    scalars = tuple([Scalar.of(size, _INT64) for size in (count, *sizes)])
    return apply(custom_kernel, *operands, call=KernelCall(kernel, scalars))


@lru_cache(maxsize=256)
def _kernel(
    name: str, body: str, op: Op, dtype: np.dtype[Any], n: int, attrs: tuple[tuple[str, Any], ...]
) -> CustomKernel:
    """The kernel of an op for matrices of `n` rows: its outputs are those of the op.

    Plans and profilers show it as ``small_<name>_<n>``.
    """
    options = dict(attrs)
    is_solve = op.name == "triangular_solve"
    arrays = ("a", "b") if is_solve else ("a",)
    sizes = ("count", "columns") if is_solve else ("count",)
    lanes = 1 << (n - 1).bit_length()
    per_warp, shared = 32 // lanes, 0
    if "vectors" in options:  # a warp for each matrix, in shared memory
        per_warp, shared = 1, _shared_bytes(dtype, n, options["vectors"])
    threads = THREADS if shared * (THREADS // 32) <= _SHARED_BYTES else 32

    def out(*arguments: Any) -> Any:
        types = op.result_types(
            [argument for argument in arguments if isinstance(argument, ArrayType)], options
        )
        return types if len(types) > 1 else types[0]

    def blocks(a: ArrayType, *_: Any) -> int:
        return -(-prod(a.shape[:-2]) // (per_warp * threads // 32))

    def reference(*arguments: Any) -> Any:
        return op.reference(*arguments[: len(arrays)], **options)

    entry = f"small_{name}_{n}"
    declared = [f"const T* {each}" for each in arrays] + [f"long long {each}" for each in sizes]
    declared += [f"{type_}* out{i}" for i, type_ in enumerate(_OUTPUTS.get(name, ("T",)))]
    part = real_dtype(dtype)
    constants: dict[str, float] = {"N": n, "LANES": lanes, "THREADS": threads, "SWEEPS": SWEEPS}
    constants |= {"EPS": np.finfo(part).eps, "TINY": negligible(part)}
    return CustomKernel(
        name=entry,
        where=f"linalg.{op.name} of matrices of {n} rows",
        reference=reference,
        parameters=(*arrays, *sizes),
        code=kernel_text(entry, "small_matrices.cuh", dtype, constants, declared, body),
        out=out,
        batching=None,
        scalars=dict.fromkeys(sizes, _INT64),
        grid=blocks,
        block=threads,
        shared_bytes=shared * (threads // 32),
        purpose=f"{op.name} of matrices of {n} rows, by one kernel",
    )


def _shared_bytes(dtype: np.dtype[Any], n: int, vectors: bool) -> int:
    """The bytes of a warp: matrix and basis, with an even number of columns; sines and cosines."""
    pairs = (n + 1) // 2
    words = (2 if vectors else 1) * 2 * pairs * (2 * pairs + 1) + pairs
    return words * dtype.itemsize + pairs * real_dtype(dtype).itemsize
