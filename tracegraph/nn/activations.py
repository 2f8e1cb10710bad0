"""Functions of elements, between the layers of networks.

Each part of a function is computed of operands within its range: a branch that is not chosen would
else add 0 times infinity to a derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph import special
from tracegraph.nn.operands import between, chosen, of_floats, real
from tracegraph.numpy.dispatching.dispatch import as_array

__all__ = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
    "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign",
    "softplus", "squareplus", "swish", "tanh",
]  # fmt: skip

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
"""Klambauer, Unterthiner, Mayr and Hochreiter, Self-Normalizing Neural Networks, 2017."""

_TAILS = {"gelu": 40.0, "tanh": 25.0, "exp": 800.0}
"""From where on a gate is 0 on the left and 1 on the right, in float64 too."""


def identity(x: Any) -> Any:
    """The elements as they are.

    >>> tracegraph.nn.identity([1, 2])
    array([1, 2])
    """
    return real("identity", x)


def relu(x: Any) -> Any:
    """The larger of x and 0; the slope at 0 is 0.

    Shape: that of `x`.
    Dtype: that of `x`, which may be an integer one.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.relu([-1.0, 0.5])
    array([0. , 0.5])
    """
    x = real("relu", x)
    return chosen(x <= 0, 0, x)


def relu6(x: Any) -> Any:
    """`x` between 0 and 6, else the nearer of these; the slopes at 0 and 6 are 0.

    Shape: that of `x`.
    Dtype: that of `x`, which may be an integer one.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.relu6([-1.0, 0.5, 8.0])
    array([0. , 0.5, 6. ])
    """
    x = real("relu6", x)
    return chosen(x <= 0, 0, chosen(x >= 6, 6, x))


@of_floats
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """`x` from 0, and `negative_slope` times x below; the slope at 0 is 1.

    Shape: that to which both broadcast.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.leaky_relu([-1.0, 0.5])
    array([-0.01,  0.5 ])
    """
    return tnp.where(x >= 0, x, negative_slope * chosen(x >= 0, 0, x))


def hard_tanh(x: Any) -> Any:
    """`x` between -1 and 1, else the nearer of these; the slopes at -1 and 1 are 1.

    Shape: that of `x`.
    Dtype: that of `x`, which may be an integer one.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.hard_tanh([-3.0, 0.5, 2.0])
    array([-1. ,  0.5,  1. ])
    """
    return between(real("hard_tanh", x), -1, 1)


@of_floats
def hard_sigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``; the slopes at -3 and 3 are 0.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.hard_sigmoid([-4.0, 0.0, 1.5])
    array([0.  , 0.5 , 0.75])
    """
    return relu6(x + 3) / 6


