"""`numpy.linalg` by factorizations: values, errors, loops, lanes, derivatives."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases import linear_algebra as linear_algebra_cases
from tests.helpers.compiled import on_host
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy
from tracegraph import errors

ARGUMENTS = linear_algebra_cases.ARGUMENTS
RNG = np.random.default_rng(1)

HILBERT = 1 / (1 + np.add.outer(np.arange(8), np.arange(8.0)))


@pytest.mark.parametrize("expression", linear_algebra_cases.TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("xp.linalg.solve(s, v[:2])", "Singular matrix"),
        ("xp.linalg.inv(s)", "Singular matrix"),
        ("xp.linalg.cholesky(-a)", "not positive definite"),
        ("xp.linalg.cholesky(r)", "square"),
        ("xp.linalg.inv(v)", "two-dimensional"),
        ("xp.linalg.det(w)", "square"),
        ("xp.linalg.eigh(r)", "square"),
        ("xp.linalg.eigvalsh(v)", "two-dimensional"),
        ("xp.linalg.svd(v)", "two-dimensional"),
        ("xp.linalg.svd(r, hermitian=True)", "square"),
        ("xp.linalg.cond(a[:0])", "empty"),
        ("xp.linalg.lstsq(t, v)", "."),
        ("xp.linalg.lstsq(r, v)", "Incompatible dimensions"),
    ],
)
def test_arrays_raise_as_numpys_do(expression: str, message: str) -> None:
    used = {k: v for k, v in ARGUMENTS.items() if re.search(rf"\b{k}\b", expression)}
    ours = {k: tracegraph.asarray(v) for k, v in used.items()}
    for xp, given in ((np, used), (tnp, ours), (np, ours)):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            eval(expression, {"xp": xp, **given})


def test_half_precision_is_refused_as_by_numpy() -> None:
    half = np.eye(2, dtype=np.float16)
    for call in (np.linalg.inv, np.linalg.cholesky, np.linalg.qr, np.linalg.det, np.linalg.svd):
        with pytest.raises(TypeError, match="array type float16 is unsupported in linalg"):
            on_host(call, half)


def test_raw_factors_are_refused() -> None:
    with pytest.raises(errors.UnsupportedByTracerError, match="raw"):
        on_host(lambda a: np.linalg.qr(a, mode="raw"), ARGUMENTS["a"])


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_eigenvalues_of_other_matrices_are_found_outside_alone(name: str) -> None:
    function, a = getattr(np.linalg, name), ARGUMENTS["a"]
    with pytest.raises(errors.UnsupportedByTracerError, match=r"use numpy\.linalg\.eig\w*h "):
        on_host(function, a)
    ours, theirs = function(tracegraph.asarray(a)), function(a)
    for got, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_matrix_without_a_factorization_spoils_no_other() -> None:
    good = ARGUMENTS["t"][0, 0]
    spd = good @ good.T
    factors = on_host(np.linalg.cholesky, np.stack([spd, -spd, spd]))
    assert np.isnan(factors[1]).all()
    np.testing.assert_allclose(factors[0], np.linalg.cholesky(spd), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(factors[2], factors[0])
    singular = np.stack([good, np.ones((4, 4)), np.zeros((4, 4))])
    inverses = on_host(np.linalg.inv, singular)
    np.testing.assert_allclose(inverses[0] @ good, np.eye(4), atol=1e-14)
    assert not np.isfinite(inverses[1]).all()
    assert not np.isfinite(inverses[2]).all()
    np.testing.assert_array_equal(on_host(np.linalg.det, singular)[1:], [0, 0])


def random(n: int, dtype: Any) -> Any:
    a = RNG.standard_normal((n, n))
    return np.asarray(
        a + 1j * RNG.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else a, dtype
    )


MATRICES = {
    "random": random,
    "ill conditioned": lambda n, dtype: np.asarray(random(n, dtype) * np.logspace(0, -6, n), dtype),
    "tiny": lambda n, dtype: random(n, dtype) * np.finfo(dtype).tiny ** 0.9,
    "large": lambda n, dtype: random(n, dtype) * np.finfo(dtype).max ** 0.45,
    "graded": lambda n, dtype: np.asarray(random(n, dtype) * np.logspace(-5, 5, n)[:, None], dtype),
}


SIZES = [
    *itertools.product([1, 7, 60], ["float32", "float64", "complex64", "complex128"]),
    *[(150, "float32"), (150, "complex128")],
]
EACH_KIND = [
    (kind, n, dtype)
    for number, kind in enumerate(MATRICES)
    for i, (n, dtype) in enumerate(SIZES, number)
    if i % 2
]
"""Each kind of matrix in every second size and dtype."""


@pytest.mark.parametrize(("kind", "n", "dtype"), EACH_KIND)
def test_backward_errors_are_small(kind: str, n: int, dtype: str) -> None:
    """Residuals relative to the sizes of the factors, as LAPACK's own tests measure them."""
    a = np.asarray(MATRICES[kind](n, dtype), dtype)
    unit = 30 * max(n, 3) * np.finfo(dtype).eps
    size = np.abs(a).max()
    q, r = on_host(np.linalg.qr, a)
    assert np.abs(q @ r - a).max() <= unit * size
    assert np.abs(np.conj(q.T) @ q - np.eye(n)).max() <= unit
    b = random(n, dtype)[:, :1]
    x = on_host(np.linalg.solve, a, b)
    growth = np.abs(a) @ np.abs(x) + np.abs(b)
    assert (np.abs(a @ x - b) <= unit * growth.max()).all()


