"""`scipy.special.f` of traced values and of Arrays: the function of `tracegraph.special`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import tracegraph
from tracegraph import errors, special

X, Y = np.array([0.25, 0.5, 0.75]), np.array([0.5, 1.0, 1.5])
TWO = {"beta", "betaln", "kl_div", "rel_entr", "xlog1py", "xlogy", "gammainc", "gammaincc", "zeta"}
NO_UFUNCS = {"logsumexp", "softmax", "log_softmax", "polygamma"}
"""Functions that SciPy writes in Python, by NumPy's conversion of their arguments."""

UFUNCS = sorted((set(special.__all__) | {"psi"}) - NO_UFUNCS)


def operands(name: str) -> tuple[Any, ...]:
    if name == "betainc":
        return X, Y, X
    return (X + 1, Y) if name in TWO else (X,)


@pytest.mark.parametrize("name", UFUNCS)
def test_scipys_functions_are_ours(name: str) -> None:
    function = getattr(scipy.special, name)
    ours = special.digamma if name == "psi" else getattr(special, name)
    args = operands(name)
    wanted = ours(*args)
    np.testing.assert_allclose(wanted, function(*args), rtol=1e-13, atol=1e-15)
    found = tracegraph.jit(lambda *a: function(*a), device="host")(*args)
    np.testing.assert_array_equal(found, wanted)
    lanes = tracegraph.vmap(lambda *a: function(*a))(*args)
    np.testing.assert_array_equal(lanes, wanted)
    arrays = tracegraph.jit(lambda *a: a, device="host")(*args)
    eager = function(*arrays)
    assert isinstance(eager, tracegraph.Array)
    np.testing.assert_array_equal(eager, wanted)
    assert isinstance(function(*args), np.ndarray)  # NumPy's arrays are SciPy's


def test_scipys_functions_have_derivatives() -> None:
    slope = tracegraph.grad(lambda x: np.sum(scipy.special.gammaln(x)))(X)
    np.testing.assert_allclose(slope, special.digamma(X), rtol=1e-14)


def test_scipys_functions_run_in_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        x = tracegraph.fori_loop(0, 3, lambda i, x: scipy.special.expit(x), x)
        return tracegraph.cond(np.sum(x) > 0, scipy.special.erfc, scipy.special.ndtr, x)

    wanted = X
    for _ in range(3):
        wanted = special.expit(wanted)
    found = tracegraph.jit(f, device="host")(X)
    np.testing.assert_allclose(found, special.erfc(wanted), rtol=1e-15)


@pytest.mark.parametrize("name", sorted(NO_UFUNCS))
def test_other_functions_name_ours(name: str) -> None:
    function = getattr(scipy.special, name)
    args = (2, X) if name == "polygamma" else (X,)
    with pytest.raises(errors.TracerMisuseError) as caught:
        tracegraph.jit(lambda *a: function(*a), device="host")(*args)
    assert f"write tracegraph.special.{name}, with the same arguments" in str(caught.value)
    arrays = tracegraph.jit(lambda *a: a, device="host")(*args)
    wanted = getattr(special, name)(*args)
    np.testing.assert_allclose(function(*arrays), wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: scipy.special.struve(0, x), r"^scipy\.special\.struve is not supported"),
        (lambda x: scipy.special.zeta(x), r"write tracegraph\.special\.zeta\(x\), which is of x"),
        (
            lambda x: scipy.special.erf(x, out=np.zeros(3)),
            r"^argument 'out' of scipy\.special\.erf",
        ),
        (lambda x: scipy.special.psi(x, dtype=np.float32), r"write tracegraph\.special\.digamma"),
        (lambda x: scipy.special.xlogy.outer(x, x), r"^scipy\.special\.xlogy\.outer is"),
    ],
)
def test_what_ours_lack_is_explained(function: Any, message: str) -> None:
    with pytest.raises(errors.UnsupportedByTracerError, match=message):
        tracegraph.jit(function, device="host")(X)
