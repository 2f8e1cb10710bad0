"""Reductions over axes and scans (prefix sums and products) along one, in the operand's dtype."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.combiners import ADD, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY
from tracegraph.ir.derivative import Constant
from tracegraph.ir.op import Combiner, Op, Reduction, Sample, Scan, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.checks import check_axes
from tracegraph.ops.fold_derivatives import of_reduction, of_scan
from tracegraph.ops.sampling import ramp

Ints = tuple[int, ...]
NDArray = np.ndarray[Any, Any]


def _kept(x: ArrayType, axes: Ints) -> Ints:
    return tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)


def fold_type(name: str) -> Callable[..., ArrayType]:
    """Sums and products: an empty fold gives the identity."""

    def rule(x: ArrayType, *, axes: Ints) -> ArrayType:
        check_axes(name, axes, x.ndim)
        return ArrayType(x.dtype, _kept(x, axes))

    return rule


def extreme_type(name: str, dtype: np.dtype[Any] | None = None) -> Callable[..., ArrayType]:
    """Minima and maxima, which have no identity; `dtype` is that of positions."""

    def rule(x: ArrayType, *, axes: Ints) -> ArrayType:
        check_axes(name, axes, x.ndim)
        kept = _kept(x, axes)
        if prod(kept) and not x.size:
            raise ValueError(f"{name}: axes {axes} of {x} have no elements to choose from")
        return ArrayType(dtype or x.dtype, kept)

    return rule


def _logical_type(name: str) -> Callable[..., ArrayType]:
    def rule(x: ArrayType, *, axes: Ints) -> ArrayType:
        check_axes(name, axes, x.ndim)
        if x.dtype.kind != "b":
            raise TypeError(f"{name}: needs bool, got {x}; compare it with zero first")
        return ArrayType(x.dtype, _kept(x, axes))

    return rule


def fold_reference(ufunc: np.ufunc) -> Callable[..., NDArray]:
    """A reduction by NumPy."""

    def reference(x: Any, *, axes: Ints) -> NDArray:
        x = np.asarray(x)
        with np.errstate(all="ignore"):
            return np.asarray(ufunc.reduce(x, axis=axes, dtype=x.dtype))

    return reference


def _position_reference(choose: Callable[..., Any]) -> Callable[..., NDArray]:
    def reference(x: Any, *, axes: Ints) -> NDArray:
        x = np.asarray(x)
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        last = x.transpose(*kept, *axes)
        shape = last.shape[: len(kept)]
        return np.asarray(choose(last.reshape(*shape, prod(last.shape[len(kept) :])), axis=-1))

    return reference


def _cases(x: NDArray) -> list[tuple[NDArray, Ints]]:
    """Axes of an array of shape (2, 1, 3, 4) for which kernels differ."""
    axes: list[Ints] = [(), (0,), (1,), (3,), (1, 2), (0, 3), (2, 3), (0, 1, 2, 3)]
    return [(x, a) for a in axes]


def _number_samples(x: NDArray) -> list[Sample]:
    """Samples of x, of shape (2, 1, 3, 4), and of arrays of each other kind of dtype."""
    cases = [
        *_cases(x),
        (np.array(3.0), ()),
        (ramp((0, 3)), (1,)),
        (ramp((40,), np.int8), (0,)),
        (ramp((3, 5), np.int64), (0,)),
        (ramp((3, 5), np.uint16), (1,)),
        (ramp((3, 4), np.float16), (1,)),
        (ramp((3, 4), bfloat16), (0,)),
        (ramp((3, 4), np.float32), (0, 1)),
        (ramp((3, 4), np.complex64), (1,)),
        (ramp((4, 3), np.complex128), (0, 1)),
    ]
    return [Sample((a,), {"axes": axes}) for a, axes in cases]


def _fold_samples() -> list[Sample]:
    x = 1 + np.sin(np.arange(24.0)).reshape(2, 1, 3, 4)
    extra = [ramp((3, 0), np.float32), ramp((3, 0), np.int32), ramp((2, 3), np.bool_)]
    return _number_samples(x) + [Sample((x,), {"axes": (1,)}) for x in extra]


def _extreme_samples() -> list[Sample]:
    nan, inf = np.nan, np.inf
    special = np.array(
        [[1, nan, -1], [-0.0, 0.0, -0.0], [inf, 2, -inf], [nan, nan, 0], [-inf, -inf, inf]]
    )
    extra: list[tuple[NDArray, Ints]] = [
        (special, (1,)),
        (special.astype(np.float32), (0,)),
        (special.astype(np.float16), (1,)),
        (special.astype(bfloat16), (1,)),
        (special, (0, 1)),
        (np.array([[1 + 2j, 1 + 3j, 0 + 9j], [nan, 5, 1], [3, complex(3, nan), 9]]), (1,)),
        (np.array([[2, 2, 1], [1, 2, 2]], np.uint64), (1,)),
        (np.array([[2, 2, 1], [1, 2, 2]], np.int32), (0, 1)),
        (ramp((2, 3), np.bool_), (1,)),
        (np.zeros((2, 3), np.bool_), (0, 1)),
    ]
    found = _number_samples(np.sin(np.arange(24.0)).reshape(2, 1, 3, 4))
    return found + [Sample((x,), {"axes": axes}) for x, axes in extra]


def _logical_samples() -> list[Sample]:
    cases = [
        *_cases(ramp((2, 1, 3, 4), np.bool_)),
        (np.array(True), ()),
        (np.ones((3, 4), np.bool_), (1,)),
        (np.zeros((3, 4), np.bool_), (0, 1)),
        (np.zeros((3, 0), np.bool_), (1,)),
        (np.zeros((0, 3), np.bool_), (1,)),
    ]
    return [Sample((x,), {"axes": axes}) for x, axes in cases]


def _fold(name: str, doc: str, combiner: Combiner) -> Op:
    reference = fold_reference(combiner.ufunc)
    form = Reduction(combiner)
    derivative = of_reduction(combiner)
    return register(
        Op(name, doc, fold_type(name), reference, form, _fold_samples, derivative=derivative)
    )


def _extreme(name: str, doc: str, combiner: Combiner) -> Op:
    reference = fold_reference(combiner.ufunc)
    form = Reduction(combiner)
    derivative = of_reduction(combiner)
    rule = extreme_type(name)
    return register(Op(name, doc, rule, reference, form, _extreme_samples, derivative=derivative))


def _position(name: str, doc: str, combiner: Combiner, choose: Callable[..., Any]) -> Op:
    rule = extreme_type(name, np.dtype(np.int64))
    form = Reduction(combiner, arg=True)
    reference = _position_reference(choose)
    return register(Op(name, doc, rule, reference, form, _extreme_samples, derivative=Constant()))


def _logical(name: str, doc: str, combiner: Combiner) -> Op:
    reference = fold_reference(combiner.ufunc)
    form = Reduction(combiner)
    rule = _logical_type(name)
    return register(Op(name, doc, rule, reference, form, _logical_samples, derivative=Constant()))


sum_ = _fold("sum", "The sum over axes; of nothing, 0.", ADD)
prod_ = _fold("prod", "The product over axes; of nothing, 1.", MULTIPLY)
min_ = _extreme("min", "The minimum over axes; NaN if there is one.", MINIMUM)
max_ = _extreme("max", "The maximum over axes; NaN if there is one.", MAXIMUM)
any_ = _logical("any", "Whether an element over axes is true; of nothing, False.", LOGICAL_OR)
all_ = _logical("all", "Whether all elements over axes are true; of nothing, True.", LOGICAL_AND)
argmin = _position(
    "argmin", "Row-major position over axes of the first minimum, or first NaN.", MINIMUM, np.argmin
)
argmax = _position(
    "argmax", "Row-major position over axes of the first maximum, or first NaN.", MAXIMUM, np.argmax
)


# scans


def scan_type(name: str) -> Callable[..., ArrayType]:
    """The type rule of scans, whose results have the type of the operand."""

    def rule(x: ArrayType, *, axis: int) -> ArrayType:
        check_axes(name, (axis,), x.ndim)
        return x.strong()

    return rule


def scan_reference(ufunc: np.ufunc) -> Callable[..., NDArray]:
    """A scan by NumPy."""

    def reference(x: Any, *, axis: int) -> NDArray:
        x = np.asarray(x)
        with np.errstate(all="ignore"):
            return np.asarray(ufunc.accumulate(x, axis=axis, dtype=x.dtype))

    return reference


def _scan(name: str, doc: str, combiner: Combiner) -> Op:
    reference = scan_reference(combiner.ufunc)
    form, rule = Scan(combiner), scan_type(name)
    derivative = of_scan(combiner)
    return register(Op(name, doc, rule, reference, form, _scan_samples, derivative=derivative))


def _scan_samples() -> list[Sample]:
    cases: list[tuple[NDArray, int]] = [
        (1 + np.sin(np.arange(24.0)).reshape(2, 3, 4), 1),
        (ramp((7,)), 0),
        (ramp((1,), np.float32), 0),
        (ramp((3, 4), np.float32), 1),
        (ramp((40,), np.int8), 0),
        (ramp((3, 5), np.uint64), 0),
        (ramp((3, 4), np.float16), 1),
        (ramp((3, 4), bfloat16), 0),
        (ramp((2, 1, 3, 4), np.complex64), 3),
        (ramp((2, 3), np.bool_), 1),
        (ramp((0,)), 0),
        (ramp((3, 0)), 1),
    ]
    return [Sample((x,), {"axis": axis}) for x, axis in cases]


cumsum = _scan("cumsum", "The running sum along an axis.", ADD)
cumprod = _scan("cumprod", "The running product along an axis.", MULTIPLY)
