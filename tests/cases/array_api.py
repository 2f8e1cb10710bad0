"""The special cases of the array API standard 2024.12 for functions of elements.

Source: https://data-apis.org/array-api/2024.12/API_specification/elementwise_functions.html

A line is `function: arguments -> result; …`. `c(a, b)` is a complex number. After `?`, the standard
leaves the signs of the result, or of a part of it, open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import inf, nan, pi

REAL = """
abs: nan -> nan; -0. -> 0.; -inf -> inf; -2. -> 2.
acos: nan -> nan; 1.5 -> nan; -1.5 -> nan; 1. -> 0.
acosh: nan -> nan; .5 -> nan; -3. -> nan; 1. -> 0.; inf -> inf
add: nan, 1. -> nan; 1., nan -> nan; inf, -inf -> nan; -inf, inf -> nan; inf, inf -> inf
add: -inf, -inf -> -inf; inf, 1. -> inf; -inf, 1. -> -inf; 1., inf -> inf; 1., -inf -> -inf
add: -0., -0. -> -0.; -0., 0. -> 0.; 0., -0. -> 0.; 0., 0. -> 0.; 0., 3. -> 3.; 3., -3. -> 0.
asin: nan -> nan; 1.5 -> nan; -1.5 -> nan; 0. -> 0.; -0. -> -0.
asinh: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> inf; -inf -> -inf
atan: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> pi / 2; -inf -> -pi / 2
atan2: nan, 1. -> nan; 1., nan -> nan; 1., 0. -> pi / 2; 1., -0. -> pi / 2; 0., 1. -> 0.
atan2: 0., 0. -> 0.; 0., -0. -> pi; 0., -1. -> pi; -0., 1. -> -0.; -0., 0. -> -0.; -0., -0. -> -pi
atan2: -0., -1. -> -pi; -1., 0. -> -pi / 2; -1., -0. -> -pi / 2; 1., inf -> 0.; 1., -inf -> pi
atan2: -1., inf -> -0.; -1., -inf -> -pi; inf, 1. -> pi / 2; -inf, 1. -> -pi / 2
atan2: inf, inf -> pi / 4; inf, -inf -> 3 * pi / 4; -inf, inf -> -pi / 4; -inf, -inf -> -3 * pi / 4
atanh: nan -> nan; -1.5 -> nan; 1.5 -> nan; -1. -> -inf; 1. -> inf; 0. -> 0.; -0. -> -0.
ceil: 3. -> 3.; inf -> inf; -inf -> -inf; nan -> nan; 0. -> 0.; -0. -> -0.; -.5 -> -0.
copysign: 3., -0. -> -3.; 0., -1. -> -0.; -0., 1. -> 0.; -inf, 1. -> inf; -3., nan -> 3.
cos: nan -> nan; 0. -> 1.; -0. -> 1.; inf -> nan; -inf -> nan
cosh: nan -> nan; 0. -> 1.; -0. -> 1.; inf -> inf; -inf -> inf
divide: nan, 1. -> nan; 1., nan -> nan; inf, inf -> nan; -inf, inf -> nan; 0., 0. -> nan
divide: -0., 0. -> nan
divide: 0., 1. -> 0.; -0., 1. -> -0.; 0., -1. -> -0.; -0., -1. -> 0.; 1., 0. -> inf; 1., -0. -> -inf
divide: -1., 0. -> -inf; -1., -0. -> inf; inf, 2. -> inf; inf, -2. -> -inf; -inf, 2. -> -inf
divide: -inf, -2. -> inf; 2., inf -> 0.; 2., -inf -> -0.; -2., inf -> -0.; -2., -inf -> 0.
exp: nan -> nan; 0. -> 1.; -0. -> 1.; inf -> inf; -inf -> 0.
expm1: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> inf; -inf -> -1.
floor: 3. -> 3.; inf -> inf; -inf -> -inf; nan -> nan; 0. -> 0.; -0. -> -0.; .5 -> 0.
floor_divide: nan, 1. -> nan; 1., nan -> nan; inf, inf -> nan; 0., 0. -> nan; 7., 2. -> 3.
floor_divide: -7., 2. -> -4.
hypot: inf, nan -> inf; nan, -inf -> inf; nan, 1. -> nan; 0., -3. -> 3.; -0., 0. -> 0.
log: nan -> nan; -1. -> nan; 0. -> -inf; -0. -> -inf; 1. -> 0.; inf -> inf
log1p: nan -> nan; -2. -> nan; -1. -> -inf; -0. -> -0.; 0. -> 0.; inf -> inf
log2: nan -> nan; -1. -> nan; 0. -> -inf; -0. -> -inf; 1. -> 0.; inf -> inf
log10: nan -> nan; -1. -> nan; 0. -> -inf; -0. -> -inf; 1. -> 0.; inf -> inf
logaddexp: nan, 1. -> nan; 1., nan -> nan; inf, 1. -> inf; 1., inf -> inf; -inf, -inf -> -inf
maximum: nan, 1. -> nan; 1., nan -> nan; nan, inf -> nan; -inf, 3. -> 3.; inf, 3. -> inf
minimum: nan, 1. -> nan; 1., nan -> nan; nan, -inf -> nan; -inf, 3. -> -inf; inf, 3. -> 3.
multiply: nan, 1. -> nan; 1., nan -> nan; inf, 0. -> nan; 0., -inf -> nan; inf, inf -> inf
multiply: inf, -inf -> -inf; -inf, -inf -> inf; inf, -2. -> -inf; 2., inf -> inf; -0., 2. -> -0.
multiply: -0., -2. -> 0.; 0., -2. -> -0.
negative: 0. -> -0.; -0. -> 0.; inf -> -inf; nan -> nan
nextafter: nan, 1. -> nan; 1., nan -> nan; -0., 0. -> 0.; 0., -0. -> -0.; 3., 3. -> 3.
nextafter: inf, inf -> inf
pow: 3., 0. -> 1.; nan, 0. -> 1.; nan, -0. -> 1.; inf, 0. -> 1.; nan, 2. -> nan; 2., nan -> nan
pow: 3., inf -> inf; 3., -inf -> 0.; -3., inf -> inf; .5, inf -> 0.; .5, -inf -> inf; -.5, inf -> 0.
pow: 1., inf -> 1.; 1., nan -> 1.; -1., inf -> 1.; -1., -inf -> 1.
pow: inf, 2. -> inf; inf, -2. -> 0.; -inf, 3. -> -inf; -inf, 2. -> inf; -inf, -3. -> -0.
pow: -inf, -2. -> 0.
pow: -inf, 2.5 -> inf; 0., 2. -> 0.; 0., -2. -> inf; -0., 3. -> -0.; -0., 2. -> 0.; -0., -3. -> -inf
pow: -0., -2. -> inf; -8., 2.5 -> nan
reciprocal: 0. -> inf; -0. -> -inf; inf -> 0.; -inf -> -0.; nan -> nan
remainder: nan, 1. -> nan; 1., nan -> nan; inf, inf -> nan; inf, 2. -> nan; 0., 0. -> nan
remainder: 2., 0. -> nan
remainder: 0., 2. -> 0.; -0., 2. -> 0.; 0., -2. -> -0.; -0., -2. -> -0.; 2., inf -> 2.
remainder: -2., inf -> inf
remainder: 2., -inf -> -inf; -2., -inf -> -2.; 7., 2. -> 1.; -7., 2. -> 1.; 7., -2. -> -1.
remainder: 4., 2. -> 0.
round: 3. -> 3.; 2.5 -> 2.; 3.5 -> 4.; -.5 -> -0.; inf -> inf; -inf -> -inf; nan -> nan; -0. -> -0.
sign: -3. -> -1.; 0. -> 0.; -0. -> 0.; 3. -> 1.; nan -> nan; inf -> 1.; -inf -> -1.
sin: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> nan; -inf -> nan
sinh: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> inf; -inf -> -inf
sqrt: nan -> nan; -1. -> nan; 0. -> 0.; -0. -> -0.; inf -> inf
square: nan -> nan; -0. -> 0.; -inf -> inf
subtract: inf, inf -> nan; inf, -inf -> inf; -0., 0. -> -0.; 0., 0. -> 0.; -0., -0. -> 0.
subtract: nan, 1. -> nan
tan: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> nan; -inf -> nan
tanh: nan -> nan; 0. -> 0.; -0. -> -0.; inf -> 1.; -inf -> -1.
trunc: 3. -> 3.; inf -> inf; -inf -> -inf; nan -> nan; 0. -> 0.; -0. -> -0.; -.5 -> -0.; .5 -> 0.
"""

FACTS = """
equal: nan, nan -> False; nan, 1. -> False; inf, inf -> True; -inf, -inf -> True; -0., 0. -> True
not_equal: nan, nan -> True; inf, -inf -> True; -0., 0. -> False
greater: nan, 1. -> False; 1., nan -> False; inf, 1. -> True; 0., -0. -> False
greater_equal: nan, nan -> False; -0., 0. -> True; inf, inf -> True
less: nan, 1. -> False; 1., nan -> False; -inf, 1. -> True; -0., 0. -> False
less_equal: nan, nan -> False; 0., -0. -> True; -inf, -inf -> True
isfinite: 3. -> True; inf -> False; -inf -> False; nan -> False; -0. -> True
isinf: 3. -> False; inf -> True; -inf -> True; nan -> False
isnan: 3. -> False; inf -> False; nan -> True
signbit: 0. -> False; -0. -> True; inf -> False; -inf -> True; -3. -> True; 3. -> False
"""

COMPLEX = """
abs: c(inf, nan) -> inf; c(nan, -inf) -> inf; c(nan, 1.) -> nan; c(-0., 0.) -> 0.; c(3., 4.) -> 5.
acos: c(0., 0.) -> c(pi / 2, -0.); c(-0., 0.) -> c(pi / 2, -0.); c(0., nan) -> c(pi / 2, nan)
acos: c(1., inf) -> c(pi / 2, -inf); c(2., nan) -> c(nan, nan); c(-inf, 1.) -> c(pi, -inf)
acos: c(inf, 1.) -> c(0., -inf); c(-inf, inf) -> c(3 * pi / 4, -inf); c(inf, inf) -> c(pi / 4, -inf)
acos: ? c(inf, nan) -> c(nan, inf); c(nan, 1.) -> c(nan, nan); c(nan, inf) -> c(nan, -inf)
acosh: c(0., 0.) -> c(0., pi / 2); c(1., inf) -> c(inf, pi / 2); c(2., nan) -> c(nan, nan)
acosh: c(-inf, 1.) -> c(inf, pi); c(inf, 1.) -> c(inf, 0.); c(-inf, inf) -> c(inf, 3 * pi / 4)
acosh: c(inf, inf) -> c(inf, pi / 4); c(inf, nan) -> c(inf, nan); c(nan, inf) -> c(inf, nan)
add: c(inf, 1.), c(1., nan) -> c(inf, nan); c(-0., -0.), c(-0., 0.) -> c(-0., 0.)
asinh: c(0., 0.) -> c(0., 0.); c(1., inf) -> c(inf, pi / 2); c(inf, 1.) -> c(inf, 0.)
asinh: c(inf, inf) -> c(inf, pi / 4); c(inf, nan) -> c(inf, nan); c(nan, 0.) -> c(nan, 0.)
asinh: c(nan, 1.) -> c(nan, nan); ? c(nan, inf) -> c(inf, nan); c(nan, nan) -> c(nan, nan)
atanh: c(0., 0.) -> c(0., 0.); c(0., nan) -> c(0., nan); c(1., 0.) -> c(inf, 0.)
atanh: c(1., inf) -> c(0., pi / 2); c(1., nan) -> c(nan, nan); c(inf, 1.) -> c(0., pi / 2)
atanh: c(inf, inf) -> c(0., pi / 2); c(inf, nan) -> c(0., nan); ? c(nan, inf) -> c(0., pi / 2)
conj: c(nan, 1.) -> c(nan, -1.); c(1., -0.) -> c(1., 0.); c(-inf, inf) -> c(-inf, -inf)
cosh: c(0., 0.) -> c(1., 0.); ? c(0., inf) -> c(nan, 0.); ? c(0., nan) -> c(nan, 0.)
cosh: c(1., inf) -> c(nan, nan); c(1., nan) -> c(nan, nan); c(inf, 0.) -> c(inf, 0.)
cosh: ? c(inf, inf) -> c(inf, nan); c(inf, nan) -> c(inf, nan); ? c(nan, 0.) -> c(nan, 0.)
exp: c(0., 0.) -> c(1., 0.); c(-0., 0.) -> c(1., 0.); c(1., inf) -> c(nan, nan)
exp: c(1., nan) -> c(nan, nan)
exp: c(inf, 0.) -> c(inf, 0.); c(-inf, 1.) -> c(0., 0.); c(inf, 1.) -> c(inf, inf)
exp: ? c(-inf, inf) -> c(0., 0.); ? c(inf, inf) -> c(inf, nan); ? c(inf, nan) -> c(inf, nan)
exp: c(nan, 0.) -> c(nan, 0.); c(nan, 1.) -> c(nan, nan); c(nan, nan) -> c(nan, nan)
imag: c(1., -0.) -> -0.; c(nan, inf) -> inf
log: c(-0., 0.) -> c(-inf, pi); c(0., 0.) -> c(-inf, 0.); c(1., inf) -> c(inf, pi / 2)
log: c(-inf, 1.) -> c(inf, pi); c(inf, 1.) -> c(inf, 0.); c(-inf, inf) -> c(inf, 3 * pi / 4)
log: c(inf, inf) -> c(inf, pi / 4); c(inf, nan) -> c(inf, nan); c(nan, inf) -> c(inf, nan)
log1p: c(-1., 0.) -> c(-inf, 0.); c(1., inf) -> c(inf, pi / 2); c(inf, 1.) -> c(inf, 0.)
negative: c(0., -0.) -> c(-0., 0.)
real: c(-0., 1.) -> -0.; c(nan, inf) -> nan
sign: c(0., 0.) -> c(0., 0.); c(-3., 0.) -> c(-1., 0.); c(0., 2.) -> c(0., 1.)
sinh: c(0., 0.) -> c(0., 0.); ? c(0., inf) -> c(0., nan); ? c(0., nan) -> c(0., nan)
sinh: c(1., inf) -> c(nan, nan); c(1., nan) -> c(nan, nan); c(inf, 0.) -> c(inf, 0.)
sinh: ? c(inf, inf) -> c(inf, nan); ? c(inf, nan) -> c(inf, nan); c(nan, 0.) -> c(nan, 0.)
sqrt: c(0., 0.) -> c(0., 0.); c(-0., 0.) -> c(0., 0.); c(1., inf) -> c(inf, inf)
sqrt: c(nan, inf) -> c(inf, inf); c(1., nan) -> c(nan, nan); c(-inf, 1.) -> c(0., inf)
sqrt: c(inf, 1.) -> c(inf, 0.); ? c(-inf, nan) -> c(nan, inf); c(inf, nan) -> c(inf, nan)
tanh: c(0., 0.) -> c(0., 0.); c(1., inf) -> c(nan, nan); c(1., nan) -> c(nan, nan)
tanh: c(inf, 1.) -> c(1., 0.); ? c(inf, inf) -> c(1., 0.); ? c(inf, nan) -> c(1., 0.)
tanh: c(nan, 0.) -> c(nan, 0.); c(nan, 1.) -> c(nan, nan); c(nan, nan) -> c(nan, nan)
"""

INTEGERS = """
abs: -3 -> 3; 0 -> 0
ceil: 3 -> 3
floor: -3 -> -3
floor_divide: 7, 2 -> 3; -7, 2 -> -4; 7, -2 -> -4; -7, -2 -> 3
remainder: 7, 2 -> 1; -7, 2 -> 1; 7, -2 -> -1; -7, -2 -> -1
round: 5 -> 5
sign: -3 -> -1; 0 -> 0; 3 -> 1
trunc: -3 -> -3
bitwise_invert: 5 -> -6
bitwise_left_shift: 3, 2 -> 12
bitwise_right_shift: -9, 1 -> -5
pow: 2, 5 -> 32; 0, 0 -> 1
"""


class Special(NamedTuple):
    """Arguments of a function and its result; `signed`: signs of its parts are specified."""

    arguments: tuple[Any, ...]
    result: Any
    signed: bool


def special(text: str) -> dict[str, Sequence[Special]]:
    """The cases of each function in one of the tables."""
    found: dict[str, list[Special]] = {}
    names = {"c": complex, "inf": inf, "nan": nan, "pi": pi}
    for line in filter(None, text.split("\n")):
        name, _, cases = line.partition(": ")
        for case in cases.split(";"):
            arguments, _, result = case.partition("->")
            signed = "?" not in arguments
            values = eval(f"({arguments.replace('?', '')},)", names)
            found.setdefault(name, []).append(Special(values, eval(result, names), signed))
    return dict(found)


SPECIAL: dict[str, dict[str, Sequence[Special]]] = {
    **dict.fromkeys(("float32", "float64"), special(REAL) | special(FACTS)),
    **dict.fromkeys(("complex64", "complex128"), special(COMPLEX)),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), special(INTEGERS)),
}
"""By dtype, the cases of each function."""


def arguments_of(cases: Sequence[Special], dtype: str) -> list[np.ndarray[Any, Any]]:
    """An array for each argument of a function, with an element for each case."""
    return [np.array(column, dtype) for column in zip(*(c.arguments for c in cases), strict=True)]


def assert_special(name: str, cases: Sequence[Special], found: np.ndarray[Any, Any]) -> None:
    """Require the results of the cases; reals may be off by 4 units in the last place."""
    exact = found.dtype.kind in "bi"
    for case, value in zip(cases, found, strict=True):
        wanted = np.asarray(case.result, value.dtype)
        message = f"{name}{case.arguments} gave {value}, not {wanted}"
        parts = [(value, wanted)]
        if value.dtype.kind == "c":
            parts = [(value.real, wanted.real), (value.imag, wanted.imag)]
        for got, part in parts:
            if exact:
                assert got == part, message
                continue
            assert not case.signed or np.isnan(part) or np.signbit(got) == np.signbit(part), message
            tolerance = 4 * np.finfo(value.dtype).eps
            np.testing.assert_allclose(np.abs(got), np.abs(part), rtol=tolerance, err_msg=message)


INTEGRAL = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATING = ("float32", "float64")
COMPLEX_DTYPES = ("complex64", "complex128")
ALL = ("bool", *INTEGRAL, *FLOATING, *COMPLEX_DTYPES)


def promoted(first: str, second: str) -> str | None:
    """The dtype of two by the standard's tables; None where they have no entry."""
    if first == second:
        return first
    (kind, bits), (other, others) = (
        (name.rstrip("0123456789"), _bits(name)) for name in (first, second)
    )
    if kind == other:
        return f"{kind}{max(bits, others)}"
    kinds = {kind: bits, other: others}
    if kinds.keys() == {"int", "uint"}:
        size = max(kinds["int"], 2 * kinds["uint"])
        return f"int{size}" if size <= 64 else None
    if kinds.keys() == {"float", "complex"}:
        return f"complex{max(kinds['complex'], 2 * kinds['float'])}"
    return None


