"""NumPy's ufuncs and their aliases.

All take arrays that broadcast together and promote dtypes as NumPy does. `out` must be an array
made in the function that is traced, and `where` goes with `out`, whose other elements stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import promotion_token, type_of
from tracegraph.numpy.dispatch import as_array, is_ours, is_python_number, numpy_function
from tracegraph.numpy.output import written
from tracegraph.tracing.tracer import Tracer

Function = Callable[..., Any]

_PLAIN = frozenset({Tracer, Array, np.ndarray, bool, int, float, complex})
"""Classes of operands that ops take as they are."""


def _ufunc(name: str) -> Function:
    """The function of an op that is a NumPy ufunc."""
    op, ufunc = get(name), getattr(np, name)

    def function(*args: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
        if out is None and where is True and dtype is None and is_ours(args):
            if _PLAIN.issuperset(map(type, args)):
                return apply(op, *args)
            return apply(op, *[as_array(a) if isinstance(a, (list, tuple)) else a for a in args])
        if not is_ours((*args, out, where)):
            chosen = {} if dtype is None else {"dtype": dtype}
            return ufunc(*args, out=out, where=where, **chosen)
        operands = [as_array(a) if isinstance(a, (list, tuple)) else a for a in args]
        if dtype is not None:
            operands = _in_loop_dtypes(ufunc, operands, dtype)
        return written(name, apply(op, *operands), out, where)

    return _named(function, name, op.doc)


def _named(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _in_loop_dtypes(ufunc: np.ufunc, operands: list[Any], dtype: DTypeLike) -> list[Any]:
    """Operands cast to those dtypes for which the ufunc yields `dtype`."""
    tokens = [promotion_token(type_of(x)) for x in operands]
    signature = (*(None for _ in operands), np.dtype(dtype))
    found = ufunc.resolve_dtypes((*tokens, None), signature=signature)
    return [as_array(x, d) for x, d in zip(operands, found, strict=False)]


def _comparison(name: str) -> Function:
    """The function of a comparison, which takes Python ints by their values, as NumPy does."""
    compare = _ufunc(name)

    def function(x: Any, y: Any, /, **options: Any) -> Any:
        if is_ours((x, y)):
            x, y = _unbent(x, y), _unbent(y, x)
        return compare(x, y, **options)

    return _named(function, name, get(name).doc)


def _unbent(x: Any, other: Any) -> Any:
    """An operand of a comparison: a Python int that the other's dtype may not hold has 64 bits."""
    if not is_python_number(x) or is_python_number(other):
        return x
    own, dtype = type_of(x).dtype, type_of(other).dtype
    if own.kind not in "iu" or dtype.kind not in "iu" or own == dtype:
        return x
    if type(x) is int and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
        return x
    return as_array(x)


add = _ufunc("add")
subtract = _ufunc("subtract")
multiply = _ufunc("multiply")
divide = true_divide = _ufunc("divide")
floor_divide = _ufunc("floor_divide")
remainder = mod = _ufunc("remainder")
fmod = _ufunc("fmod")
power = pow = _ufunc("power")
negative = _ufunc("negative")
positive = _ufunc("positive")
absolute = abs = _ufunc("absolute")
sign = _ufunc("sign")
reciprocal = _ufunc("reciprocal")
square = _ufunc("square")
sqrt = _ufunc("sqrt")
cbrt = _ufunc("cbrt")
exp = _ufunc("exp")
exp2 = _ufunc("exp2")
expm1 = _ufunc("expm1")
log = _ufunc("log")
log2 = _ufunc("log2")
log10 = _ufunc("log10")
log1p = _ufunc("log1p")
sin = _ufunc("sin")
cos = _ufunc("cos")
tan = _ufunc("tan")
arcsin = asin = _ufunc("arcsin")
arccos = acos = _ufunc("arccos")
arctan = atan = _ufunc("arctan")
arctan2 = atan2 = _ufunc("arctan2")
sinh = _ufunc("sinh")
cosh = _ufunc("cosh")
tanh = _ufunc("tanh")
arcsinh = asinh = _ufunc("arcsinh")
arccosh = acosh = _ufunc("arccosh")
arctanh = atanh = _ufunc("arctanh")
hypot = _ufunc("hypot")
logaddexp = _ufunc("logaddexp")
logaddexp2 = _ufunc("logaddexp2")
floor = _ufunc("floor")
ceil = _ufunc("ceil")
trunc = _ufunc("trunc")
rint = _ufunc("rint")
maximum = _ufunc("maximum")
minimum = _ufunc("minimum")
fmax = _ufunc("fmax")
fmin = _ufunc("fmin")
equal = _comparison("equal")
not_equal = _comparison("not_equal")
less = _comparison("less")
less_equal = _comparison("less_equal")
greater = _comparison("greater")
greater_equal = _comparison("greater_equal")
logical_and = _ufunc("logical_and")
logical_or = _ufunc("logical_or")
logical_xor = _ufunc("logical_xor")
logical_not = _ufunc("logical_not")
bitwise_and = _ufunc("bitwise_and")
bitwise_or = _ufunc("bitwise_or")
bitwise_xor = _ufunc("bitwise_xor")
invert = bitwise_not = bitwise_invert = _ufunc("invert")
left_shift = bitwise_left_shift = _ufunc("left_shift")
right_shift = bitwise_right_shift = _ufunc("right_shift")
isfinite = _ufunc("isfinite")
isinf = _ufunc("isinf")
isnan = _ufunc("isnan")
signbit = _ufunc("signbit")
copysign = _ufunc("copysign")
nextafter = _ufunc("nextafter")
deg2rad = radians = _ufunc("deg2rad")
rad2deg = degrees = _ufunc("rad2deg")
heaviside = _ufunc("heaviside")
conjugate = conj = _ufunc("conjugate")


@numpy_function
def fabs(x: Any, /, out: Any = None, *, where: Any = True) -> Any:
    """Absolute values as floating-point numbers."""
    return written("fabs", absolute(_floating("fabs", x)), out, where)


@numpy_function
def float_power(x: Any, y: Any, /, out: Any = None, *, where: Any = True) -> Any:
    """Powers in float64, or complex128 for complex operands."""
    complex_ = any(type_of(v).dtype.kind == "c" for v in (x, y))
    dtype = np.dtype(np.complex128 if complex_ else np.float64)
    return written("float_power", power(as_array(x, dtype), as_array(y, dtype)), out, where)


def _floating(name: str, x: Any) -> Any:
    """An array cast to the floating-point dtype that the ufunc of that name computes in."""
    x, ufunc = as_array(x), getattr(np, name)
    return as_array(x, ufunc.resolve_dtypes((x.dtype,) + (None,) * ufunc.nout)[0])


@numpy_function
def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """Floor quotients and remainders."""
    return floor_divide(x, y), remainder(x, y)


@numpy_function
def modf(x: Any, /) -> tuple[Any, Any]:
    """Fractional and integral parts, both with the sign of `x`."""
    x = _floating("modf", x)
    whole = trunc(x)
    fraction = apply(get("where"), isinf(x), x.dtype.type(0), subtract(x, whole))
    return copysign(fraction, x), whole
