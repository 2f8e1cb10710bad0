"""Casts, choices, limits, and the parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy._core import umath

from tracegraph.dtypes import BOOL, SHORT_NAMES, bfloat16
from tracegraph.ir.derivative import Constant, Emitter, Linear, Partials
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ir.types import (
    ArrayType,
    broadcast_shapes,
    mixes_signs,
    promotion_tokens,
)
from tracegraph.ops.comparison import choice
from tracegraph.ops.cotangents import Types, number, unbroadcast
from tracegraph.ops.elementwise import listed, resolve, texts, ufunc_op
from tracegraph.ops.tricky import NDArray, grid, tricky

_clip_ufunc: np.ufunc = umath.clip  # type: ignore[attr-defined]  # the stubs leave it out
DType = np.dtype[Any]


# cast


def _cast_type(x: ArrayType, *, dtype: DType, weak: bool = False) -> ArrayType:
    """The result is weak only where a promotion within Python's arithmetic asks for it."""
    return ArrayType(dtype, x.shape, weak)


def _cast_reference(x: Any, *, dtype: DType, weak: bool = False) -> NDArray:
    x = np.asarray(x)
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        x = x.real  # what astype does, which warns as well
    with np.errstate(all="ignore"):
        result: NDArray = x.astype(dtype)
    return result


def _castable(source: DType, target: DType) -> NDArray:
    """The tricky values whose cast is defined: to integers, those in range once truncated."""
    values = tricky(source)
    if target.kind not in "iu" or source.kind in "biu":
        return values
    limits = np.iinfo(target)
    whole = np.trunc(values.real.astype(np.float64))
    # The upper end is exclusive: the largest 64-bit integers round to it as floats.
    return values[(whole >= limits.min) & (whole < float(limits.max))]


def _cast_samples() -> list[Sample]:
    return [
        Sample((_castable(source, target),), {"dtype": target})
        for source in SHORT_NAMES
        for target in SHORT_NAMES
    ]


def _cast_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, dtype: DType, weak: bool = False
) -> tuple[Any]:
    return (f.cast(ct, dtype=types[0].dtype),)


cast = register(
    Op(
        "cast",
        "x in another dtype; complex to real drops the imaginary part, non-zero is true.",
        _cast_type,
        _cast_reference,
        Elementwise(texts(biufc="tg_cast<{T}>({0})"), 0),
        _cast_samples,
        derivative=Linear(_cast_back),
    )
)


# bits


def has_bits(dtype: DType) -> bool:
    """Whether elements of a dtype are the bits of a number of another: 16-bit floats are not."""
    return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize > 2)


def _bits_type(x: ArrayType, *, dtype: DType) -> ArrayType:
    if not (has_bits(x.dtype) and has_bits(dtype) and x.dtype.itemsize == dtype.itemsize):
        raise TypeError(f"bits takes integers or floats of one size, got {listed([x])} as {dtype}")
    return ArrayType(dtype, x.shape)


def _bits_reference(x: Any, *, dtype: DType) -> NDArray:
    return np.asarray(x).view(dtype)


def _bits_samples() -> list[Sample]:
    dtypes = [dtype for dtype in SHORT_NAMES if has_bits(dtype)]
    return [
        Sample((tricky(source),), {"dtype": target})
        for source in dtypes
        for target in dtypes
        if source.itemsize == target.itemsize
    ]


bits = register(
    Op(
        "bits",
        "The bits of x as elements of another dtype of the same size.",
        _bits_type,
        _bits_reference,
        Elementwise(texts(iuf="tg_bits<{T}>({0})"), 0),
        _bits_samples,
        derivative=Constant(),
    )
)


# where and clip


def _where_dtypes(condition: ArrayType, x: ArrayType, y: ArrayType) -> tuple[DType, DType, DType]:
    if mixes_signs((x, y)):
        return BOOL, *(np.dtype(np.uint64),) * 2
    tokens = [t() if isinstance(t, type) else t for t in promotion_tokens((x, y))]
    try:
        dtype = np.result_type(*tokens)
    except TypeError:
        raise TypeError(f"where: {listed([x, y])} have no common dtype; cast one of them") from None
    return BOOL, dtype, dtype


