"""Elementwise functions: NumPy's ufuncs and their aliases, and functions composed of them.

All take arrays that broadcast together and promote dtypes as NumPy does. `out` must be an array
made in the function that is traced, and `where` goes with `out`, whose other elements stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.errors import UnsupportedByTracerError
from tracegraph.numpy.dispatch import CAST, as_array, copied, is_ours, numpy_function
from tracegraph.op import get
from tracegraph.operators import ArrayOperators
from tracegraph.tracer import Tracer
from tracegraph.types import promotion_token, type_of

Function = Callable[..., Any]


def _ufunc(name: str) -> Function:
    """The function of an op that is a NumPy ufunc."""
    op, ufunc = get(name), getattr(np, name)

    def function(*args: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
        if not is_ours((*args, out, where)):
            chosen = {} if dtype is None else {"dtype": dtype}
            return ufunc(*args, out=out, where=where, **chosen)
        operands = [as_array(a) if isinstance(a, (list, tuple)) else a for a in args]
        if dtype is not None:
            operands = _in_loop_dtypes(ufunc, operands, dtype)
        return _written(name, op(*operands), out, where)

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


def _written(name: str, result: Any, out: Any, where: Any) -> Any:
    """The result of a ufunc, in `out` and under a mask if these are given."""
    target = out[0] if isinstance(out, tuple) else out
    if target is None:
        if where is not True:
            raise UnsupportedByTracerError(
                f"where= of numpy.{name} without out=",
                "its other elements would be undefined; use numpy.where(mask, result, other)",
            )
        return result
    if not isinstance(target, Tracer):
        raise UnsupportedByTracerError(
            f"out= of numpy.{name} with {type(target).__module__}.{type(target).__name__}",
            "make the output in the traced function with tracegraph.numpy.zeros or "
            "numpy.zeros_like",
        )
    target.assign(result if where is True else get("where")(where, result, target), name)
    return target


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
equal = _ufunc("equal")
not_equal = _ufunc("not_equal")
less = _ufunc("less")
less_equal = _ufunc("less_equal")
greater = _ufunc("greater")
greater_equal = _ufunc("greater_equal")
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
    return _written("fabs", absolute(_floating("fabs", x)), out, where)


@numpy_function
def float_power(x: Any, y: Any, /, out: Any = None, *, where: Any = True) -> Any:
    """Powers in float64, or complex128 for complex operands."""
    complex_ = any(type_of(v).dtype.kind == "c" for v in (x, y))
    dtype = np.dtype(np.complex128 if complex_ else np.float64)
    return _written("float_power", power(as_array(x, dtype), as_array(y, dtype)), out, where)


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
    fraction = get("where")(isinf(x), x.dtype.type(0), subtract(x, whole))
    return copysign(fraction, x), whole


_ERF, _COMPLEX = get("erf"), get("complex")


def erf(x: Any) -> Any:
    """The error function, in the floating-point dtype of `x` (float64 for integers)."""
    return _ERF(x)


def complex_(re: Any, im: Any) -> Any:
    """Complex numbers of real and imaginary parts."""
    return _COMPLEX(re, im)


def astype(x: Any, dtype: DTypeLike, /, *, copy: bool = True) -> Any:
    """`x` in another dtype, converted as NumPy does with casting="unsafe".

    With `copy=False`, `x` itself if it has that dtype.
    """
    target = np.dtype(dtype)
    if isinstance(x, ArrayOperators):
        if x.dtype != target or getattr(x, "weak", False):
            return CAST(x, dtype=target)
        return copied(x) if copy else x
    return as_array(np.array(x) if copy else x, target)


@numpy_function
def real(val: Any) -> Any:
    """The real parts."""
    val = as_array(val)
    return get("real")(val) if val.dtype.kind == "c" else val


@numpy_function
def imag(val: Any) -> Any:
    """The imaginary parts: zeros for real arrays."""
    val = as_array(val)
    return get("imag")(val) if val.dtype.kind == "c" else multiply(val, val.dtype.type(0))


@numpy_function
def angle(z: Any, deg: bool = False) -> Any:
    """The angles of complex numbers, in radians or degrees."""
    z = as_array(z)
    radians_ = arctan2(imag(z), real(z)) if z.dtype.kind == "c" else arctan2(0, z)
    return rad2deg(radians_) if deg else radians_


@numpy_function
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of `x` where the condition is true, else of `y`, all broadcast together.

    Raises:
        ShapeDependentError: called with the condition only.
    """
    if x is None and y is None:
        from tracegraph.errors import ShapeDependentError

        raise ShapeDependentError(condition, "numpy.where(condition) with one argument")
    condition = as_array(condition)
    if condition.dtype != np.bool_:
        condition = not_equal(condition, condition.dtype.type(0))
    x, y = (as_array(v) if isinstance(v, (list, tuple)) else v for v in (x, y))
    return get("where")(condition, x, y)


