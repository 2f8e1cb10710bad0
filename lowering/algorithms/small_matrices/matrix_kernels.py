"""What kernels for matrices share: how they are declared, and their text.

A kernel is compiled for the rows, the columns and the dtype of its matrices. Plans and profilers
show it as ``small_<name>_<n>``, or ``small_<name>_<m>x<n>`` if rows and columns differ in number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lowering.algorithms.jacobi import SWEEPS, negligible
from lowering.algorithms.kernel_texts import function_text, kernel_text
from tracegraph.arrays.eager import apply
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.custom_kernels import CudaText, CustomKernel, WarpFunction, made_once
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.op import CUSTOM_NAMESPACE, Op, Opaque
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


_Declared = Sequence[tuple[str, str]]
"""Types and names."""


@dataclass(frozen=True, slots=True)
class Form:
    """The code of a kernel, and how it is launched.

    Args:
        files: those that have the functions, in this folder.
        body: the call of one.
        constants: those that come before the file.
        threads: of a block.
        shared_bytes: of a block.
        blocks: the number of blocks, by the types of the operands.
        sizes: the names of the numbers that the kernel gets.
        warps: the number of warps that have work, by the types of the operands, and the time of
            one in µs, where none waits for another and the body is given the number of its `warp`.
    """

    files: tuple[str, ...]
    body: str
    constants: tuple[tuple[str, int], ...]
    threads: int
    shared_bytes: int
    blocks: Callable[..., int]
    sizes: tuple[str, ...] = ()
    warps: tuple[Callable[..., int], Callable[..., float]] | None = None


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


@made_once
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
    pointers = [("const T", each) for each in arrays]
    results = [(type_, f"out{i}") for i, type_ in enumerate(_OUTPUTS.get(name, ("T",)))]
    constants = _constants(dtype, form)
    rows = f"{n} rows" if m == n else f"{m} rows and {n} columns"
    return CustomKernel(
        name=entry,
        where=f"linalg.{op.name} of matrices of {rows}",
        reference=reference,
        parameters=(*arrays, *form.sizes),
        code=_code(entry, dtype, form, constants, pointers, results),
        out=out,
        batching=None,
        scalars=dict.fromkeys(form.sizes, INT64),
        grid=form.blocks,
        block=form.threads,
        shared_bytes=form.shared_bytes,
        purpose=f"{op.name} of matrices of {rows}, by one kernel",
        warp_function=_warp_function(entry, dtype, form, constants, pointers, results),
    )


def _constants(dtype: np.dtype[Any], form: Form) -> dict[str, Any]:
    part = real_dtype(dtype)
    constants: dict[str, Any] = {**dict(form.constants), "THREADS": form.threads}
    return constants | {"EPS": np.finfo(part).eps, "TINY": negligible(part), "SWEEPS": SWEEPS}


def _code(
    entry: str,
    dtype: np.dtype[Any],
    form: Form,
    constants: Mapping[str, Any],
    arrays: _Declared,
    results: _Declared,
) -> CudaText:
    parameters = [f"{kind}* {name}" for kind, name in arrays]
    parameters += [f"long long {name}" for name in form.sizes]
    parameters += [f"{kind}* {name}" for kind, name in results]
    lines = []
    if form.shared_bytes:
        lines.append("extern __shared__ __align__(16) unsigned char shared[];")
    if "warp" in form.body:
        warp = "const long long warp = (long long)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;"
        lines.append(warp)
    body = "\n  ".join([*lines, form.body])
    return kernel_text(entry, _paths(form), dtype, constants, parameters, body)


def _warp_function(
    entry: str,
    dtype: np.dtype[Any],
    form: Form,
    constants: Mapping[str, Any],
    arrays: _Declared,
    results: _Declared,
) -> WarpFunction | None:
    if form.warps is None:
        return None
    parameters = ["long long warp", *(f"const void* p_{name}" for _, name in arrays)]
    parameters += [f"long long {name}" for name in form.sizes]
    parameters += [f"void* p_{name}" for _, name in results]
    typed = [f"{kind}* const {name} = ({kind}*)p_{name};" for kind, name in (*arrays, *results)]
    body = "\n  ".join([*typed, form.body])
    namespace = f"{CUSTOM_NAMESPACE}{entry}_{dtype}"
    text = function_text(namespace, _paths(form), dtype, constants, parameters, body)
    return WarpFunction(f"{namespace}::run", text, *form.warps)


def _paths(form: Form) -> list[str]:
    return [f"small_matrices/{file}" for file in form.files]
