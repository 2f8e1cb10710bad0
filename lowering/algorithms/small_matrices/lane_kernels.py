"""Kernels for many matrices of at most 32 rows: a group of lanes, or a warp, for each.

The code is in lane_matrices.cuh. A kernel gets the number of matrices as a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from lowering.algorithms.small_matrices.matrix_kernels import Form
from tracegraph.ir.types import ArrayType
from tracegraph.ops.factorizations.matrices import real_dtype

MOST_ROWS = 32
"""A row has a lane of a warp."""

MOST_COLUMNS = 64
"""Right-hand sides of a system, which are solved one after the other."""

FEW_THREADS = 1 << 15
"""Threads up to which a group of lanes solves for one right-hand side only."""

THREADS = 128
_FILES = ("lane_matrices.cuh",)
_SHARED_BYTES = 48 << 10
"""What a block may use without asking."""

STEPS = {"cholesky": 0.15, "lu": 0.25, "solve": 0.1}
"""The time of a step in µs: of a row, and of each right-hand side."""

_ROTATED = {
    "eigh": "eigh<true>(a, out0, out1, warp, count, shared);",
    "eigvalsh": "eigh<false>(a, out0, nullptr, warp, count, shared);",
    "orthogonal_columns": "orthogonal_columns(a, out0, out1, warp, count, shared);",
}
_BODIES = {
    "cholesky": "cholesky(a, out0, warp, count);",
    "lu": "lu(a, out0, out1, out2, warp, count);",
    "solve": "triangular_solve<{flags}>(a, b, out0, columns, each, warp, count);",
}


def solves(n: int, columns: int) -> bool:
    """Whether there is a kernel for systems of this size."""
    return n <= MOST_ROWS and columns >= 1


def columns_of_group(n: int, count: int, columns: int) -> int:
    """The right-hand sides that a group of lanes solves for."""
    return 1 if count * columns * n <= FEW_THREADS else columns


def has_thread_for_each(columns: int) -> bool:
    """Whether each right-hand side has a thread: others are solved by lanes that have rows."""
    return columns > MOST_COLUMNS


def form(name: str, dtype: np.dtype[Any], shape: tuple[int, int], attrs: Mapping[str, Any]) -> Form:
    """The kernel of an op."""
    n = shape[-1]
    lanes = 1 << (n - 1).bit_length()
    constants = (("N", n), ("LANES", lanes))
    flags = ", ".join([str(attrs[each]).lower() for each in ("lower", "unit") if each in attrs])
    if name.endswith("by_columns"):
        body = f"triangular_solve_by_columns<{flags}>(a, b, out0, columns, shared);"
        nbytes = n * n * dtype.itemsize
        return Form(_FILES, body, constants, THREADS, nbytes, _blocks_of_columns, ("columns",))
    if name in _ROTATED:  # a warp for each matrix
        per_warp, shared = 1, _shared_bytes(dtype, n, attrs.get("vectors", False))
    else:
        per_warp, shared = 32 // lanes, 0
    threads = THREADS if shared * (THREADS // 32) <= _SHARED_BYTES else 32

    is_solve = name.endswith("solve")

    def warps(a: ArrayType, *others: Any) -> int:
        count = prod(a.shape[:-2])
        if is_solve:
            columns, each = map(int, others[-2:])
            count *= -(-columns // each)
        return -(-count // per_warp)

    def blocks(*operands: Any) -> int:
        return -(-warps(*operands) // (threads // 32))

    def time(a: ArrayType, *others: Any) -> float:
        each = int(others[-1]) if is_solve else 1
        return STEPS[name.rpartition("_")[2]] * n * each

    sizes = ("count", "columns", "each") if is_solve else ("count",)
    body = _ROTATED.get(name) or _BODIES[name.rpartition("_")[2]].format(flags=flags)
    nbytes = shared * (threads // 32)
    alone = None if shared else (warps, time)
    return Form(_FILES, body, constants, threads, nbytes, blocks, sizes, alone)


def _blocks_of_columns(a: ArrayType, b: ArrayType, *_: Any) -> int:
    return prod(a.shape[:-2]) * -(-b.shape[-1] // THREADS)


def _shared_bytes(dtype: np.dtype[Any], n: int, vectors: bool) -> int:
    """The bytes of a warp: matrix and basis, with an even number of columns; sines and cosines."""
    pairs = (n + 1) // 2
    words = (2 if vectors else 1) * 2 * pairs * (2 * pairs + 1) + pairs
    return words * dtype.itemsize + pairs * real_dtype(dtype).itemsize