def _bits(name: str) -> int:
    return int(name.lstrip("abcdefilmnotuxp") or 0)


DOMAINS = {
    "all": ALL,
    "numeric": (*INTEGRAL, *FLOATING, *COMPLEX_DTYPES),
    "real": (*INTEGRAL, *FLOATING),
    "integral": INTEGRAL,
    "bits": ("bool", *INTEGRAL),
    "bool": ("bool",),
    "real floating": FLOATING,
    "floating": (*FLOATING, *COMPLEX_DTYPES),
    "complex": COMPLEX_DTYPES,
}

TAKES = """
all: equal not_equal
numeric: abs add multiply negative positive pow sign square subtract isfinite isinf isnan round
numeric: conj real
real: ceil floor floor_divide greater greater_equal less less_equal maximum minimum remainder trunc
integral: bitwise_left_shift bitwise_right_shift
bits: bitwise_and bitwise_invert bitwise_or bitwise_xor
bool: logical_and logical_not logical_or logical_xor
real floating: atan2 copysign hypot logaddexp nextafter signbit
floating: acos acosh asin asinh atan atanh cos cosh divide exp expm1 log log1p log2 log10
floating: reciprocal sin sinh sqrt tan tanh
complex: imag
"""

GIVES = {
    name: line.partition(": ")[0]
    for line in (
        "bool: isfinite isinf isnan signbit logical_and logical_not logical_or logical_xor",
        "bool: equal not_equal greater greater_equal less less_equal",
        "real: abs real imag",
    )
    for name in line.partition(": ")[2].split()
}
"""What functions give if not the promoted dtype: booleans, or reals of the same precision."""


def domains() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each function of elements, with the dtypes that it takes."""
    for line in filter(None, TAKES.split("\n")):
        domain, _, names = line.partition(": ")
        for name in names.split():
            yield name, DOMAINS[domain]


def result_dtype(name: str, dtype: str) -> str:
    """The dtype of a function's result for arguments that promote to `dtype`."""
    kind = GIVES.get(name)
    if kind == "real" and dtype in COMPLEX_DTYPES:
        return f"float{_bits(dtype) // 2}"
    return "bool" if kind == "bool" else dtype
