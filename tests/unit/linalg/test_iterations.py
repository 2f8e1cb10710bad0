"""cg, bicgstab and gmres: solutions, operators of all kinds, derivatives, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_host
from tracegraph import errors, linalg

RNG = np.random.default_rng(6)
METHODS = {"cg": linalg.cg, "bicgstab": linalg.bicgstab, "gmres": linalg.gmres}
each_method = pytest.mark.parametrize("name", METHODS)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])


def system(name: str, n: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    is_complex = np.dtype(dtype).kind == "c"
    a, b = RNG.standard_normal((n, n)), RNG.standard_normal(n)
    if is_complex:
        a, b = a + 1j * RNG.standard_normal((n, n)), b + 1j * RNG.standard_normal(n)
    a = a @ np.conj(a.T) + n * np.eye(n) if name == "cg" else a + 3 * n**0.5 * np.eye(n)
    return a.astype(dtype), b.astype(dtype)


@each_method
@each_dtype
def test_residuals_are_as_small_as_asked_for(name: str, dtype: str) -> None:
    a, b = system(name, 30, dtype)
    rtol = 50 * float(np.finfo(dtype).eps)
    for run in (lambda f, *x: f(*x), on_host):
        x, info = run(lambda a, b: METHODS[name](a, b, rtol=rtol), a, b)
        assert int(info) == 0
        assert x.dtype == dtype
        assert np.linalg.norm(a @ x - b) <= 4 * rtol * np.linalg.norm(b)


@each_method
def test_operators_may_be_functions_of_arrays_of_any_shape(name: str) -> None:
    """Five-point Laplacians, of zero boundary."""
    b = RNG.standard_normal((6, 5))

    def laplacian(u: Any) -> Any:
        p = np.pad(u, 1)
        return 4 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    x, info = on_host(lambda b: METHODS[name](laplacian, b, rtol=1e-12, M=lambda r: r / 4), b)
    assert int(info) == 0
    np.testing.assert_allclose(laplacian(x), b, atol=1e-10)


@each_method
def test_a_good_preconditioner_and_a_good_guess_save_iterations(name: str) -> None:
    a, b = system(name, 20)
    scale = np.logspace(0, 4, 20)
    a = a * scale * scale[:, None]
    inverse = np.linalg.inv(a)
    x, info = on_host(lambda b: METHODS[name](a, b, rtol=1e-8, M=inverse, maxiter=2), b)
    assert int(info) == 0
    np.testing.assert_allclose(a @ x, b, atol=1e-6)
    y, info = on_host(lambda b: METHODS[name](a, b, x, rtol=1e-6, maxiter=0), b)
    assert int(info) == 0
    np.testing.assert_array_equal(x, y)


@each_method
def test_info_is_the_number_of_iterations_of_a_failure(name: str) -> None:
    a, b = system(name, 20)
    a = a * np.logspace(0, 3, 20) * np.logspace(0, 3, 20)[:, None]
    options = {"restart": 2} if name == "gmres" else {}
    _, info = on_host(lambda b: METHODS[name](a, b, rtol=1e-10, maxiter=2, **options), b)
    assert int(info) == 2


@each_method
def test_zero_and_not_finite_right_hand_sides_end(name: str) -> None:
    a, b = system(name, 5)
    x, info = on_host(lambda b: METHODS[name](a, b), b * 0)
    np.testing.assert_array_equal(x, 0)
    assert int(info) == 0
    _, info = on_host(lambda b: METHODS[name](a, b), b * np.nan)
    assert abs(int(info)) == 1


@each_method
def test_restarts_and_invariant_spaces(name: str) -> None:
    b = np.array([1.0, 0.0, 0.0, 0.0])
    x, info = on_host(lambda b: METHODS[name](np.diag([2.0, 3.0, 4.0, 5.0]), b, rtol=1e-14), b)
    np.testing.assert_allclose(x, [0.5, 0, 0, 0], rtol=1e-14)
    assert int(info) == 0
    a, b = system("gmres", 30)
    x, info = on_host(lambda b: linalg.gmres(a, b, rtol=1e-12, restart=5), b)
    assert int(info) == 0
    np.testing.assert_allclose(a @ x, b, atol=1e-10)


@each_method
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_are_those_of_the_solution(name: str, dtype: str) -> None:
    a, b = system(name, 6, dtype)
    weights = RNG.standard_normal(6)

    def loss(solve: Any) -> Any:
        def function(scale: Any, b: Any) -> Any:
            symmetric = a * scale * scale[:, None]
            return (solve(symmetric, b).real * weights).sum()

        return function

    scale = 1 + 0.1 * RNG.standard_normal(6)
    preconditioner = np.diag(1 / np.diag(a))
    for m in (None, preconditioner):
        ours = loss(lambda a, b, m=m: METHODS[name](a, b, rtol=1e-13, M=m)[0])
        theirs = loss(np.linalg.solve)
        found = on_host(tracegraph.grad(ours, (0, 1)), scale, b)
        expected = on_host(tracegraph.grad(theirs, (0, 1)), scale, b)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-9)
        t = scale * 0.5, b * 0.1
        got, wanted = (tracegraph.jvp(f, (scale, b), t)[1] for f in (ours, theirs))
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-9)


@each_method
def test_lanes_end_each_on_their_own_and_loops_contain_them(name: str) -> None:
    a, b = system(name, 8)
    many = np.stack([b, 0 * b, 1e6 * b, b[::-1]])
    solve = tracegraph.vmap(lambda b: METHODS[name](a, b, rtol=1e-12))
    x, info = on_host(solve, many)
    np.testing.assert_allclose(x @ a.T, many, atol=1e-4)
    np.testing.assert_array_equal(info, 0)

    def refined(b: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return x + METHODS[name](a, b - a @ x, rtol=1e-2)[0]

        return tracegraph.fori_loop(0, 12, step, b * 0)

    np.testing.assert_allclose(a @ on_host(refined, b), b, atol=1e-12)


@each_method
def test_misuse_is_refused(name: str) -> None:
    a, b = system(name, 4)
    with pytest.raises(ValueError, match=rf"{name}: \(4, 4\) and \(3,\) do not fit"):
        METHODS[name](a, b[:3])
    with pytest.raises(TypeError, match="float16"):
        METHODS[name](a, b.astype(np.float16))
    with pytest.raises(errors.NonlinearError):
        on_host(tracegraph.grad(lambda b: METHODS[name](lambda x: x * x, b)[0].sum()), b)
