"""Checks of derivatives: against differences, forwards against backwards, at once and jitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from tracegraph import grad, jvp

Function = Callable[[Any], Any]


def check_gradient(function: Function, x: Any, *, tolerance: float = 1e-7) -> Any:
    """The gradient of a scalar function of one real array, after checks in both modes.

    `tolerance` is for differences; the two modes, and the jitted run, agree to 1e-10.
    """
    x = np.asarray(x, float)
    direction = np.random.default_rng(7).uniform(-1, 1, x.shape)
    gradient = grad(function)(x)
    assert gradient.shape == x.shape
    expected = difference(function, x, direction)
    np.testing.assert_allclose(np.sum(gradient * direction), expected, tolerance, tolerance)
    value, forward = jvp(function, (x,), (direction,))
    np.testing.assert_allclose(forward, np.sum(gradient * direction), 1e-10, 1e-10)
    np.testing.assert_allclose(value, plain(function, x), 1e-12, 1e-12)
    jitted = tracegraph.jit(grad(function), device="host")(x)
    np.testing.assert_allclose(np.asarray(jitted), gradient, 1e-10, 1e-10)
    return gradient


def check_second(function: Function, x: Any, *, tolerance: float = 1e-6) -> None:
    """Hessian times vector, forwards over backwards and backwards twice, against differences."""
    x = np.asarray(x, float)
    direction = np.random.default_rng(8).uniform(-1, 1, x.shape)

    def slope(x: Any) -> Any:
        return (grad(function)(x) * direction).sum()

    _, over = jvp(grad(function), (x,), (direction,))
    twice = grad(slope)(x)
    expected = difference(grad(function), x, direction)
    np.testing.assert_allclose(over, expected, tolerance, tolerance)
    np.testing.assert_allclose(twice, over, 1e-9, 1e-9)


def difference(function: Function, x: Any, direction: Any) -> Any:
    """The derivative in a direction, by differences of fourth order."""
    h = 1e-3

    def at(step: float) -> Any:
        return plain(function, x + step * direction)

    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def plain(function: Function, x: Any) -> Any:
    """The value without a derivative, as a NumPy array; `x.at` needs an Array."""
    return np.asarray(tracegraph.jit(function, device="host")(x))