@of_floats
def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``, also called hard_swish; the slopes at -3 and 3 are 0 and 1.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.hard_silu([-4.0, 1.5, 9.0])
    array([-0.   ,  1.125,  9.   ])
    """
    inside = chosen(x <= -3, -3, chosen(x >= 3, 0, x))
    return chosen(x >= 3, x, inside * (inside + 3) / 6)


def _gated(x: Any, gate: Callable[[Any], Any], tail: str) -> Any:
    """`x` times a gate, which is 0 and 1 beyond its tails."""
    limit = _TAILS[tail]
    inside = between(x, -limit, limit)
    return chosen(x > limit, x, inside * gate(inside))


@of_floats
def silu(x: Any) -> Any:
    """``x * sigmoid(x)``, also called swish.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.silu([-1.0, 0.0, 1000.0])
    array([-2.68941421e-01,  0.00000000e+00,  1.00000000e+03])
    """
    return _gated(x, special.expit, "exp")


@of_floats
def mish(x: Any) -> Any:
    """``x * tanh(softplus(x))``.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.mish([0.0, 1.0])
    array([0.        , 0.86509839])
    """
    return _gated(x, lambda x: tnp.tanh(tnp.logaddexp(x, 0.0)), "exp")


def _tanh_gate(x: Any) -> Any:
    """(1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, without cancellation on the left."""
    return special.expit(2 * np.sqrt(2 / np.pi).item() * (x + 0.044715 * (x * x * x)))


@of_floats
def gelu(x: Any, approximate: bool = True) -> Any:
    """`x` times the distribution function of the normal distribution, or its approximation by tanh.

    Args:
        x: real numbers.
        approximate: False for the distribution function; else, ``x / 2 * (1 + tanh(sqrt(2 / pi) *
            (x + 0.044715 * x**3)))`` (Hendrycks and Gimpel, 2016), which differs from it by up to
            5e-4.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.gelu([-1.0, 1.0])
    array([-0.15880801,  0.84119199])
    >>> tracegraph.nn.gelu([-1.0, 1.0], approximate=False)
    array([-0.15865525,  0.84134475])
    """
    return _gated(x, _tanh_gate, "tanh") if approximate else _gated(x, special.ndtr, "gelu")


@of_floats
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``: `tracegraph.special.expit`.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.sigmoid([0.0, 1000.0])
    array([0.5, 1. ])
    """
    return special.expit(x)


@of_floats
def log_sigmoid(x: Any) -> Any:
    """The logarithm of sigmoid: `tracegraph.special.log_expit`.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.log_sigmoid([0.0, -1000.0])
    array([-6.93147181e-01, -1.00000000e+03])
    """
    return special.log_expit(x)


@of_floats
def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.softplus([0.0, 1000.0])
    array([6.93147181e-01, 1.00000000e+03])
    """
    return tnp.logaddexp(x, 0.0)


@of_floats
def squareplus(x: Any, b: Any = 4.0) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``, without cancellation for negative x.

    Args:
        x: real numbers.
        b: positive numbers.

    Shape: that to which both broadcast.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.squareplus([0.0, -1e8])
    array([1.e+00, 1.e-08])
    """
    b = as_array(b, x.dtype) if isinstance(b, (int, float)) else as_array(b)
    infinite = tnp.isinf(x)
    half = chosen(infinite, 0, x / 2)
    larger = chosen(half > 0, half, -half) + tnp.hypot(half, tnp.sqrt(b) / 2)
    return tnp.where(infinite, relu(x), tnp.where(half > 0, larger, b / 4 / larger))


@of_floats
def soft_sign(x: Any) -> Any:
    """``x / (1 + abs(x))``.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.soft_sign([-1.0, 0.0, np.inf])
    array([-0.5,  0. ,  1. ])
    """
    infinite = tnp.abs(x) == np.inf
    finite = chosen(infinite, 0, x)
    return tnp.where(infinite, tnp.sign(x), finite / (1 + tnp.abs(finite)))


@of_floats
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """`x` above 0, else ``alpha * (exp(x) - 1)``; the slope at 0 is `alpha`.

    Shape: that to which both broadcast.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.elu([-1.0, 0.5])
    array([-0.63212056,  0.5       ])
    """
    return tnp.where(x > 0, x, alpha * tnp.expm1(chosen(x > 0, 0, x)))


@of_floats
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """`x` above 0, else ``alpha * (exp(x / alpha) - 1)``; the slope at 0 is 1.

    Shape: that to which both broadcast.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.celu([-1.0, 0.5], 2.0)
    array([-0.78693868,  0.5       ])
    """
    return tnp.where(x > 0, x, alpha * tnp.expm1(chosen(x > 0, 0, x) / alpha))


@of_floats
def selu(x: Any) -> Any:
    """1.0507… times ``elu(x, 1.6732…)``, which keeps mean 0 and variance 1 of layers.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.selu([-1.0, 0.5])
    array([-1.11133074,  0.52535049])
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@of_floats
def tanh(x: Any) -> Any:
    """The hyperbolic tangent, as `numpy.tanh`.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        TypeError: `x` is complex.

    >>> tracegraph.nn.tanh([0.0, 1.0])
    array([0.        , 0.76159416])
    """
    return tnp.tanh(x)


swish = silu
hard_swish = hard_silu
