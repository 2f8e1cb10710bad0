"""The batched matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.derivative import Emitter, Product
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.modes import Precision
from tracegraph.ops import batching
from tracegraph.ops.checks import check_same_dtype
from tracegraph.ops.sampling import ramp


def _matmul_type(
    x: ArrayType,
    y: ArrayType,
    precision: Precision = "float32",
    dtype: np.dtype[Any] | None = None,
) -> ArrayType:
    check_same_dtype("matmul", x, y)
    if x.ndim < 2 or x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"matmul: needs (batch…, m, k) and (batch…, k, n) with the same batch axes, "
            f"got {x} and {y}"
        )
    return ArrayType(x.dtype if dtype is None else dtype, (*x.shape[:-1], y.shape[-1]))


def _matmul_reference(
    x: Any, y: Any, precision: Precision = "float32", dtype: np.dtype[Any] | None = None
) -> np.ndarray[Any, Any]:
    if dtype is not None:
        x, y = (np.asarray(operand, dtype) for operand in (x, y))
    dtype = np.asarray(x).dtype
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(x, y), dtype)  # NumPy's products of bfloat16 are float32


def _matmul_samples() -> list[Sample]:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((1, 1), (1, 1)),
        ((2, 3), (3, 4)),
        ((2, 0), (0, 3)),
        ((0, 2), (2, 3)),
        ((4, 2, 3), (4, 3, 1)),
        ((2, 1, 3, 2), (2, 1, 2, 5)),
        ((0, 2, 3), (0, 3, 2)),
    ]
    dtypes = [np.float16, bfloat16, np.float32, np.complex64, np.complex128, np.int8, np.int64]
    every_shape = [(x, y, np.float64) for x, y in shapes]
    every_dtype = [((3, 4), (4, 2), dtype) for dtype in (*dtypes, np.uint16, np.bool_)]
    samples = [
        Sample((ramp(x, dtype), ramp(y, dtype))) for x, y, dtype in every_shape + every_dtype
    ]
    of_floats = Sample((ramp((3, 4), np.float32), ramp((4, 2), np.float32)), {"precision": "tf32"})
    return [*samples, of_floats]


def _swapped(f: Emitter, x: Any) -> Any:
    """The matrices transposed: a view, whose strides the product takes."""
    return f.transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


matmul = register(
    Op(
        "matmul",
        "The matrix product over the last two axes, for every index of the batch axes.",
        _matmul_type,
        _matmul_reference,
        Opaque(),
        _matmul_samples,
        batch=batching.matmul,
        derivative=Product(
            lambda f, ct, y, **attrs: f.matmul(ct, _swapped(f, y), **attrs),
            lambda f, ct, x, **attrs: f.matmul(_swapped(f, x), ct, **attrs),
        ),
    )
)
"""The products of float32 matrices have at least the `precision`. While a program is lowered, the
result may have another `dtype` than the operands: the one that they are summed in.
"""
