"""Kernels for tridiagonal systems by partitions: a block, or several, for each system.

The code, and the method, are in tridiagonal_systems.cuh. Rows are swapped as in a Gaussian
elimination with partial pivoting, so that any matrix that is not singular has a solution; the order
of the unknowns is another than that of `tridiagonal.py`, which roundings depend on. Systems with
parallel parts are as old as Wang's (ACM TOMS 7, 1981); the swaps across rows that parts leave over
are those of Wright for boundary value problems (SIAM J. Numer. Anal. 30, 1993).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lowering.algorithms.kernel_texts import kernel_text
from lowering.algorithms.partitions import partition_references as references
from lowering.algorithms.partitions.partition import (
    MOST_LANES,
    SHARED_BYTES,
    SPAN,
    Partition,
    partition_of,
)
from tracegraph.arrays.eager import apply
from tracegraph.ir.custom_kernels import CustomKernel, made_once
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.types import ArrayType
from tracegraph.ops.custom_kernels import custom_kernel

_INT64 = np.dtype(np.int64)
_FILE = "partitions/tridiagonal_systems.cuh"
_SHARED = "extern __shared__ __align__(16) unsigned char shared[];"
_WORK = {"solve": "SOLVES", "reduce": "REDUCES", "finish": "FINISHES"}


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The solution, for right-hand sides with elements.

    One right-hand side is a vector to the kernels: often it is the carry of a loop, which is then
    solved in place.
    """
    columns = b.shape[-1]
    if columns == 1:
        return _solution(dl, d, du, b[..., 0], columns)[..., None]
    return _solution(dl, d, du, b, columns)


def _solution(dl: Any, d: Any, du: Any, b: Any, columns: int) -> Any:
    n = d.shape[-1]
    partition = partition_of(b.dtype, n, columns)
    count = prod(d.shape[:-1])
    sizes = _scalars(count, n, columns)
    system, kernel = (dl, d, du, b), partial(of_rows, b.dtype, partition, columns == 1)
    if n <= partition.span:
        return _call(kernel("solve"), system, sizes)
    rest = _call(kernel("reduce"), system, sizes)
    return _call(kernel("finish"), (*system, _ends(rest, partition)), sizes)


def _ends(rest: Any, partition: Partition) -> Any:
    """The unknowns at the ends of spans, from the equations that are left of them."""
    count, spans, _ = rest.shape
    own = Partition(2, 1 << (spans - 1).bit_length(), partition.columns)
    together = own.lanes <= MOST_LANES and own.shared_bytes(rest.dtype) <= SHARED_BYTES
    if not together:
        own = Partition(2, SPAN, partition.columns)
    sizes = _scalars(count, spans)
    if together:
        return _call(of_spans("solve", rest.dtype, own), (rest,), sizes)
    further = _call(of_spans("reduce", rest.dtype, own), (rest,), sizes)
    return _call(of_spans("finish", rest.dtype, own), (rest, _ends(further, own)), sizes)


def _scalars(*sizes: int) -> tuple[Scalar, ...]:
    return tuple([Scalar.of(size, _INT64) for size in sizes])


def _call(kernel: CustomKernel, operands: tuple[Any, ...], sizes: tuple[Scalar, ...]) -> Any:
    return apply(custom_kernel, *operands, call=KernelCall(kernel, sizes))


@made_once
def of_rows(dtype: np.dtype[Any], partition: Partition, is_vector: bool, work: str) -> CustomKernel:
    """The kernel for systems: it solves them, or reduces or finishes spans of them.

    Where the right-hand side `is_vector`, the compiler knows that there is one column.
    """
    columns = "1" if is_vector else "columns"

    def systems(d: ArrayType, b: ArrayType) -> int:
        return prod(d.shape[:-1]) * -(-(b.size // d.size) // partition.columns)

    def spans(d: ArrayType) -> int:
        return 1 if work == "solve" else -(-d.shape[-1] // partition.span)

    def out(dl: ArrayType, d: ArrayType, du: ArrayType, b: ArrayType, *_: Any) -> ArrayType:
        if work != "reduce":
            return b
        return ArrayType(b.dtype, (systems(d, b), spans(d), 2 * (4 + partition.columns)))

    return _kernel(
        work,
        dtype,
        partition,
        arrays=("dl", "d", "du", "b"),
        sizes=("count", "rows", "columns"),
        call=f"tridiagonal<{{}}>(dl, d, du, b, {{}}, {{}}, count, rows, {columns}, shared);",
        reference=references.OF_ROWS[work],
        out=out,
        groups=lambda dl, d, du, b, *_: systems(d, b) * spans(d),
    )


@made_once
def of_spans(work: str, dtype: np.dtype[Any], partition: Partition) -> CustomKernel:
    """The same for what is left of spans: it gives their ends, or what is left of spans of them."""

    def spans(rest: ArrayType) -> int:
        return 1 if work == "solve" else -(-rest.shape[1] // partition.lanes)

    def out(rest: ArrayType, *_: Any) -> ArrayType:
        systems, given, words = rest.shape
        if work == "reduce":
            return ArrayType(rest.dtype, (systems, spans(rest), words))
        return ArrayType(rest.dtype, (systems, given, 4 * partition.columns))

    return _kernel(
        f"{work}_spans",
        dtype,
        partition,
        arrays=("rest",),
        sizes=("count", "given"),
        call="of_spans<{}>(rest, {}, {}, count, given, shared);",
        reference=references.OF_SPANS[work],
        out=out,
        groups=lambda rest, *_: rest.shape[0] * spans(rest),
    )


def _kernel(
    name: str,
    dtype: np.dtype[Any],
    partition: Partition,
    *,
    arrays: tuple[str, ...],
    sizes: tuple[str, ...],
    call: str,
    reference: Callable[..., Any],
    out: Callable[..., Any],
    groups: Callable[..., int],
) -> CustomKernel:
    """A kernel with a group of lanes for each of some `groups`.

    Plans and profilers show it as ``tridiagonal_<name>_<rows>x<lanes>``. What spans have in common
    is its last operand or its output.
    """
    work = name.partition("_")[0]
    entry = f"tridiagonal_{name}_{partition.rows}x{partition.lanes}"
    memory = {
        "solve": ("nullptr", "out0"),
        "reduce": ("out0", "nullptr"),
        "finish": ("ends", "out0"),
    }
    arrays = (*arrays, "ends") if work == "finish" else arrays
    body = f"{_SHARED}\n  {call.format(_WORK[work], *memory[work])}"
    constants = {
        "ROWS": partition.rows,
        "COLUMNS": partition.columns,
        "LANES": partition.lanes,
        "THREADS": partition.threads,
    }
    declared = [f"{'' if each == 'ends' else 'const '}T* {each}" for each in arrays]
    declared += [*[f"long long {each}" for each in sizes], "T* out0"]
    per_block = partition.threads // partition.lanes
    return CustomKernel(
        name=entry,
        where="linalg.tridiagonal_solve",
        reference=lambda *given: reference(partition, *given[: len(arrays)]),
        parameters=(*arrays, *sizes),
        code=kernel_text(entry, [_FILE], dtype, constants, declared, body),
        out=out,
        batching=None,
        scalars=dict.fromkeys(sizes, _INT64),
        grid=lambda *given: -(-groups(*given) // per_block),
        block=partition.threads,
        shared_bytes=partition.shared_bytes(dtype),
        purpose="tridiagonal_solve, by partitions of its rows",
    )