def _where_type(condition: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
    if condition.dtype != BOOL or x.dtype != y.dtype:
        raise TypeError(
            f"where takes a bool and two operands of one dtype, got {listed([condition, x, y])}"
        )
    return ArrayType(x.dtype, broadcast_shapes(condition.shape, x.shape, y.shape))


def _where_samples() -> list[Sample]:
    choices = np.array([[[True]], [[False]]])
    return [Sample((choices, *grid(tricky(dtype), 2))) for dtype in SHORT_NAMES]


def _unselected(
    f: Emitter, ct: Any, acc: Any, types: Types, condition: Any, x: Any, y: Any
) -> list[Any]:
    zero, found = number(ct, 0), []
    for type_, given in zip(types[1:], ((ct, zero), (zero, ct)), strict=True):
        part = None if type_ is None else f.where(condition, *given)
        found.append(part if part is None else unbroadcast(f, part, type_))
    return found


where = register(
    Op(
        "where",
        "x where the condition is true, else y.",
        _where_type,
        np.where,
        Elementwise(texts(b="({0} ? {1} : {2})")),
        _where_samples,
        _where_dtypes,
        Linear(_unselected, (1, 2)),
    )
)


def _clip_dtypes(x: ArrayType, low: ArrayType, high: ArrayType) -> tuple[DType, ...]:
    """NumPy makes an array of x first, so that a Python number there is not weak."""
    return resolve(_clip_ufunc, (x.strong(), low, high))[:-1]


def _of_clip(which: int, f: Emitter, out: Any, x: Any, low: Any, high: Any) -> Any:
    """As of minimum(maximum(x, low), high)."""
    raised = f.maximum(x, low)
    below, limited = (c for c in choice("less").of if not isinstance(c, int))
    if which == 2:
        return limited(f, out, raised, high)
    inner = choice("greater").of[which]
    assert not isinstance(inner, int)
    return inner(f, raised, x, low) * below(f, out, raised, high)


clip = ufunc_op(
    _clip_ufunc,
    "minimum(maximum(x, low), high), NaN if one is.",
    texts(
        iuf="tg_minimum(tg_maximum({0}, {1}), {2})",
        b="(({0} || {1}) && {2})",
        c="tg_clip({0}, {1}, {2})",
    ),
    promote=_clip_dtypes,
    derivative=Partials(*(partial(_of_clip, i) for i in range(3))),
)


# complex numbers


def _parts_dtype(re: ArrayType, im: ArrayType) -> DType:
    dtype = resolve(np.add, (re, im))[-1]
    if dtype.kind == "c":
        raise TypeError(f"complex is made of two real operands, got {listed([re, im])}")
    return np.result_type(np.float32, dtype) if dtype != bfloat16 else np.dtype(np.float32)


def _complex_type(re: ArrayType, im: ArrayType) -> ArrayType:
    if re.dtype != im.dtype or re.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"complex takes two operands of one dtype, f32 or f64, got {listed([re, im])}"
        )
    shape = broadcast_shapes(re.shape, im.shape)
    return ArrayType(np.result_type(re.dtype, np.complex64), shape)


def _complex_reference(re: Any, im: Any) -> NDArray:
    re, im = np.broadcast_arrays(re, im)
    types = [ArrayType(x.dtype, x.shape) for x in (re, im)]
    result = np.empty(re.shape, np.result_type(_parts_dtype(*types), np.complex64))
    result.real, result.imag = re, im
    return result


def _complex_samples() -> list[Sample]:
    return [Sample(grid(tricky(np.dtype(d)), 2)) for d in (np.float32, np.float64)]


def _parts(f: Emitter, ct: Any, acc: Any, types: Types, re: Any, im: Any) -> tuple[Any, ...]:
    """The transpose of re + i·im."""
    return (
        None if types[0] is None else unbroadcast(f, f.real(ct), types[0]),
        None if types[1] is None else unbroadcast(f, f.negative(f.imag(ct)), types[1]),
    )


complex_ = register(
    Op(
        "complex",
        "The complex number of a real and an imaginary part.",
        _complex_type,
        _complex_reference,
        Elementwise(texts(f="{T}({0}, {1})"), 0),
        _complex_samples,
        lambda re, im: (_parts_dtype(re, im),) * 2,
        Linear(_parts, (0, 1)),
    )
)

conjugate = ufunc_op(
    np.conjugate,
    "The complex conjugate; real numbers are their own.",
    texts(iuf="{0}", c="{T}({0}.re, -{0}.im)"),
    cost=0,
    derivative=Linear(lambda f, ct, acc, types, x: (f.conjugate(ct),)),
)


def _as_real(f: Emitter, ct: Any, acc: Any, types: Types, x: Any) -> tuple[Any]:
    (type_,) = types
    return (f.cast(ct, dtype=type_.dtype),)


def _as_imaginary(f: Emitter, ct: Any, acc: Any, types: Types, x: Any) -> tuple[Any]:
    """-i·ct; a real number has no imaginary part."""
    if types[0].dtype.kind != "c":
        return (None,)
    return (f.complex(number(ct, 0), f.negative(ct)),)


def _part(
    name: str,
    doc: str,
    of: Callable[[NDArray], NDArray],
    c: dict[str, str],
    transpose: Callable[..., Any],
) -> Op:
    def type_rule(x: ArrayType) -> ArrayType:
        return ArrayType(np.empty(0, x.dtype).real.dtype, x.shape)

    def samples() -> list[Sample]:
        return [Sample((tricky(dtype),)) for dtype in SHORT_NAMES]

    def reference(x: Any) -> NDArray:
        return of(np.asarray(x)).copy()

    form = Elementwise(c, 0)
    derivative = Linear(transpose)
    return register(Op(name, doc, type_rule, reference, form, samples, derivative=derivative))


real = _part("real", "The real part.", lambda x: x.real, texts(biuf="{0}", c="{0}.re"), _as_real)
imag = _part(
    "imag",
    "The imaginary part; of a real number, 0.",
    lambda x: x.imag,
    texts(biuf="tg_cast<{T}>(0)", c="{0}.im"),
    _as_imaginary,
)
