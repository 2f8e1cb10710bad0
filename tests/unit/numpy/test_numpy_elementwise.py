"""Elementwise functions of tracegraph.numpy, traced, against NumPy, on all dtypes."""

from __future__ import annotations

import operator
import warnings
from math import erf
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.numpy_agreement import assert_expression_equals_numpy, expressions, functions_in
from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import errors
from tracegraph.numpy import elementwise, ufuncs

UNARY = [
    *("negative", "positive", "absolute", "sign", "reciprocal", "square", "sqrt", "cbrt", "exp"),
    *("exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos"),
    *("arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil"),
    *("trunc", "rint", "logical_not", "invert", "isfinite", "isinf", "isnan", "signbit"),
    *("deg2rad", "rad2deg", "conjugate", "fabs", "modf", "real", "imag", "angle", "nan_to_num"),
    *("round", "fix", "sinc", "bitwise_count", "frexp", "spacing"),
]
BINARY = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power"),
    *("arctan2", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and"),
    *("logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift"),
    *("right_shift", "copysign", "nextafter", "heaviside", "float_power", "divmod", "isclose"),
    *("gcd", "lcm", "ldexp"),
]
ALIASES = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "around": "round",
    "bitwise_invert": "invert",
    "bitwise_not": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "radians": "deg2rad",
    "degrees": "rad2deg",
    "true_divide": "divide",
    "mod": "remainder",
    "pow": "power",
}
COMPOSED = expressions("""
    xp.where(x > y, x, y); xp.where(x > 2, x, 1.5); xp.where(x, 1, 0); xp.clip(x, 1, 3);
    xp.clip(x, None, 2); xp.clip(x, min=1); xp.clip(x, a_min=1, a_max=3); xp.clip(x, 1, a_max=3);
    x.clip(1, max=y); xp.around(x / 3, 2); xp.round(x / 3, -1); (x / 3).round(1); xp.round(x, -3);
    xp.astype(x, np.int32); x.astype(bool); x.astype(np.complex64).real;
    xp.isclose(x / 0, y / 0, equal_nan=True); xp.nan_to_num(x / 0, nan=1.0, posinf=2.0);
    xp.angle(x + 1j * y, deg=True); xp.add(x, y, dtype=np.float64); xp.sin(x, dtype=np.float64);
    xp.add.outer(x[0], y[0]) if xp is np else np.add.outer(x[0], y[0]); xp.add(x, [1, 2, 3]);
    x.real + x.imag; xp.imag(x / 0); xp.isclose(x / 10, 0.3, rtol=0, atol=0)
""")

VALUES = np.array([[0, 1, -2], [3, 0.5, 7]])
DTYPES = [
    *("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"),
    *("complex128",),
]


def arguments(dtype: str) -> dict[str, Any]:
    with np.errstate(invalid="ignore"):
        x = VALUES.astype(np.float64)
        x = np.abs(x) if dtype.startswith("u") else x
        return {"x": x.astype(dtype), "y": (x[:1] + 1).astype(dtype)}


def accepts(expression: str, values: dict[str, Any]) -> bool:
    try:
        with np.errstate(all="ignore"):
            eval(expression, {"xp": np, **values})
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*fix.* is deprecated:DeprecationWarning")  # by NumPy 2.5
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "expression", [f"xp.{n}(x)" for n in UNARY] + [f"xp.{n}(x, y)" for n in BINARY]
)
def test_functions_equal_numpys_on_every_dtype_it_takes(expression: str, dtype: str) -> None:
    values = arguments(dtype)
    if "power" in expression:
        values = {k: abs(v) for k, v in values.items()}  # NumPy refuses negative powers of integers
    if "shift" in expression:
        values["y"] = np.clip(values["y"], 0, 3)
    if accepts(expression, values):
        assert_expression_equals_numpy(expression, values)
    else:
        with pytest.raises((TypeError, ValueError)):
            trace(
                lambda x, y: eval(expression, {"xp": tnp, "x": x, "y": y}), values["x"], values["y"]
            )


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
@pytest.mark.parametrize("expression", COMPOSED)
def test_composed_functions_equal_numpys(expression: str, dtype: str) -> None:
    assert_expression_equals_numpy(expression, arguments(dtype))