def test_the_hilbert_matrix_is_solved_backward_stably() -> None:
    x = on_host(np.linalg.solve, HILBERT, HILBERT.sum(axis=1))
    np.testing.assert_allclose(HILBERT @ x, HILBERT.sum(axis=1), rtol=1e-14)
    lower = on_host(np.linalg.cholesky, HILBERT)
    np.testing.assert_allclose(lower @ lower.T, HILBERT, rtol=1e-14)


def test_they_run_in_loops_and_branches() -> None:
    a, b = ARGUMENTS["a"], ARGUMENTS["b"]

    def program(a: Any, b: Any) -> Any:
        def refine(i: Any, x: Any) -> Any:
            return x + np.linalg.solve(a, b - a @ x)

        x = tracegraph.fori_loop(0, 3, refine, b * 0)
        _, determinants = tracegraph.scan(lambda c, k: (c, np.linalg.det(a + k)), 0, np.arange(3.0))
        found = tracegraph.while_loop(
            lambda m: np.abs(m).max() > 1, lambda m: np.linalg.qr(m)[1] / 2, a
        )
        norm = tracegraph.cond(
            determinants[0] > 0,
            lambda: np.linalg.cholesky(a @ a.T),
            lambda: np.linalg.inv(a),
        )
        return x, determinants, found, norm

    x, determinants, _, norm = on_host(program, a, b)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-13)
    np.testing.assert_allclose(determinants, [np.linalg.det(a + k) for k in range(3)], rtol=1e-12)
    expected = np.linalg.cholesky(a @ a.T) if determinants[0] > 0 else np.linalg.inv(a)
    np.testing.assert_allclose(norm, expected, rtol=1e-12)


def spectra(a: Any) -> Any:
    """What eigenvalues and singular values of a matrix determine, whatever the vectors' signs."""
    h = a + np.conj(a.swapaxes(-1, -2))
    w, v = np.linalg.eigh(h)
    u, s, vh = np.linalg.svd(a[..., :3], full_matrices=False)
    return w, v * w @ np.conj(v.T), s, u * s @ vh, np.linalg.pinv(a[:, :3]), np.linalg.cond(a)


