"""Linear functions, pullbacks, rules at high orders and Python numbers on the device."""

from __future__ import annotations

import numpy as np

import tracegraph
from tests.comparisons.linear_functions import (  # noqa: F401 - run here
    PROGRAMS,
    X,
    test_programs_give_what_they_give_eagerly,
    unbounded,
)


def test_linear_functions_stay_on_the_device() -> None:
    x = tracegraph.asarray(X, device="cuda")
    y, derivative = tracegraph.jit(lambda x: tracegraph.linearize(unbounded, x))(x)
    _, pullback = tracegraph.jit(lambda x: tracegraph.vjp(np.sin, x))(x)
    pushed = tracegraph.jit(lambda derivative, t: derivative(t))(derivative, x)
    pulled = tracegraph.jit(lambda pullback, ct: pullback(ct))(pullback, x)
    wanted = tracegraph.jvp(unbounded, (X,), (X,))
    for found, exact in ((y, wanted[0]), (pushed, wanted[1]), (derivative(x), wanted[1])):
        assert found.device != "host"
        np.testing.assert_allclose(np.asarray(found), exact, 1e-11)
    for found in (pulled[0], pullback(x)[0]):
        np.testing.assert_allclose(np.asarray(found), np.cos(X) * X, 1e-13)
