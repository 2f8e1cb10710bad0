"""Special functions of elements: one function for each record.

Their dtypes are those of NumPy's functions of real numbers: float16 stays, integers become floating
point, 64-bit ones float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array

__all__ = [
    "betainc", "betaln", "digamma", "ellipe", "ellipk", "entr", "erf", "erfc", "erfcinv", "erfcx",
    "erfinv", "exp1", "expi", "expit", "gamma", "gammainc", "gammaincc", "gammaln", "i0", "i0e",
    "i1", "i1e", "j0", "j1", "kl_div", "log_expit", "log_ndtr", "logit", "ndtr", "ndtri",
    "rel_entr", "xlog1py", "xlogy", "y0", "y1", "zeta",
]  # fmt: skip

Function = Callable[..., Any]


def _operand(x: Any) -> Any:
    return as_array(x) if isinstance(x, (list, tuple)) else x


def _documented(function: Function, name: str, shape: str, errors: str, example: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{get(name).doc}\n\n    Shape: {shape}\n"
        "    Dtype: floating point; integers become floating point, 64-bit ones float64.\n\n"
        f"    Raises:\n        TypeError: for complex numbers.\n{errors}\n"
        f"    >>> tracegraph.special.{name}{example}\n    "
    )
    return function


def _of_one(name: str, x: str, result: str) -> Function:
    op = get(name)

    def function(x: Any, /) -> Any:
        return apply(op, _operand(x))

    return _documented(function, name, "that of `x`.", "", f"({x})\n    {result}")


_BROADCAST = "        ValueError: the operands do not broadcast.\n"
_INCOMPLETE = _BROADCAST + "        DerivativeError: one in an operand but the last is needed.\n"


def _of_two(name: str, operands: str, result: str, errors: str = _BROADCAST) -> Function:
    op = get(name)

    def function(x: Any, y: Any, /) -> Any:
        return apply(op, _operand(x), _operand(y))

    shape = "that to which the operands broadcast."
    return _documented(function, name, shape, errors, f"({operands})\n    {result}")


def _of_three(name: str, operands: str, result: str) -> Function:
    op = get(name)

    def function(x: Any, y: Any, z: Any, /) -> Any:
        return apply(op, _operand(x), _operand(y), _operand(z))

    shape = "that to which the operands broadcast."
    return _documented(function, name, shape, _INCOMPLETE, f"({operands})\n    {result}")


erf = _of_one("erf", "[0.0, 1.0]", "array([0.        , 0.84270079])")
erfc = _of_one("erfc", "[0.0, 10.0]", "array([1.00000000e+00, 2.08848758e-45])")
erfcx = _of_one("erfcx", "[0.0, 1e9]", "array([1.00000000e+00, 5.64189584e-10])")
erfinv = _of_one("erfinv", "[0.0, 0.5]", "array([0.        , 0.47693628])")
erfcinv = _of_one("erfcinv", "[0.5, 1e-30]", "array([0.47693628, 8.14861622])")
ndtr = _of_one("ndtr", "[0.0, -10.0]", "array([5.00000000e-01, 7.61985302e-24])")
ndtri = _of_one("ndtri", "[0.5, 0.975]", "array([0.        , 1.95996398])")
log_ndtr = _of_one("log_ndtr", "[0.0, -100.0]", "array([-6.93147181e-01, -5.00552421e+03])")

gammaln = _of_one("gammaln", "[1.0, 100.0]", "array([  0.        , 359.13420537])")
gamma = _of_one("gamma", "[5.0, 0.5]", "array([24.        ,  1.77245385])")
digamma = _of_one("digamma", "[1.0, 10.0]", "array([-0.57721566,  2.25175259])")
betaln = _of_two("betaln", "100.0, [1.0, 2.0]", "array([-4.60517019, -9.2202907 ])")

i0 = _of_one("i0", "[0.0, 1.0]", "array([1.        , 1.26606588])")
i0e = _of_one("i0e", "[0.0, 1e4]", "array([1.        , 0.00398947])")
i1 = _of_one("i1", "[0.0, 1.0]", "array([0.       , 0.5651591])")
i1e = _of_one("i1e", "[0.0, 1e4]", "array([0.        , 0.00398927])")

expit = _of_one("expit", "[0.0, 2.0]", "array([0.5       , 0.88079708])")
logit = _of_one("logit", "[0.5, 0.9]", "array([0.        , 2.19722458])")
log_expit = _of_one("log_expit", "[0.0, -1000.0]", "array([-6.93147181e-01, -1.00000000e+03])")
xlogy = _of_two("xlogy", "[0.0, 2.0], [0.0, 3.0]", "array([0.        , 2.19722458])")
xlog1py = _of_two("xlog1py", "[0.0, 2.0], [-1.0, 3.0]", "array([0.        , 2.77258872])")
entr = _of_one("entr", "[0.0, 0.5]", "array([0.        , 0.34657359])")
rel_entr = _of_two("rel_entr", "[0.0, 0.5], 0.25", "array([0.        , 0.34657359])")
kl_div = _of_two("kl_div", "[0.0, 0.5], 0.25", "array([0.25      , 0.09657359])")

j0 = _of_one("j0", "[0.0, 1.0]", "array([1.        , 0.76519769])")
j1 = _of_one("j1", "[0.0, 1.0]", "array([0.        , 0.44005059])")
y0 = _of_one("y0", "[1.0, 100.0]", "array([ 0.08825696, -0.07724431])")
y1 = _of_one("y1", "[1.0, 100.0]", "array([-0.78121282, -0.02037231])")

exp1 = _of_one("exp1", "[1.0, 10.0]", "array([2.19383934e-01, 4.15696893e-06])")
expi = _of_one("expi", "[1.0, -1.0]", "array([ 1.89511782, -0.21938393])")

gammainc = _of_two("gammainc", "2.0, [1.0, 9.0]", "array([0.26424112, 0.9987659 ])", _INCOMPLETE)
gammaincc = _of_two(
    "gammaincc", "2.0, [1.0, 90.0]", "array([7.35758882e-01, 7.45655149e-38])", _INCOMPLETE
)
betainc = _of_three("betainc", "2.0, 3.0, [0.25, 0.5]", "array([0.26171875, 0.6875    ])")

ellipk = _of_one("ellipk", "[0.0, 0.5]", "array([1.57079633, 1.85407468])")
ellipe = _of_one("ellipe", "[0.0, 0.5]", "array([1.57079633, 1.35064388])")


def zeta(x: Any, q: Any = 1.0) -> Any:
    """The sum of (q + k)**-x over k from 0; NaN for x below 1.

    Without `q`, the Riemann zeta function, of x from 1. For q below 0, x must be an integer; it is
    infinite where q is 0, -1, -2, …, and NaN elsewhere.

    Shape: that to which the operands broadcast.
    Dtype: floating point; integers become floating point, 64-bit ones float64.

    Raises:
        TypeError: for complex numbers.
        ValueError: the operands do not broadcast.
        DerivativeError: one in `x` is needed.

    >>> tracegraph.special.zeta([2.0, 4.0])
    array([1.64493407, 1.08232323])
    """
    return apply(get("zeta"), _operand(x), _operand(q))