def test_spectra_are_found_in_loops_branches_and_lanes() -> None:
    a = ARGUMENTS["t"].reshape(-1, 4, 4)

    def program(a: Any) -> Any:
        first = tracegraph.cond(a[0, 0] > 3, lambda: spectra(a), lambda: spectra(-a))
        _, each = tracegraph.scan(lambda c, k: (c, spectra(a + k)), 0, np.arange(2.0))
        grown = tracegraph.while_loop(
            lambda x: np.linalg.norm(x, 2) < 100, lambda x: x @ np.linalg.svd(x)[0] * 2, a
        )
        return first, each, np.linalg.norm(grown, 2)

    found = on_host(tracegraph.vmap(program), a)
    expected = [tracegraph.tree.leaves(program(each)) for each in a]
    for got, wanted in zip(tracegraph.tree.leaves(found), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(got, np.stack(wanted), rtol=1e-9, atol=1e-12)


def test_full_matrices_are_unitary() -> None:
    for a in (ARGUMENTS["r"], ARGUMENTS["w"], np.ones((5, 2), np.complex64), np.zeros((3, 0))):
        u, s, vh = on_host(np.linalg.svd, a)
        m, n = a.shape[-2:]
        unit = 20 * np.finfo(a.dtype).eps
        for x, extent in ((u, m), (vh, n)):
            assert_allclose = np.testing.assert_allclose
            assert_allclose(x @ np.conj(x.swapaxes(-1, -2)), np.eye(extent) + 0 * x, atol=unit)
        k = min(m, n)
        product = u[..., :k] * s[..., None, :] @ vh[..., :k, :]
        np.testing.assert_allclose(product, a, atol=10 * unit)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_ends_and_gives_nan(bad: float) -> None:
    a = np.stack([np.eye(3), np.full((3, 3), bad), np.eye(3)])
    for call in (tnp.linalg.eigvalsh, tnp.linalg.svdvals, tnp.linalg.pinv):
        for got in (call(tracegraph.asarray(a)), on_host(call, a)):
            got = np.asarray(got)
            assert np.isnan(got[1]).all()
            assert np.isfinite(got[::2]).all()
    for p in (2, -2, "nuc"):
        norms = on_host(lambda a, p=p: np.linalg.norm(a, p, axis=(1, 2)), a)
        np.testing.assert_array_equal(np.isnan(norms), [False, True, False])


def test_derivatives_of_values_are_right_where_those_of_vectors_are_large() -> None:
    eye, t = np.eye(3), RNG.standard_normal((3, 3))
    _, tangent = tracegraph.jvp(np.linalg.eigvalsh, (eye,), (t,))
    np.testing.assert_allclose(tangent.sum(), np.trace(t))
    _, tangent = tracegraph.jvp(lambda a: np.linalg.norm(a, "nuc"), (eye,), (t,))
    np.testing.assert_allclose(tangent, np.trace(t))
    gradient = on_host(tracegraph.grad(lambda a: np.linalg.pinv(a).sum()), eye)
    np.testing.assert_allclose(gradient, -np.ones((3, 3)))
    with np.errstate(all="ignore"):
        _, (_, vectors) = tracegraph.jvp(lambda a: tuple(np.linalg.eigh(a)), (eye,), (t,))
    assert np.abs(vectors[~eye.astype(bool)]).min() > 1e5


def test_derivatives_of_completed_vectors_are_refused() -> None:
    with pytest.raises(TypeError, match="full_matrices=False"):
        tracegraph.grad(lambda a: np.linalg.svd(a).U.sum())(ARGUMENTS["r"])
    gradient = tracegraph.grad(lambda a: np.linalg.svd(a).S.sum())(ARGUMENTS["r"])
    assert np.isfinite(gradient).all()


def test_least_squares_are_differentiated_by_their_solution() -> None:
    a, b = ARGUMENTS["r"], RNG.standard_normal(6)

    def normal_equations(a: Any, b: Any) -> Any:
        return (np.linalg.solve(a.T @ a, a.T @ b) ** 2).sum()

    def by_lstsq(a: Any, b: Any) -> Any:
        return (np.linalg.lstsq(a, b)[0] ** 2).sum()

    found, expected = (
        on_host(tracegraph.grad(f, (0, 1)), a, b) for f in (by_lstsq, normal_equations)
    )
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_residuals_are_left_out_as_by_numpy_if_the_rank_is_known() -> None:
    a = np.ones((4, 2))
    x, residuals, rank, values = tnp.linalg.lstsq(
        tracegraph.asarray(a, device="host"), np.arange(4.0)
    )
    expected = np.linalg.lstsq(a, np.arange(4.0))
    assert residuals.shape == expected[1].shape == (0,)
    assert int(rank) == expected[2] == 1
    np.testing.assert_allclose(x, expected[0], rtol=1e-14)
    np.testing.assert_allclose(values, expected[3], atol=1e-14)
    x, residuals, *_ = on_host(np.linalg.lstsq, a, np.arange(4.0))
    np.testing.assert_allclose(x, expected[0], rtol=1e-14)
    np.testing.assert_allclose(residuals, [5])


def test_least_squares_of_ill_conditioned_matrices_are_backward_stable() -> None:
    a, exact = HILBERT, np.ones(8)
    x = on_host(lambda a, b: np.linalg.lstsq(a, b)[0], a, a @ exact)
    np.testing.assert_allclose(a @ x, a @ exact, rtol=1e-14)


def test_matrices_in_several_axes_may_lie_in_memory_in_any_order() -> None:
    matrices = np.random.default_rng(3).normal(size=(2, 3, 3))
    for laid_out in (np.broadcast_to(matrices, (2, 2, 3, 3)), np.stack([matrices] * 2, 1)):
        found = np.linalg.det(tracegraph.jit(lambda x: x, device="host")(laid_out))
        strided = tnp.linalg.det(tracegraph.Array(laid_out.swapaxes(0, 1)))
        np.testing.assert_allclose(np.asarray(strided).swapaxes(0, 1), found, rtol=1e-12)


def test_lanes_share_a_factorization() -> None:
    a, b = ARGUMENTS["a"], RNG.standard_normal((5, 4))
    solve = tracegraph.vmap(np.linalg.solve, in_axes=(None, 0))
    np.testing.assert_allclose(on_host(solve, a, b), np.linalg.solve(a, b.T).T, rtol=1e-12)
    program = tracegraph.jit(solve, device="host").lower(a, b).traced.optimized
    assert [e.operands[0].type.shape for e in program.body.eqns if e.op.name == "lu"] == [(4, 4)]


def test_gradients_are_those_of_matrix_calculus() -> None:
    a, b = ARGUMENTS["a"], ARGUMENTS["v"]
    inverse = np.linalg.inv(a)
    of_log = tracegraph.grad(lambda a: np.linalg.slogdet(a)[1])
    np.testing.assert_allclose(on_host(of_log, a), inverse.T, rtol=1e-10)
    of_det = tracegraph.grad(lambda a: np.linalg.det(a))
    np.testing.assert_allclose(on_host(of_det, a), np.linalg.det(a) * inverse.T, rtol=1e-10)
    x = inverse @ b
    of_solution = tracegraph.grad(lambda a, b: np.linalg.solve(a, b).sum(), (0, 1))
    by_a, by_b = on_host(of_solution, a, b)
    adjoint = inverse.T @ np.ones(4)
    np.testing.assert_allclose(by_b, adjoint, rtol=1e-10)
    np.testing.assert_allclose(by_a, -np.outer(adjoint, x), rtol=1e-10)
