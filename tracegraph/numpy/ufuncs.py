"""NumPy's ufuncs and their aliases.

Operands broadcast, and dtypes are promoted as in NumPy. `out` must be an array made in the traced
function. `where` needs `out`, whose elements stay where the mask is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import type_of
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, is_python_number
from tracegraph.numpy.dispatching.docstrings import ufunc_docstring
from tracegraph.numpy.dispatching.ufunc_calls import called, ufunc_function
from tracegraph.tracing.tracer import Tracer

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "cbrt", "ceil", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad",
    "degrees", "divide", "divmod", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "frexp", "gcd", "greater", "greater_equal", "heaviside",
    "hypot", "invert", "isfinite", "isinf", "isnan", "lcm", "ldexp", "left_shift", "less",
    "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "modf", "multiply",
    "negative", "nextafter", "not_equal", "positive", "pow", "power", "rad2deg", "radians",
    "reciprocal", "remainder", "right_shift", "rint", "sign", "signbit", "sin", "sinh", "spacing",
    "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc",
]  # fmt: skip

Function = Callable[..., Any]

_PLAIN = frozenset({Tracer, Array, np.ndarray, bool, int, float, complex})
"""Classes of operands that ops take as they are."""


def new_ufunc(name: str, call: str, result: str) -> Function:
    """The function of an op that is a NumPy ufunc; an example of a call, and what it gives."""
    op, ufunc = get(name), getattr(np, name)

    def compute(*operands: Any) -> Any:
        return apply(op, *operands)

    def function(
        *args: Any, out: Any = None, where: Any = True, dtype: Any = None, **others: Any
    ) -> Any:
        is_plain = out is None and where is True and dtype is None and not others
        if is_plain and len(args) == ufunc.nin and is_ours(args):
            if _PLAIN.issuperset(map(type, args)):
                return apply(op, *args)
            return apply(op, *[as_array(a) if isinstance(a, (list, tuple)) else a for a in args])
        options = {**({} if dtype is None else {"dtype": dtype}), **others}
        if not is_ours((*args, out, where)):
            return ufunc(*args, out=out, where=where, **options)
        return called(ufunc, compute, args, {"out": out, "where": where, **options})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = ufunc_docstring(name, op.doc, ufunc, call, result)
    return function


def _comparison(name: str, call: str, result: str) -> Function:
    """The function of a comparison, which takes Python ints by their values, as NumPy does."""
    compare = new_ufunc(name, call, result)

    @wraps(compare)
    def function(*args: Any, **options: Any) -> Any:
        if len(args) > 1:
            x, y, *outs = args
            is_equality = name in ("equal", "not_equal") and not outs and not options
            if is_equality and (x is None or y is None):
                return (x == y) if name == "equal" else (x != y)
            if is_ours((x, y)):
                args = (_unbent(x, y), _unbent(y, x), *outs)
        return compare(*args, **options)

    return function


def _unbent(x: Any, other: Any) -> Any:
    """An operand of a comparison: a Python int that the other's dtype does not hold has 64 bits.

    Beyond 64 bits it is an infinity, beside integers.
    """
    if type(x) is int and not -(2**63) <= x < 2**64:
        return math.copysign(math.inf, x) if type_of(other).dtype.kind in "biu" else x
    if not is_python_number(x) or is_python_number(other):
        return x
    own, dtype = type_of(x).dtype, type_of(other).dtype
    if own.kind not in "iu" or dtype.kind not in "iu" or own == dtype:
        return x
    if type(x) is int and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
        return x
    return as_array(x)


add = new_ufunc("add", "[1, 2], 0.5", "array([1.5, 2.5])")
subtract = new_ufunc("subtract", "[3, 2], 1", "array([2, 1])")
multiply = new_ufunc("multiply", "[1, 2], [3, 4]", "array([3, 8])")
divide = true_divide = new_ufunc("divide", "[1, 2], 4", "array([0.25, 0.5 ])")
floor_divide = new_ufunc("floor_divide", "[7, -7], 2", "array([ 3, -4])")
remainder = mod = new_ufunc("remainder", "[7, -7], 3", "array([1, 2])")
fmod = new_ufunc("fmod", "[7, -7], 3", "array([ 1, -1])")
power = pow = new_ufunc("power", "[2, 3], 2", "array([4, 9])")
negative = new_ufunc("negative", "[1, -2]", "array([-1,  2])")
positive = new_ufunc("positive", "[1, -2]", "array([ 1, -2])")
absolute = abs = new_ufunc("absolute", "[-1.5, 3+4j]", "array([1.5, 5. ])")
sign = new_ufunc("sign", "[-2.5, 0.0, 7.0]", "array([-1.,  0.,  1.])")
reciprocal = new_ufunc("reciprocal", "[2.0, 4.0]", "array([0.5 , 0.25])")
square = new_ufunc("square", "[3, -4]", "array([ 9, 16])")
sqrt = new_ufunc("sqrt", "[4, 9]", "array([2., 3.])")
cbrt = new_ufunc("cbrt", "[8.0, 27.0]", "array([2., 3.])")
exp = new_ufunc("exp", "[0, -tnp.inf]", "array([1., 0.])")
exp2 = new_ufunc("exp2", "[3, -1]", "array([8. , 0.5])")
expm1 = new_ufunc("expm1", "[0.0]", "array([0.])")
log = new_ufunc("log", "[1, tnp.e]", "array([0., 1.])")
log2 = new_ufunc("log2", "[8, 0.5]", "array([ 3., -1.])")
log10 = new_ufunc("log10", "[100, 0.1]", "array([ 2., -1.])")
log1p = new_ufunc("log1p", "[0.0]", "array([0.])")
sin = new_ufunc("sin", "[0.0]", "array([0.])")
cos = new_ufunc("cos", "[0.0]", "array([1.])")
tan = new_ufunc("tan", "[0.0]", "array([0.])")
arcsin = asin = new_ufunc("arcsin", "[0.0]", "array([0.])")
arccos = acos = new_ufunc("arccos", "[1.0]", "array([0.])")
arctan = atan = new_ufunc("arctan", "[0.0]", "array([0.])")
arctan2 = atan2 = new_ufunc("arctan2", "[0.0], [1.0]", "array([0.])")
sinh = new_ufunc("sinh", "[0.0]", "array([0.])")
cosh = new_ufunc("cosh", "[0.0]", "array([1.])")
tanh = new_ufunc("tanh", "[0.0, tnp.inf]", "array([0., 1.])")
arcsinh = asinh = new_ufunc("arcsinh", "[0.0]", "array([0.])")
arccosh = acosh = new_ufunc("arccosh", "[1.0]", "array([0.])")
arctanh = atanh = new_ufunc("arctanh", "[0.0]", "array([0.])")
hypot = new_ufunc("hypot", "[3.0], [4.0]", "array([5.])")
logaddexp = new_ufunc("logaddexp", "[0.0], -tnp.inf", "array([0.])")
logaddexp2 = new_ufunc("logaddexp2", "[1.0], [1.0]", "array([2.])")
floor = new_ufunc("floor", "[1.7, -1.7]", "array([ 1., -2.])")
ceil = new_ufunc("ceil", "[1.2, -1.2]", "array([ 2., -1.])")
trunc = new_ufunc("trunc", "[1.7, -1.7]", "array([ 1., -1.])")
rint = new_ufunc("rint", "[0.5, 1.5]", "array([0., 2.])")
maximum = new_ufunc("maximum", "[1, 5], 3", "array([3, 5])")
minimum = new_ufunc("minimum", "[1, 5], 3", "array([1, 3])")
fmax = new_ufunc("fmax", "[1.0, tnp.nan], 0.5", "array([1. , 0.5])")
fmin = new_ufunc("fmin", "[1.0, tnp.nan], 0.5", "array([0.5, 0.5])")
equal = _comparison("equal", "[1, 2], [1, 3]", "array([ True, False])")
not_equal = _comparison("not_equal", "[1, 2], [1, 3]", "array([False,  True])")
less = _comparison("less", "[1, 2], 2", "array([ True, False])")
less_equal = _comparison("less_equal", "[1, 2], 1", "array([ True, False])")
greater = _comparison("greater", "[1, 2], 1", "array([False,  True])")
greater_equal = _comparison("greater_equal", "[1, 2], 2", "array([False,  True])")
logical_and = new_ufunc("logical_and", "[1, 1, 0], [1, 0, 0]", "array([ True, False, False])")
logical_or = new_ufunc("logical_or", "[1, 1, 0], [1, 0, 0]", "array([ True,  True, False])")
logical_xor = new_ufunc("logical_xor", "[1, 1, 0], [1, 0, 0]", "array([False,  True, False])")
logical_not = new_ufunc("logical_not", "[0, 2]", "array([ True, False])")
bitwise_and = new_ufunc("bitwise_and", "[5, 6], 3", "array([1, 2])")
bitwise_or = new_ufunc("bitwise_or", "[5, 6], 3", "array([7, 7])")
bitwise_xor = new_ufunc("bitwise_xor", "[5, 6], 3", "array([6, 5])")
invert = bitwise_not = bitwise_invert = new_ufunc("invert", "[0, 5]", "array([-1, -6])")
left_shift = bitwise_left_shift = new_ufunc("left_shift", "[1, 3], 2", "array([ 4, 12])")
right_shift = bitwise_right_shift = new_ufunc("right_shift", "[4, -8], 2", "array([ 1, -2])")
bitwise_count = new_ufunc("bitwise_count", "[5, -7]", "array([2, 3], dtype=uint8)")
gcd = new_ufunc("gcd", "[12, -18], 8", "array([4, 2])")
lcm = new_ufunc("lcm", "[4, -6], 10", "array([20, 30])")
isfinite = new_ufunc("isfinite", "[1.0, tnp.inf, tnp.nan]", "array([ True, False, False])")
isinf = new_ufunc("isinf", "[1.0, -tnp.inf]", "array([False,  True])")
isnan = new_ufunc("isnan", "[1.0, tnp.nan]", "array([False,  True])")
signbit = new_ufunc("signbit", "[-1.0, 0.0]", "array([ True, False])")
copysign = new_ufunc("copysign", "[1.0, 2.0], -0.0", "array([-1., -2.])")
nextafter = new_ufunc("nextafter", "[0.0], 1.0", "array([5.e-324])")
ldexp = new_ufunc("ldexp", "[0.5, 3.0], [4, -1]", "array([8. , 1.5])")
deg2rad = radians = new_ufunc("deg2rad", "[0.0]", "array([0.])")
rad2deg = degrees = new_ufunc("rad2deg", "[0.0]", "array([0.])")
heaviside = new_ufunc("heaviside", "[-2.0, 0.0, 3.0], 0.5", "array([0. , 0.5, 1. ])")
conjugate = conj = new_ufunc("conjugate", "[1+2j]", "array([1.-2.j])")


@ufunc_function(np.fabs)
def fabs(x: Any, /) -> Any:
    """Absolute values as floating-point numbers.

    Shape: that of `x`.
    Dtype: floating point; 64-bit integers become float64.

    Raises:
        TypeError: for complex numbers.

    >>> tnp.fabs([-1, 2])
    array([1., 2.])
    """
    return absolute(_floating("fabs", x))


@ufunc_function(np.float_power)
def float_power(x: Any, y: Any, /) -> Any:
    """Powers in float64, or complex128 for complex operands.

    Shape: that to which the operands broadcast.
    Dtype: float64, or complex128 for complex operands.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> tnp.float_power([2, 4], -1)
    array([0.5 , 0.25])
    """
    complex_ = any(type_of(v).dtype.kind == "c" for v in (x, y))
    dtype = np.dtype(np.complex128 if complex_ else np.float64)
    return apply(get("float_power"), as_array(x, dtype), as_array(y, dtype))


_OPERATOR_POWERS = {(int, 2): square, (int, -1): reciprocal, (float, 0.5): sqrt}
"""By class and value of a Python exponent, the function that ndarray's `**` applies instead."""


