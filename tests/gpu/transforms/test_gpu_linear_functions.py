"""Linear functions, pullbacks, rules at high orders and Python numbers on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.programs.linear_functions import LINEAR_PROGRAMS, X, unbounded


@pytest.mark.parametrize("program", LINEAR_PROGRAMS, ids=lambda f: f.__name__)
def test_programs_give_what_they_give_eagerly(program: Any) -> None:
    wanted, run = tracegraph.tree.leaves(program(X)), tracegraph.jit(program, device="cuda")
    for _ in range(2):
        for one, other in zip(tracegraph.tree.leaves(run(X)), wanted, strict=True):
            found, exact = np.asarray(one), np.asarray(other)
            assert found.dtype == exact.dtype
            tolerance = 1e-5 if exact.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(found, exact, tolerance, tolerance)


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
