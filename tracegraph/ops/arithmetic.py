"""Arithmetic. Integers wrap, and dividing one by zero gives zero, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.combiners import ADD, MULTIPLY
from tracegraph.ir.derivative import Constant, Emitter, Partials, Product, Rewrite
from tracegraph.ops.cotangents import is_literal, number, with_rule
from tracegraph.ops.elementwise import texts, ufunc_op
from tracegraph.ops.tricky import NDArray, grid


def _defined_powers(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    """NumPy raises for negative integer exponents; its powers of complex zero vary by version."""
    if dtype.kind == "i":
        return values[:, None], values[values >= 0]
    return (values[values != 0][:, None], values) if dtype.kind == "c" else grid(values, 2)


def _reciprocable(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    """The reciprocal of an integer zero is undefined, and no complex zero has one."""
    return (values[values != 0],) if dtype.kind in "iuc" else (values,)


def _no_zero_divisor(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    """Quotients by complex zeros are NaN or infinite, depending on the C library."""
    return (values[:, None], values[values != 0]) if dtype.kind == "c" else grid(values, 2)


def power_by_base(f: Emitter, out: Any, x: Any, y: Any) -> Any:
    """y·x^(y-1), and 0 for the exponent 0, even where the power is infinite."""
    if is_literal(y):
        return y * f.power(x, y - 1) if y.atom.value else number(x, 0)
    none, one = f.equal(y, number(y, 0)), number(x, 1)
    found = f.where(none, number(x, 0), y * f.power(x, y - 1))
    base = f.where(f.logical_and(none, f.equal(x, number(x, 0))), one, x)
    return with_rule(f, found, "slope_of_power", base, y, x)


def _power_by_exponent(f: Emitter, out: Any, x: Any, y: Any) -> Any:
    """out·log(x), and 0 for the base 0; but NaN where the power of 0 is infinite."""
    zero, one = number(x, 0), number(x, 1)
    is_zero = f.equal(x, zero)
    found = f.multiply(out, f.log(f.where(is_zero, one, x)))
    if x.dtype.kind == "c":
        found = f.where(is_zero, zero, found)
    if is_literal(x):
        return found
    base = f.where(f.logical_and(is_zero, f.equal(y, zero)), one, x)
    return with_rule(f, found, "power_of_log", base, y, k=1)


def power_of_log(f: Emitter, x: Any, y: Any, k: int) -> Any:
    """x^y·log(x)^k, and its limit 0 where x is 0, and the logarithm infinite.

    Derivatives of powers are sums of these. Complex numbers take the limit for all exponents.
    """
    if k == 0:
        return f.power(x, y)
    zero, one = number(x, 0), number(x, 1)
    is_limit = f.equal(x, zero)
    if x.dtype.kind != "c":
        is_limit = f.logical_and(is_limit, f.greater(y, zero))
    log = f.log(f.where(is_limit, one, x))
    found = f.power(x, y)
    for _ in range(k):
        found = f.multiply(found, log)
    return f.where(is_limit, zero, found)


def _direction(f: Emitter, out: Any, x: Any) -> tuple[Any, ...]:
    sign = f.sign(x)
    return (f.conjugate(sign) if x.dtype.kind == "c" else sign,)


def _along(f: Emitter, values: Any, tangents: Any) -> Any:
    """The part of the tangent along x / |x|."""
    return f.real(f.multiply(values[0], tangents[0]))


def _turning(f: Emitter, out: Any, x: Any) -> tuple[Any, ...]:
    """Zero for real numbers; for complex ones, the part of the tangent across x."""
    return (out, f.conjugate(out), 1 / f.absolute(x)) if x.dtype.kind == "c" else ()


def _turned(f: Emitter, values: Any, tangents: Any) -> Any:
    """The part of the tangent across x / |x|, divided by |x|."""
    if not values:
        return None
    (t,), (sign, conjugate, scale) = tangents, values
    along = f.cast(f.real(f.multiply(conjugate, t)), dtype=t.dtype)
    scale = f.cast(scale, dtype=t.dtype)
    return f.multiply(scale, f.subtract(t, f.multiply(sign, along)))


add = ufunc_op(
    np.add,
    "x + y; of bools, their disjunction.",
    {**ADD.c, "e": "tg_half_add({0}, {1})"},
    python=True,
    derivative=Partials(1, 1),
)
subtract = ufunc_op(
    np.subtract,
    "x - y.",
    texts(iu="tg_subtract<{T}>({0}, {1})", fc="({0} - {1})", e="tg_half_subtract({0}, {1})"),
    python=True,
    derivative=Partials(1, -1),
)
multiply = ufunc_op(
    np.multiply,
    "x * y; of bools, their conjunction.",
    {**MULTIPLY.c, "e": "tg_half_multiply({0}, {1})"},
    python=True,
    derivative=Product(lambda f, ct, y: f.multiply(ct, y), lambda f, ct, x: f.multiply(ct, x)),
)
divide = ufunc_op(
    np.divide,
    "x / y, in floating point.",
    texts(fc="({0} / {1})", e="tg_half_divide({0}, {1})"),
    python=True,
    operands=_no_zero_divisor,
    cost=2,
    derivative=Partials(lambda f, o, x, y: 1 / y, lambda f, o, x, y: -o / y),
)
floor_divide = ufunc_op(
    np.floor_divide,
    "The largest integer not above x / y.",
    texts(iu="tg_floor_divide<{T}>({0}, {1})", f="tg_real_floor_divide({0}, {1})"),
    python=True,
    cost=4,
    derivative=Constant(),
)
remainder = ufunc_op(
    np.remainder,
    "x - y * floor_divide(x, y): has the sign of y.",
    texts(iu="tg_remainder<{T}>({0}, {1})", f="tg_real_remainder({0}, {1})"),
    python=True,
    cost=4,
    derivative=Partials(1, lambda f, o, x, y: -f.floor_divide(x, y)),
)
fmod = ufunc_op(
    np.fmod,
    "The rest of dividing x by y with the sign of x.",
    texts(iu="tg_fmod<{T}>({0}, {1})", f="fmod({0}, {1})"),
    cost=4,
    derivative=Partials(1, lambda f, o, x, y: -f.trunc(x / y)),
)
power = ufunc_op(
    np.power,
    "x to the power y.",
    texts(iu="tg_power<{T}>({0}, {1})", fc="tg_power({0}, {1})"),
    python=True,
    operands=_defined_powers,
    cost=8,
    derivative=Partials(power_by_base, _power_by_exponent),
)
float_power = ufunc_op(
    np.float_power,
    "x to the power y in double precision, without the roots and squares that `power` takes.",
    texts(fc="tg_power({0}, {1})"),
    operands=_defined_powers,
    cost=8,
    derivative=Partials(power_by_base, _power_by_exponent),
)
negative = ufunc_op(
    np.negative,
    "-x.",
    texts(iu="tg_negative<{T}>({0})", fc="(-({0}))"),
    python=True,
    derivative=Partials(-1),
)
positive = ufunc_op(
    np.positive, "x.", texts(iufc="{0}"), python=True, cost=0, derivative=Partials(1)
)
absolute = ufunc_op(
    np.absolute,
    "The absolute value; of the least integer, itself.",
    texts(bu="{0}", i="tg_absolute<{T}>({0})", f="fabs({0})", c="tg_absolute({0})"),
    python=True,
    derivative=Rewrite(_direction, _along),
)
sign = ufunc_op(
    np.sign,
    "-1, 0 or 1 by the sign of x; x / |x| of a complex number.",
    texts(iufc="tg_sign({0})"),
    derivative=Rewrite(_turning, _turned),
)
reciprocal = ufunc_op(
    np.reciprocal,
    "1 / x, truncated for integers.",
    texts(iu="tg_reciprocal<{T}>({0})", f="(1 / {0})", c="tg_reciprocal({0})"),
    operands=_reciprocable,
    cost=2,
    derivative=Partials(lambda f, o, x: -(o * o)),
)
square = ufunc_op(
    np.square,
    "x * x.",
    texts(iu="tg_multiply<{T}>({0}, {0})", fc="({0} * {0})", e="tg_half_multiply({0}, {0})"),
    derivative=Partials(lambda f, o, x: 2 * x),
)