def raised(x: Any, y: Any) -> Any:
    """`x ** y` of an array. For some exponents, ndarray's operator does not compute `power`: the
    signs of complex zeros differ, and the root of minus infinity in float16. For NumPy's scalars
    it does, and for dtypes that NumPy does not have itself. An int of Python's to a negative power
    is a float, where NumPy's integers have no such power.
    """
    if type(y) is int and y < 0 and x.weak and x.dtype.kind in "iu":
        return power(multiply(x, 1.0), y)
    if type(y) in (int, float) and x.ndim and x.dtype.kind in "fc":
        function = _OPERATOR_POWERS.get((type(y), y))
        if function is not None:
            return function(x)
    elif type(y) is int and y == 2 and x.ndim and x.dtype.kind == "b":
        return square(x)  # int8, where the power is int64
    return power(x, y)


def _floating(name: str, x: Any) -> Any:
    """An array cast to the floating-point dtype that the ufunc of that name computes in."""
    x, ufunc = as_array(x), getattr(np, name)
    return as_array(x, ufunc.resolve_dtypes((x.dtype,) + (None,) * ufunc.nout)[0])


@ufunc_function(np.divmod)
def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """Floor quotients and remainders.

    Shape: two arrays of the shape to which the operands broadcast.
    Dtype: the common one of the operands.

    Raises:
        TypeError: for complex numbers.
        ValueError: the shapes do not broadcast.

    >>> tnp.divmod([7, -7], 3)
    (array([ 2, -3]), array([1, 2]))
    """
    return floor_divide(x, y), remainder(x, y)