@numpy_function
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **bounds: Any) -> Any:
    """Elements limited to `a_min` to `a_max`, also spelled `min=` and `max=`; None is no limit."""
    low, high = bounds.pop("min", a_min), bounds.pop("max", a_max)
    if bounds:
        raise UnsupportedByTracerError(f"numpy.clip with {', '.join(bounds)}")
    a = as_array(a)
    if low is not None and high is not None:
        result = get("clip")(a, low, high)
    elif low is not None:
        result = maximum(a, low)
    else:
        result = copied(a) if high is None else minimum(a, high)
    return _written("clip", result, out, True)


@numpy_function
def around(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Elements rounded to a number of decimals, halves to even."""
    a = as_array(a)
    return _written("around", _rounded(a, decimals), out, True)


round = round_ = around


def _rounded(a: Any, decimals: int) -> Any:
    if a.dtype.kind == "c":
        return _COMPLEX(_rounded(get("real")(a), decimals), _rounded(get("imag")(a), decimals))
    if a.dtype.kind in "iu":
        if decimals >= 0:
            return copied(a)
        ten = a.dtype.type(10**-decimals)
        return multiply(astype(rint(divide(a, ten)), a.dtype), ten)
    if decimals == 0:
        return rint(a)
    ten = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals > 0:
        return divide(rint(multiply(a, ten)), ten)
    return multiply(rint(divide(a, ten)), ten)


@numpy_function
def fix(x: Any, out: Any = None) -> Any:
    """Elements rounded towards zero."""
    return _written("fix", trunc(x), out, True)


@numpy_function
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether `|a - b| <= atol + rtol * |b|`; infinities are close to themselves."""
    a, b = as_array(a), as_array(b)
    if b.dtype.kind != "c" and b.dtype.kind != "f":
        b = as_array(b, np.result_type(b.dtype, 1.0))
    near = less_equal(absolute(subtract(a, b)), add(atol, multiply(rtol, absolute(b))))
    close = logical_or(logical_and(near, isfinite(b)), equal(a, b))
    if equal_nan:
        close = logical_or(close, logical_and(isnan(a), isnan(b)))
    return close


@numpy_function
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """NaNs replaced by `nan`, infinities by `posinf` and `neginf` or the largest finite numbers."""
    x = as_array(x)
    if x.dtype.kind == "c":
        parts = (get("real")(x), get("imag")(x))
        return _COMPLEX(*(nan_to_num(p, nan=nan, posinf=posinf, neginf=neginf) for p in parts))
    if x.dtype.kind in "biu":
        return copied(x)
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else _bfloat16_limits()
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    of = x.dtype.type
    choose = get("where")
    result = choose(isnan(x), of(nan), x)
    result = choose(equal(result, of(np.inf)), of(high), result)
    return choose(equal(result, of(-np.inf)), of(low), result)


def _bfloat16_limits() -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(ml_dtypes.bfloat16)


@numpy_function
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), and 1 at 0."""
    x = multiply(np.pi, as_array(x))
    tiny = np.finfo(x.dtype).eps if x.dtype.kind == "f" else 1e-20
    y = get("where")(equal(x, 0), x.dtype.type(tiny), x)
    return divide(sin(y), y)
