"""Reductions and scans with NumPy's other associative ufuncs, in the operand's dtype.

Greatest common divisors, least common multiples and hypotenuses are folded of numbers that are not
negative: of one number alone, NumPy gives that number itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.combiners import (
    BITWISE_AND,
    BITWISE_OR,
    BITWISE_XOR,
    FMAX,
    FMIN,
    GCD,
    HYPOT,
    LCM,
    LOGADDEXP,
    LOGADDEXP2,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    MAXIMUM,
    MINIMUM,
)
from tracegraph.ir.op import Combiner, Op, Reduction, Sample, Scan, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.elementwise import resolve
from tracegraph.ops.fold_derivatives import of_reduction, of_scan
from tracegraph.ops.reduce import extreme_type, fold_reference, fold_type, scan_reference, scan_type
from tracegraph.ops.sampling import ramp

NDArray = np.ndarray[Any, Any]


def _native(combiner: Combiner, dtype: np.dtype[Any]) -> bool:
    """Whether the ufunc makes one number of a dtype from two."""
    try:
        found = resolve(combiner.ufunc, [ArrayType(dtype, ())] * 2)
    except TypeError:
        return False
    return set(found) == {dtype}


def _checked(name: str, combiner: Combiner, rule: Callable[..., ArrayType]) -> Any:
    """The type rule, for the dtypes that the ufunc combines without a cast."""

    def checking(x: ArrayType, **attrs: Any) -> ArrayType:
        if not _native(combiner, x.dtype):
            raise TypeError(f"{name}: numpy.{combiner.name} does not combine values of {x}")
        return rule(x, **attrs)

    return checking


def _samples(combiner: Combiner, cases: Sequence[tuple[tuple[int, ...], Any]]) -> list[NDArray]:
    """Arrays of all dtypes and of some shapes for which kernels differ, with NaNs where allowed."""
    dtypes = [d for d in SHORT_NAMES if _native(combiner, d)]
    found = [ramp(shape, dtypes[-1]) for shape, _ in cases]
    found += [ramp((3, 4), dtype) for dtype in dtypes]
    if combiner in (GCD, LCM, HYPOT):
        return [np.abs(x) for x in found]
    if combiner in (FMIN, FMAX):
        special = np.array([[1, np.nan, -1], [np.nan, 2, np.nan], [np.nan, np.nan, np.nan]])
        found += [special, special.astype(np.float32)]
    return found


def _reduction(combiner: Combiner, doc: str) -> Op:
    name = f"{combiner.name}_reduce"
    rule = fold_type(name) if combiner.ufunc.identity is not None else extreme_type(name)
    several: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((2, 1, 3, 4), (1, 2)),
        ((2, 3), (0, 1)),
    ]
    cases = [((40,), (0,)), ((5, 3), (0,)), *(several if combiner is not LCM else ())]

    def samples() -> list[Sample]:
        arrays = _samples(combiner, cases)
        axes = [axes for _, axes in cases] + [(1,)] * (len(arrays) - len(cases))
        return [Sample((x,), {"axes": a}) for x, a in zip(arrays, axes, strict=True)]

    reference = fold_reference(combiner.ufunc)
    form = Reduction(combiner)
    checked, derivative = _checked(name, combiner, rule), of_reduction(combiner)
    return register(Op(name, doc, checked, reference, form, samples, derivative=derivative))


def _scan(combiner: Combiner, doc: str) -> Op:
    name = f"{combiner.name}_accumulate"
    cases: Sequence[tuple[tuple[int, ...], int]] = [((2, 3, 4), 1), ((40,), 0), ((0,), 0)]

    def samples() -> list[Sample]:
        arrays = _samples(combiner, cases)
        axes = [axis for _, axis in cases] + [1] * (len(arrays) - len(cases))
        return [Sample((x,), {"axis": a}) for x, a in zip(arrays, axes, strict=True)]

    reference = scan_reference(combiner.ufunc)
    rule = _checked(name, combiner, scan_type(name))
    form, derivative = Scan(combiner), of_scan(combiner)
    return register(Op(name, doc, rule, reference, form, samples, derivative=derivative))


_FOLDED = (
    (FMIN, "minimum of what is not NaN"),
    (FMAX, "maximum of what is not NaN"),
    (LOGICAL_XOR, "parity of the true elements"),
    (BITWISE_AND, "bits set in all elements"),
    (BITWISE_OR, "bits set in an element"),
    (BITWISE_XOR, "bits set in an odd number of elements"),
    (GCD, "greatest common divisor"),
    (LCM, "least common multiple"),
    (HYPOT, "root of the sum of squares"),
    (LOGADDEXP, "logarithm of the sum of exponentials"),
    (LOGADDEXP2, "logarithm to base 2 of the sum of powers of 2"),
)
_SCANNED = (
    (MINIMUM, "minimum; NaN from the first one on"),
    (MAXIMUM, "maximum; NaN from the first one on"),
    (LOGICAL_AND, "conjunction"),
    (LOGICAL_OR, "disjunction"),
)

for _combiner, _what in _FOLDED:
    _reduction(_combiner, f"The {_what}, over axes.")
for _combiner, _what in (*_FOLDED, *_SCANNED):
    _scan(_combiner, f"The running {_what}, along an axis.")