@ufunc_function(np.modf)
def modf(x: Any, /) -> tuple[Any, Any]:
    """Fractional and integral parts, both with the sign of `x`.

    Shape: two arrays of the shape of `x`.
    Dtype: floating point; 64-bit integers become float64.

    Raises:
        TypeError: for complex numbers.

    >>> tnp.modf([1.5, -2.25])
    (array([ 0.5 , -0.25]), array([ 1., -2.]))
    """
    x = _floating("modf", x)
    whole = trunc(x)
    fraction = apply(get("where"), isinf(x), x.dtype.type(0), subtract(x, whole))
    return copysign(fraction, x), whole


@ufunc_function(np.frexp)
def frexp(x: Any, /) -> tuple[Any, Any]:
    """Mantissas of magnitude 0.5 to 1, and exponents: `x` is `mantissa * 2**exponent`.

    Shape: two arrays of the shape of `x`.
    Dtype: floating point, 64-bit integers become float64; exponents are int32.

    Raises:
        TypeError: for complex numbers.

    >>> tnp.frexp([8.0, -0.75])
    (array([ 0.5 , -0.75]), array([4, 0], dtype=int32))
    """
    x = _floating("frexp", x)
    return apply(get("mantissa"), x), apply(get("exponent"), x)


@ufunc_function(np.spacing)
def spacing(x: Any, /) -> Any:
    """Distances to the next number of larger magnitude, with the sign of `x`; positive of zeros.

    In float16 they are distances to the next larger number.

    Shape: that of `x`.
    Dtype: floating point; 64-bit integers become float64.

    Raises:
        TypeError: for complex numbers.

    >>> tnp.spacing([1.0])
    array([2.22044605e-16])
    """
    x = _floating("spacing", x)
    outwards = x.dtype.type(np.inf)
    if x.dtype != np.float16:
        is_negative = less(x, x.dtype.type(0))  # which -0.0 is not
        outwards = apply(get("where"), is_negative, -outwards, outwards)
    gap = subtract(nextafter(x, outwards), x)
    return apply(get("where"), isinf(x), x.dtype.type(np.nan), gap)
