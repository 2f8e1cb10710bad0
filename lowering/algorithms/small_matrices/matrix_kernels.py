"""What kernels for matrices share: how they are declared, and their text.

A kernel is compiled for the rows, the columns and the dtype of its matrices. Plans and profilers
show it as ``small_<name>_<n>``, or ``small_<name>_<m>x<n>`` if rows and columns differ in number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lowering.algorithms.jacobi import SWEEPS, negligible
from lowering.algorithms.kernel_texts import kernel_text
from tracegraph.arrays.eager import apply
from tracegraph.ir.custom_kernels import CudaText, CustomKernel
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.op import Op, Opaque
from tracegraph.ir.types import ArrayType
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.ops.factorizations.matrices import NDArray, real_dtype

INT64 = np.dtype(np.int64)
_OUTPUTS = {
    "lu": ("T", "int", "int"),
    "eigh": ("R", "T"),
    "eigvalsh": ("R",),
    "orthogonal_columns": ("T", "R"),
    "qr": ("T", "T"),
}
"""The C++ types of the outputs by kernel; others have one, of the type of the elements."""


@dataclass(frozen=True, slots=True)
class Form:
    """The code of a kernel, and how it is launched.

    Args:
        file: what has the functions, beside this file.
        body: the call of one.
        constants: those that come before the file.
        threads: of a block.
        shared_bytes: of a block.
        blocks: the number of blocks, by the types of the operands.
        sizes: the names of the numbers that the kernel gets.
    """

    file: str
    body: str
    constants: tuple[tuple[str, int], ...]
    threads: int
    shared_bytes: int
    blocks: Callable[..., int]
    sizes: tuple[str, ...] = ()


def _columns_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    *batch, _, n = a.shape
    return a, ArrayType(real_dtype(a.dtype), (*batch, n))


def _columns(a: NDArray) -> tuple[NDArray, NDArray]:
    u, values, _ = np.linalg.svd(a)
    return (u * values[..., None, :]).astype(a.dtype), values


orthogonal_columns = Op(
    "orthogonal_columns",
    "The columns of square matrices rotated until they are orthogonal, in descending order of "
    "length, and the lengths.",
    _columns_type,
    _columns,
    Opaque(),
    lambda: (),
)


def applied(kernel: CustomKernel, operands: Sequence[Any], *sizes: int) -> Any:
    """A call of a kernel, with the numbers that it gets."""
    scalars = tuple([Scalar.of(size, INT64) for size in sizes])
    return apply(custom_kernel, *operands, call=KernelCall(kernel, scalars))


@lru_cache(maxsize=256)
def declared(
    name: str,
    op: Op,
    dtype: np.dtype[Any],
    shape: tuple[int, int],
    attrs: tuple[tuple[str, Any], ...],
    form_of: Callable[..., Form],
) -> CustomKernel:
    """The kernel of an op for matrices of this shape: its outputs are those of the op."""
    form = form_of(name, dtype, shape, dict(attrs))
    options: Mapping[str, Any] = dict(attrs)
    arrays = ("a", "b") if op.name == "triangular_solve" else ("a",)
    m, n = shape
    size = f"{n}" if m == n else f"{m}x{n}"

    def out(*arguments: Any) -> Any:
        given = [argument for argument in arguments if isinstance(argument, ArrayType)]
        types = op.result_types(given, options)
        return types if len(types) > 1 else types[0]

    def reference(*arguments: Any) -> Any:
        return op.reference(*arguments[: len(arrays)], **options)

    entry = f"small_{name}_{size}"
    parameters = [f"const T* {each}" for each in arrays]
    parameters += [f"long long {each}" for each in form.sizes]
    parameters += [f"{type_}* out{i}" for i, type_ in enumerate(_OUTPUTS.get(name, ("T",)))]
    rows = f"{n} rows" if m == n else f"{m} rows and {n} columns"
    return CustomKernel(
        name=entry,
        where=f"linalg.{op.name} of matrices of {rows}",
        reference=reference,
        parameters=(*arrays, *form.sizes),
        code=_code(entry, dtype, form, parameters),
        out=out,
        batching=None,
        scalars=dict.fromkeys(form.sizes, INT64),
        grid=form.blocks,
        block=form.threads,
        shared_bytes=form.shared_bytes,
        purpose=f"{op.name} of matrices of {rows}, by one kernel",
    )


def _code(entry: str, dtype: np.dtype[Any], form: Form, parameters: Sequence[str]) -> CudaText:
    part = real_dtype(dtype)
    constants: dict[str, Any] = {**dict(form.constants), "THREADS": form.threads}
    constants |= {"EPS": np.finfo(part).eps, "TINY": negligible(part), "SWEEPS": SWEEPS}
    shared = "extern __shared__ __align__(16) unsigned char shared[];\n  "
    body = (shared if form.shared_bytes else "") + form.body
    return kernel_text(entry, form.file, dtype, constants, parameters, body)
