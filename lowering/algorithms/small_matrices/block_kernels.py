"""Kernels for matrices of up to 128 rows: one block for each.

The code is in block_columns.cuh, block_factors.cuh and block_rotations.cuh.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from lowering.algorithms.small_matrices.matrix_kernels import Form
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType
from tracegraph.ops.factorizations.matrices import real_dtype

MOST_COLUMNS = 128
"""Larger matrices have enough work for more than one multiprocessor."""

MOST_ROWS = 1024
MOST_THREADS = 1024
SHARED_BYTES = 96 << 10
"""Of a block, that all GPUs of compute capability 8.0 and later have."""

WARP = 32
REGISTERS = 1 << 16
LEAST_REGISTERS = 32
"""Registers of a thread besides those of its columns."""

MOST_WORDS = 32
"""Registers for a column of a thread, if there is a choice."""

GROUPS = (8, 16, 32, 4)
"""Lanes that have a column, in the order in which they are tried."""

MOST_SOLVED = 64
"""Right-hand sides of a system, at most; libraries are faster for more."""

FEW_COLUMNS = 4
"""Right-hand sides, less than which have a warp each, and not a group of lanes."""

SOLVING_THREADS = 64
STEP = 0.1
"""The time in µs that a row of a system takes."""

_LANES = {"cholesky": 16}
"""The most rows that lanes factor, if they are not 32."""

ROTATED = ("eigh", "eigvalsh", "orthogonal_columns")
"""Kernels in which a group of lanes has two columns."""

_ROTATIONS = ("block_columns.cuh", "block_rotations.cuh")
_FACTORS = ("block_columns.cuh", "block_factors.cuh")
_BODIES = {
    "eigh": "eigh<true>(a, out0, out1, shared);",
    "eigvalsh": "eigh<false>(a, out0, nullptr, shared);",
    "orthogonal_columns": "orthogonal_columns(a, out0, out1, shared);",
    "cholesky": "cholesky(a, out0, shared);",
    "lu": "lu(a, out0, out1, out2, shared);",
    "qr": "qr<true>(a, out0, out1, shared);",
    "qr in place": "qr<false>(a, out0, out1, shared);",
}


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a block holds a matrix."""

    group: int
    threads: int
    shared_bytes: int
    registers: int
    body: str

    @property
    def is_possible(self) -> bool:
        """Whether a block can have it."""
        if self.threads % 32 or self.threads > MOST_THREADS or self.shared_bytes > SHARED_BYTES:
            return False
        return self.registers + LEAST_REGISTERS <= min(255, REGISTERS // self.threads)


def _layout(name: str, dtype: np.dtype[Any], shape: tuple[int, int], group: int) -> _Layout:
    (m, n), size = shape, dtype.itemsize
    wide = 16 // size
    each = -(-m // (wide * group)) * wide
    height, words = each * group, each * size // 4
    if name in ROTATED:
        pairs = 1 << ((n + 1) // 2 - 1).bit_length()
        nbytes = pairs * (height * size + 2 * real_dtype(dtype).itemsize + 4)
        return _Layout(group, pairs * group, nbytes, 2 * words, name)
    threads, steps = -(-n * group // 32) * 32, min(m, n)
    nbytes, body = 2 * height * size, name
    if name == "lu":
        nbytes += 8 * height + 8
    elif name == "qr":
        nbytes = steps * (height + 1) * size
        if nbytes > SHARED_BYTES and height == m:
            nbytes, body = steps * size, "qr in place"
    return _Layout(group, threads, nbytes, words, body)


def _chosen(name: str, dtype: np.dtype[Any], shape: tuple[int, int]) -> _Layout | None:
    """The first with few elements for each lane, or else the first that is possible."""
    layouts = [_layout(name, dtype, shape, group) for group in GROUPS]
    possible = [layout for layout in layouts if layout.is_possible]
    most = MOST_WORDS * (2 if name in ROTATED else 1)
    few = [layout for layout in possible if layout.registers <= most]
    return next(iter([*few, *possible]), None)


def fits(name: str, dtype: np.dtype[Any], shape: tuple[int, int]) -> bool:
    """Whether there is a kernel for matrices of this shape."""
    (m, n) = shape
    if not (0 < n <= MOST_COLUMNS and 0 < m <= MOST_ROWS):
        return False
    return _chosen(name, dtype, shape) is not None


def solves(n: int, columns: int) -> bool:
    """Whether there is a kernel for systems of this size."""
    return n <= MOST_COLUMNS and 1 <= columns <= MOST_SOLVED


def form_of_solve(
    name: str, dtype: np.dtype[Any], shape: tuple[int, int], attrs: Mapping[str, Any]
) -> Form:
    """The kernel of triangular systems: a warp for each right-hand side, or groups of lanes."""
    group = GROUPS[0] if name.endswith("by_groups") else WARP

    def warps(a: ArrayType, b: ArrayType, *_: Any) -> int:
        return prod(a.shape[:-2]) * -(-b.shape[-1] // (WARP // group))

    def blocks(a: ArrayType, b: ArrayType, *_: Any) -> int:
        return -(-warps(a, b) // (SOLVING_THREADS // WARP))

    flags = ", ".join(str(attrs[each]).lower() for each in ("lower", "unit"))
    body = f"triangular_solve<{flags}>(a, b, out0, columns, warp, count);"
    constants = (("ROWS", shape[0]), ("COLUMNS", shape[1]), ("GROUP", group))
    sizes, time = ("count", "columns"), STEP * shape[1]
    parts = warps, lambda *_: time
    return Form(_FACTORS, body, constants, SOLVING_THREADS, 0, blocks, sizes, parts)


def rows_of_part(dtype: np.dtype[Any], n: int) -> int | None:
    """The rows that tall matrices are split into; None if no block has enough."""
    possible = (m for m in (512, 256, 128) if m >= 2 * n and fits("qr", dtype, (m, n)))
    return next(possible, None)


def is_faster(name: str, shape: tuple[int, int]) -> bool:
    """Whether such matrices are to have a block each, rather than some lanes.

    Lanes can be a part of a loop that is one kernel. A block factors 32 rows by Cholesky's method
    three times as fast.
    """
    return max(shape) > (8 if name in ROTATED else _LANES.get(name, 32))


def form(name: str, dtype: np.dtype[Any], shape: tuple[int, int], attrs: Mapping[str, Any]) -> Form:
    """The kernel of an op."""
    layout = _chosen(name, dtype, shape)
    assert layout is not None, f"{name} of {shape} needs more than a block has"

    def blocks(a: ArrayType, *_: Any) -> int:
        return prod(a.shape[:-2])

    constants = (("ROWS", shape[0]), ("COLUMNS", shape[1]), ("GROUP", layout.group))
    body, threads, nbytes = _BODIES[layout.body], layout.threads, layout.shared_bytes
    files = _ROTATIONS if name in ROTATED else _FACTORS
    return Form(files, body, constants, threads, nbytes, blocks)
