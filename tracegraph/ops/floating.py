"""Rounding, and the parts and classes of floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Constant, Derivative, Emitter, Linear, Partials
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.cotangents import indicator, number, unbroadcast
from tracegraph.ops.elementwise import native_dtypes, quiet, texts, ufunc_op
from tracegraph.ops.tricky import NDArray, tricky

floor = ufunc_op(
    np.floor,
    "The largest integer not above x, in the dtype of x.",
    texts(biu="{0}", f="floor({0})"),
    derivative=Constant(),
)
ceil = ufunc_op(
    np.ceil,
    "The least integer not below x, in the dtype of x.",
    texts(biu="{0}", f="ceil({0})"),
    derivative=Constant(),
)
trunc = ufunc_op(
    np.trunc,
    "x without its fraction, in the dtype of x.",
    texts(biu="{0}", f="trunc({0})"),
    derivative=Constant(),
)
rint = ufunc_op(
    np.rint,
    "The nearest integer, the even one of two, in floating point.",
    texts(f="rint({0})", c="{T}(rint({0}.re), rint({0}.im))"),
    derivative=Constant(),
)
isfinite = ufunc_op(
    np.isfinite,
    "Whether x is neither infinite nor NaN.",
    texts(biu="true", f="isfinite({0})", c="(isfinite({0}.re) && isfinite({0}.im))"),
    derivative=Constant(),
)
isinf = ufunc_op(
    np.isinf,
    "Whether x is infinite, in one part at least.",
    texts(biu="false", f="isinf({0})", c="(isinf({0}.re) || isinf({0}.im))"),
    derivative=Constant(),
)
isnan = ufunc_op(
    np.isnan,
    "Whether x is NaN, in one part at least.",
    texts(biu="false", f="isnan({0})", c="(isnan({0}.re) || isnan({0}.im))"),
    derivative=Constant(),
)
signbit = ufunc_op(
    np.signbit, "Whether the sign bit is set.", texts(f="signbit({0})"), derivative=Constant()
)
copysign = ufunc_op(
    np.copysign,
    "The magnitude of x with the sign of y.",
    texts(f="copysign({0}, {1})"),
    derivative=Partials(
        lambda f, o, x, y: f.copysign(number(x, 1), x) * f.copysign(number(x, 1), y), 0
    ),
)
nextafter = ufunc_op(
    np.nextafter,
    "The number next to x in the direction of y.",
    texts(f="tg_nextafter<{T}>({0}, {1})"),
    cost=4,
    derivative=Partials(1, 0),
)
heaviside = ufunc_op(
    np.heaviside,
    "0 below zero, 1 above, y at zero.",
    texts(f="tg_heaviside({0}, {1})"),
    derivative=Partials(0, lambda f, o, x, y: indicator(f, f.equal(x, number(x, 0)), x)),
)


# powers of two


def _scaled() -> list[Sample]:
    exponents = np.array([0, 1, -1, 5, -30, 127, -149, 1023, -1074, 2**31 - 1, -(2**31)], np.int32)
    wide = np.array([3, -3, 2**40, -(2**40)])
    return [
        Sample((tricky(np.dtype(dtype))[:, None], powers))
        for dtype in (np.float16, np.float32, np.float64)
        for powers in (exponents, wide)
    ]


def _unscale(
    f: Emitter, ct: Any, acc: Any, types: Sequence[ArrayType], x: Any, y: Any
) -> tuple[Any]:
    return (unbroadcast(f, f.ldexp(ct, y), types[0]),)


ldexp = ufunc_op(
    np.ldexp,
    "x * 2**y for an integer y.",
    texts(f="tg_ldexp({0}, {1})"),
    cost=4,
    more=_scaled,
    derivative=Linear(_unscale),
)


def _split(part: int, name: str, doc: str, text: str, derivative: Derivative) -> Op:
    """An op that gives one part of what NumPy's frexp returns."""

    def rule(x: ArrayType) -> ArrayType:
        if x.dtype not in native_dtypes(np.spacing):
            raise TypeError(f"{name} takes real numbers of floating point, got {x}")
        return ArrayType((x.dtype, np.dtype(np.int32))[part], x.shape)

    def reference(x: Any) -> NDArray:
        return np.asarray(np.frexp(x)[part])

    def samples() -> list[Sample]:
        return [Sample((tricky(d),)) for d in native_dtypes(np.spacing)]

    form = Elementwise(texts(f=text), 4)
    values = quiet(reference)
    return register(Op(name, doc, rule, values, form, samples, derivative=derivative))


mantissa = _split(
    0,
    "mantissa",
    "x times the power of 2 that brings |x| to 0.5 … 1.",
    "tg_mantissa({0})",
    Partials(lambda f, o, x: f.ldexp(number(x, 1), -f.exponent(x)), domain=(0.55, 0.95)),
)
exponent = _split(
    1,
    "exponent",
    "The y for which x is mantissa(x) * 2**y.",
    "tg_exponent({0})",
    Constant(),
)