@pytest.mark.parametrize("y", [2, 2.5, True, np.float32(2), np.int64(3), 1j])
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex64"])
@pytest.mark.parametrize(
    "expression", ["x + y", "y - x", "x * y", "y / x", "x == y", "xp.where(x, x, y)"]
)
def test_scalars_of_every_kind_promote_as_numpy_has_it(expression: str, dtype: str, y: Any) -> None:
    assert_expression_equals_numpy(expression, {"x": np.array([1, 2, 3], dtype), "y": y})


@pytest.mark.parametrize("n", [-1, 5, 128, 256, 2**31, 2**63 - 1, 2**63])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_python_ints_that_do_not_fit_the_dtype_compare_by_value(
    sign: str, dtype: str, n: int
) -> None:
    x = np.array([5, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    assert_expression_equals_numpy(f"x {sign} n", {"x": x, "n": n})
    assert_expression_equals_numpy(f"n {sign} x", {"x": x, "n": n})
    assert_expression_equals_numpy(f"x {sign} {n}", {"x": x})


def test_functions_without_counterpart_in_numpy() -> None:
    x = np.linspace(-2, 2, 5)
    got = assert_traced_equals_eager(elementwise.erf, x)
    np.testing.assert_allclose(got, [erf(v) for v in x], rtol=1e-15)
    assert_traced_equals_eager(elementwise.complex_, x, x)


def test_aliases_are_the_same_function() -> None:
    for alias, name in ALIASES.items():
        assert getattr(tnp, alias) is getattr(tnp, name)


def test_every_elementwise_function_stands_in_a_table() -> None:
    here = {
        n
        for n in tnp.__all__
        if getattr(getattr(tnp, n), "__module__", "") in (elementwise.__name__, ufuncs.__name__)
    }
    tested = {*UNARY, *BINARY, *ALIASES, *functions_in(COMPOSED), "erf", "complex_", "round_"}
    assert here <= tested


def test_out_writes_to_an_array_made_in_the_function() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        np.add(x, 1, out=y)
        np.multiply(y, 2, out=y, where=x > 1)
        return y

    assert_traced_equals_eager(f, np.arange(4.0))


def test_where_without_out_is_refused() -> None:
    with pytest.raises(errors.UnsupportedByTracerError, match="undefined"):
        trace(lambda x: np.add(x, 1, where=x > 1), np.arange(4.0))


def test_out_must_be_a_traced_array() -> None:
    with pytest.raises(errors.UnsupportedByTracerError, match="zeros_like"):
        trace(lambda x: np.add(x, 1, out=np.zeros(4)), np.arange(4.0))


ENDS = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, np.inf, -np.inf, np.nan]
POWERS = {
    "operator": lambda x, p: x**p,
    "in place": lambda x, p: operator.ipow(x.copy(), p),
    "function": np.power,
    "float_power": np.float_power,
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.0, 1j, 2 + 0j, np.int8(2)])
@pytest.mark.parametrize("way", POWERS)
def test_powers_have_numpys_signs_and_infinities(way: str, exponent: Any, dtype: str) -> None:
    """The operator and the functions differ at zeros and infinities; each is what it is eagerly."""
    complex_ = dtype.startswith("c")
    x = np.array([complex(a, b) for a in ENDS for b in ENDS] if complex_ else ENDS, dtype)
    function = POWERS[way]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = function(x, exponent)
        except TypeError:  # a complex exponent of a real array, in place
            return
        found = np.asarray(tracegraph.jit(lambda x: function(x, exponent), device="host")(x))
    assert found.dtype == expected.dtype
    for part in (np.real, np.imag) if complex_ else (np.real,):
        np.testing.assert_array_equal(part(found), part(expected))
        numbers = ~np.isnan(part(expected))
        got, wanted = np.signbit(part(found)), np.signbit(part(expected))
        np.testing.assert_array_equal(got[numbers], wanted[numbers])


@pytest.mark.parametrize("limits", [{"min": 1, "a_min": 2}, {"max": 1, "a_max": 2}])
def test_a_limit_of_clip_is_given_once(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="got a limit twice"):
        tnp.clip(tracegraph.asarray([1, 2]), **limits)
