"""Derivatives at singular, repeated, zero and large arguments: exact ones, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.exact_derivatives import KNOWN, LINES, MATRICES, Known, Line, Matrices, derivative
from tracegraph import grad, jacfwd, jacrev, jit, jvp, sparse, special, vmap

named = {"ids": lambda case: case.name}


CHAINS = {1: [(grad,), (jacfwd,)], 2: [(grad, jacfwd), (grad, jacrev)], 3: [(grad, jacfwd, jacfwd)]}


def forwards(function: Callable[..., Any], order: int) -> Callable[..., Any]:
    for _ in range(order):
        function = _along(function)
    return function


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jvp(function, (x,), (np.ones(()),))[1]


def backwards(function: Callable[..., Any], order: int) -> Callable[..., Any]:
    for _ in range(order):
        function = grad(function)
    return function


@pytest.mark.parametrize("case", LINES, **named)
def test_derivatives_are_those_of_mpmath(case: Line) -> None:
    for number, point in enumerate(case.points):
        # orders from the third on take longer: they are tried at every third point
        for order in range(1, 1 + (case.orders if number % 3 == 0 else min(case.orders, 2))):
            wanted = derivative(case.exact, point, order)
            modes = (forwards, backwards) if order < 4 else (forwards,)
            for mode in modes:
                found = float(mode(case.function, order)(np.float64(point)))
                np.testing.assert_allclose(
                    found,
                    wanted,
                    case.tolerance,
                    1e-200,
                    err_msg=f"{mode.__name__} {order}, {point}",
                )


@pytest.mark.parametrize("case", KNOWN, **named)
def test_derivatives_at_borders(case: Known) -> None:
    for order, wanted in enumerate(case.values, 1):
        for mode in (forwards, backwards):
            found = float(mode(case.function, order)(np.float64(case.point)))
            np.testing.assert_allclose(found, wanted, 1e-7, err_msg=f"{mode.__name__} {order}")


@pytest.mark.parametrize("case", MATRICES, **named)
def test_derivatives_of_matrices_are_those_of_polynomials(case: Matrices) -> None:
    (shape,) = {a.shape for a in case.points}
    function, exact = (lambda x, f=f: f(x.reshape(shape)) for f in (case.function, case.smooth))
    for order, tolerance in enumerate(case.tolerances, 1):
        exact = (grad if order == 1 else jacfwd)(exact)
        runs = []
        for number, chain in enumerate(CHAINS[order]):
            found = function
            for transform in chain:
                found = transform(found)
            runs.append(jit(found, device="host") if number and order < 3 else found)
        for a in case.points:
            wanted = np.asarray(exact(a.ravel()))
            allowed = tolerance * max(1.0, np.abs(wanted).max())
            for run in runs:
                given = np.asarray(run(a.ravel()))
                np.testing.assert_allclose(given, wanted, 0, allowed, err_msg=str(a))


def test_one_singular_matrix_of_a_batch_leaves_the_others() -> None:
    a = np.stack([np.eye(4), np.diag([1.0, 0.0, 2.0, 3.0]), np.ones((4, 4))])
    found = grad(lambda a: np.linalg.det(a).sum())(a)
    np.testing.assert_allclose(found[0], np.eye(4), atol=1e-14)
    np.testing.assert_allclose(found[1], np.diag([0.0, 6.0, 0.0, 0.0]), atol=1e-13)
    np.testing.assert_allclose(found[2], 0, atol=1e-15)
    lanes = vmap(jacfwd(grad(np.linalg.det)))(a)
    np.testing.assert_allclose(lanes[1][0, 0, 1, 1], 6.0)
    np.testing.assert_allclose(lanes[2], 0, atol=1e-13)


def test_complex_determinants_at_singular_matrices() -> None:
    a = np.array([[1, 2j], [1j, -2]])
    t = np.array([[1j, 2], [3, 1 - 1j]])
    wanted = a[1, 1] * t[0, 0] + a[0, 0] * t[1, 1] - a[1, 0] * t[0, 1] - a[0, 1] * t[1, 0]
    np.testing.assert_allclose(jvp(np.linalg.det, (a,), (t,))[1], wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [None, 1, 2, 3, 4, 0.5, -1, 0, 1.5, np.inf, -np.inf])
def test_norms_at_zero_have_the_derivative_zero(order: Any, dtype: Any) -> None:
    zero, rows = np.zeros(3, dtype), np.array([[0, 0], [3, 4]], dtype)
    for run in (grad, lambda f: jit(grad(f), device="host")):
        found = np.asarray(run(lambda x: np.linalg.norm(x, order))(zero))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, 0)
        found = run(lambda x: np.linalg.norm(x, order, axis=1, keepdims=True).sum())(rows)
        np.testing.assert_array_equal(np.asarray(found)[0], 0)
        assert np.isfinite(found).all()
    _, tangent = jvp(lambda x: np.linalg.norm(x, order), (zero,), (zero + 1,))
    assert tangent == 0


@pytest.mark.parametrize("order", ["fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
def test_norms_of_matrices_at_zero_have_the_derivative_zero(order: Any) -> None:
    found = grad(lambda x: np.linalg.norm(x, order))(np.zeros((2, 3)))
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("ddof", [0, 1])
def test_standard_deviations_of_equal_numbers(ddof: int) -> None:
    x = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]])
    wanted = (x[1] - x[1].mean()) / (x[1].std(ddof=ddof) * (3 - ddof))
    missing = np.where(np.arange(3) == 1, np.nan, x)
    for function in (np.std, np.nanstd):
        found = grad(lambda x, f=function: f(x, axis=1, ddof=ddof).sum())(x)
        np.testing.assert_array_equal(found[0], 0)
        np.testing.assert_allclose(found[1], wanted)
    found = grad(lambda x: np.nanstd(x, axis=1).sum())(missing)
    np.testing.assert_allclose(found, [[0, 0, 0], [-0.5, 0, 0.5]])


def test_interpolations_outside_of_their_points_and_at_them() -> None:
    xp, fp = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 3.0, 5.0, 0.0])
    x = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, np.inf])
    slopes = [0, 0, 2, 2, 2, -2.5, -2.5, 0, 0, 0]
    by_x, by_xp, by_fp = grad(lambda *a: np.interp(*a).sum(), (0, 1, 2))(x, xp, fp)
    np.testing.assert_array_equal(by_x, slopes)
    assert np.isfinite(by_xp).all()
    np.testing.assert_array_equal(by_fp, [3.5, 1.5, 1.5, 3.5])
    assert grad(np.interp)(0.5, xp[:1], fp[:1]) == 0
    assert grad(np.interp)(-0.5, xp[:1], fp[:1]) == 0
    assert jacfwd(grad(np.interp))(4.0, xp, fp) == 0


@pytest.mark.parametrize(
    "x", [np.arange(1.0, 9), np.array([0.0, 0, 2, 3, 4, 5, 6, 7]), np.zeros(8)], ids=str
)
def test_products_of_segments_with_zeros(x: Any) -> None:
    segments = np.array([0, 2, 0, 2, 2, 9, 0, -1])

    def plain(x: Any) -> Any:
        found = [x[0] * x[2] * x[6], 1.0 + 0 * x[0], x[1] * x[3] * x[4]]
        return np.stack(found)

    def product(x: Any) -> Any:
        return sparse.segment_prod(x, segments, 3)

    for chain in (
        (jacfwd,),
        (jacrev,),
        (jacrev, jacfwd),
        (jacrev, jacrev),
        (jacrev, jacfwd, jacfwd),
    ):
        found, wanted = product, plain
        for transform in chain:
            found, wanted = transform(found), transform(wanted)
        np.testing.assert_array_equal(found(x), wanted(x))
        np.testing.assert_array_equal(np.asarray(jit(found, device="host")(x)), wanted(x))
    lanes = vmap(jacrev(lambda x, s: sparse.segment_prod(x, s, 3)))(
        np.stack([x, x]), np.stack([segments, segments])
    )
    np.testing.assert_array_equal(lanes[1], jacrev(plain)(x))


@pytest.mark.parametrize("zeros", [0, 1, 2, 4])
def test_products_with_zeros(zeros: int) -> None:
    x = np.where(np.arange(4) < zeros, 0.0, np.arange(2.0, 6))
    functions = (np.prod, np.multiply.reduce, lambda x: np.cumprod(x)[-1])
    for function in (*functions, lambda x: np.multiply.reduceat(x, [0])[0]):
        for chain in ((grad,), (jacfwd,), (grad, jacfwd), (grad, jacrev), (grad, jacfwd, jacfwd)):
            found: Any = function
            wanted: Any = lambda x: x[0] * x[1] * x[2] * x[3]  # noqa: E731
            for transform in chain:
                found, wanted = transform(found), transform(wanted)
            np.testing.assert_allclose(found(x), wanted(x), 1e-14)


MIXED = [
    (lambda x, y: x**y, (2.0, 0.0), 0.5),
    (lambda x, y: x**y, (0.0, 2.0), 0.0),
    (lambda x, y: x**y, (0.0, 3.0), 0.0),
    (lambda x, y: x**y, (3.0, 2.0), 3 + 6 * np.log(3)),
    (special.xlogy, (0.0, 2.0), 0.5),
    (special.xlogy, (3.0, 2.0), 0.5),
    (special.xlog1py, (0.0, 3.0), 0.25),
    (special.rel_entr, (2.0, 3.0), -1 / 3),
    (special.kl_div, (2.0, 3.0), -1 / 3),
    (special.rel_entr, (1e200, 1e-100), -1e100),
    (lambda x, y: np.float_power(x, y), (2.0, 0.0), 0.5),
]


@pytest.mark.parametrize(("function", "point", "wanted"), MIXED)
def test_mixed_derivatives_in_both_orders(function: Any, point: Any, wanted: float) -> None:
    for first, second in ((0, 1), (1, 0)):
        for inner, outer in ((grad, grad), (grad, jacfwd), (jacfwd, jacrev)):
            found = outer(inner(function, first), second)(*point)
            np.testing.assert_allclose(found, wanted, 1e-12)


def test_third_derivatives_of_powers_are_symmetric_at_exponent_zero() -> None:
    third = jacfwd(jacfwd(grad(lambda z: z[0] ** z[1])))(np.array([2.0, 0.0]))
    for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        np.testing.assert_allclose(third, third.transpose(axes), 1e-14)
    np.testing.assert_allclose(third[0, 0, 1], -0.25)
    np.testing.assert_allclose(third[1, 1, 1], np.log(2) ** 3)


def test_density_of_gammainc_by_its_parameter() -> None:
    def density(a: Any, x: Any) -> Any:
        return grad(special.gammainc, 1)(a, x)

    a, x = 2.5, 1.5
    wanted = density(a, x) * (np.log(x) - special.digamma(a))
    np.testing.assert_allclose(grad(density)(a, x), wanted, 1e-13)
    with pytest.raises(tracegraph.errors.DerivativeError, match="only in the last operand x"):
        grad(special.gammainc)(a, x)


def test_complete_factors() -> None:
    rng = np.random.default_rng(0)
    a, c, m = rng.standard_normal((4, 2)), rng.standard_normal((4, 2)), rng.standard_normal((4, 4))

    def triangle(a: Any) -> Any:
        return (np.linalg.qr(a, mode="complete").R * c).sum()

    def reduced(a: Any) -> Any:
        return (np.linalg.qr(a).R * c[:2]).sum()

    def projected(a: Any) -> Any:
        q = np.linalg.qr(a, mode="complete").Q[:, 2:]
        return ((q @ q.T) * m).sum()

    def complement(a: Any) -> Any:
        q = np.linalg.qr(a).Q
        return np.trace(m) - ((q @ q.T) * m).sum()

    for found, wanted in ((triangle, reduced), (projected, complement)):
        for transform in (grad, jacfwd, lambda f: jacfwd(grad(f))):
            np.testing.assert_allclose(transform(found)(a), transform(wanted)(a), 1e-10, 1e-12)
        lanes = vmap(grad(found))(np.stack([a, 2 * a]))
        np.testing.assert_allclose(lanes[1], grad(wanted)(2 * a), 1e-10, 1e-12)


def test_what_vmap_adds_in_front_does_not_disturb_rules() -> None:
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(vmap(grad(np.linalg.norm))(x), [[0, 0], [0.6, 0.8]])
    np.testing.assert_allclose(
        vmap(jacfwd(grad(lambda x: np.linalg.norm(x) ** 2)))(x), np.stack([2 * np.eye(2)] * 2)
    )
    powers = vmap(jacfwd(jacfwd(lambda x: x ** np.array([0.0, 2.0]))))(np.array([0.0, 3.0]))
    np.testing.assert_allclose(powers, [[0, 2], [0, 2]], atol=1e-15)


def test_rules_in_loops_and_branches() -> None:
    def looped(x: Any) -> Any:
        def step(i: Any, total: Any) -> Any:
            return total + np.linalg.norm(x * i) ** 2 + np.linalg.det(x.reshape(2, 2))

        return tracegraph.fori_loop(0, 3, step, 0.0)

    def chosen(x: Any) -> Any:
        return tracegraph.cond(x[0] > 1, np.sum, np.linalg.norm, x)

    x = np.zeros(4)
    hessian = jacfwd(grad(looped))(x)
    wanted = 10 * np.eye(4) + 3 * np.array(
        [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]
    )
    np.testing.assert_allclose(hessian, wanted)
    np.testing.assert_array_equal(grad(chosen)(x), 0)


def test_logarithms_of_sums_by_factors_that_are_zero() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 2.0])
    total = (b * np.exp(a)).sum()
    by_a, by_b = grad(lambda a, b: special.logsumexp(a, b=b), (0, 1))(a, b)
    np.testing.assert_allclose(by_b, np.exp(a) / total)
    np.testing.assert_allclose(by_a, b * np.exp(a) / total)
    second = jacfwd(grad(lambda b: special.logsumexp(a, b=b)))(b)
    np.testing.assert_allclose(second, -np.outer(np.exp(a), np.exp(a)) / total**2)
    np.testing.assert_array_equal(grad(special.logsumexp)(np.array([1.0, -np.inf])), [1, 0])
    np.testing.assert_array_equal(grad(special.logsumexp)(np.full(2, -np.inf)), 0)
    np.testing.assert_array_equal(grad(np.cbrt)(0.0), np.inf)


def test_what_a_loop_or_branch_does_not_need_gets_no_derivative() -> None:
    """The square root stays outside, where its slope is infinite; what is inside is a constant."""

    def looped(x: Any) -> Any:
        root = np.sqrt(x)
        return tracegraph.fori_loop(
            0, 3, lambda i, t: t + x * tracegraph.stop_gradient(root + 1), 0.0
        )

    def chosen(x: Any) -> Any:
        root = np.sqrt(x)
        return tracegraph.cond(
            x < 1, lambda: x * tracegraph.stop_gradient(root + 1), lambda: x * 2.0
        )

    for function, wanted in ((looped, 3.0), (chosen, 1.0)):
        assert grad(function)(0.0) == wanted
        assert jvp(function, (0.0,), (1.0,))[1] == wanted
