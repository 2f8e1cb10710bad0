"""Comparison, logic, and the larger or smaller of two; complex numbers order lexicographically."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.combiners import (
    FMAX,
    FMIN,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    MAXIMUM,
    MINIMUM,
)
from tracegraph.ir.derivative import Coefficient, Constant, Emitter, Partials
from tracegraph.ir.op import Op, Sample
from tracegraph.ops.cotangents import number
from tracegraph.ops.elementwise import texts, ufunc_op
from tracegraph.ops.tricky import tricky


def _mixed_integers() -> list[Sample]:
    """int64 and uint64 have no common integer dtype and are compared without a cast."""
    signed, unsigned = tricky(np.dtype(np.int64)), tricky(np.dtype(np.uint64))
    return [Sample((signed[:, None], unsigned)), Sample((unsigned[:, None], signed))]


def choice(beats: str, *, of_numbers: bool = False) -> Partials:
    """1 for the operand that is chosen, 0 for the other; ties share equally.

    With `of_numbers`, a number is chosen against a NaN.
    """

    def coefficient(f: Emitter, mine: Any, other: Any, tie: Any) -> Any:
        chosen = getattr(f, beats)(mine, other)
        if of_numbers:
            chosen = f.logical_or(chosen, f.isnan(other))
        one, half, zero = (number(mine, n) for n in (1, 0.5, 0))
        return f.where(chosen, one, f.where(tie, half, zero))

    # both compare x with y, so that the comparison is one
    first: Coefficient = lambda f, o, x, y: coefficient(f, x, y, f.equal(x, y))  # noqa: E731
    return Partials(first, lambda f, o, x, y: coefficient(f, y, x, f.equal(x, y)))


def _comparison(ufunc: np.ufunc, doc: str, sign: str, integers: str) -> Op:
    c = texts(bfc=f"({{0}} {sign} {{1}})", iu=integers)
    return ufunc_op(ufunc, doc, c, more=_mixed_integers, derivative=Constant())


equal = _comparison(np.equal, "x == y.", "==", "tg_equal({0}, {1})")
not_equal = _comparison(np.not_equal, "x != y.", "!=", "(!tg_equal({0}, {1}))")
less = _comparison(np.less, "x < y.", "<", "tg_less({0}, {1})")
less_equal = _comparison(np.less_equal, "x <= y.", "<=", "(!tg_less({1}, {0}))")
greater = _comparison(np.greater, "x > y.", ">", "tg_less({1}, {0})")
greater_equal = _comparison(np.greater_equal, "x >= y.", ">=", "(!tg_less({0}, {1}))")

logical_and = ufunc_op(
    np.logical_and, "Whether both are non-zero.", LOGICAL_AND.c, derivative=Constant()
)
logical_or = ufunc_op(
    np.logical_or, "Whether one is non-zero.", LOGICAL_OR.c, derivative=Constant()
)
logical_xor = ufunc_op(
    np.logical_xor, "Whether exactly one is non-zero.", LOGICAL_XOR.c, derivative=Constant()
)
logical_not = ufunc_op(
    np.logical_not,
    "Whether x is zero.",
    texts(biufc="(!tg_cast<bool>({0}))"),
    derivative=Constant(),
)

maximum = ufunc_op(
    np.maximum, "The larger; NaN if one is.", MAXIMUM.c, derivative=choice("greater")
)
minimum = ufunc_op(np.minimum, "The smaller; NaN if one is.", MINIMUM.c, derivative=choice("less"))
fmax = ufunc_op(
    np.fmax,
    "The larger; the other one if one is NaN.",
    FMAX.c,
    derivative=choice("greater", of_numbers=True),
)
fmin = ufunc_op(
    np.fmin,
    "The smaller; the other one if one is NaN.",
    FMIN.c,
    derivative=choice("less", of_numbers=True),
)
