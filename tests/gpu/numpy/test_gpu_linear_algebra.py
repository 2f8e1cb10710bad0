"""`numpy.linalg` as CUDA graphs: residuals of all sizes, inside loops and branches, in lanes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.calls.lapack import LapackRoutine
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.target.overrides import override
from lowering.planning.factorizations import FactorizationForm
from tests.cases import linear_algebra as linear_algebra_cases
from tests.helpers.compiled import on_gpu
from tests.helpers.numpy_agreement import assert_close
from tests.helpers.parameters import in_turn
from tracegraph import linalg, tree
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ops.factorizations.matrices import mixed, well_conditioned

ARGUMENTS = linear_algebra_cases.ARGUMENTS
FORMS: list[FactorizationForm] = ["own", "library", "small"]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def value_of(expression: str, values: Any) -> Any:
    return eval(expression, {"xp": np, "np": np, **values})


def is_legal(expression: str) -> bool:
    """Whether NumPy computes an expression."""
    try:
        with np.errstate(all="ignore"):
            value_of(expression, ARGUMENTS)
    except (ValueError, TypeError):  # a LinAlgError is a ValueError
        return False
    return True


LEGAL = [each for each in linear_algebra_cases.TABLES if is_legal(each)]


@pytest.mark.parametrize(("expression", "form"), in_turn(LEGAL, FORMS))
def test_expressions_equal_numpys(expression: str, form: FactorizationForm) -> None:
    with np.errstate(all="ignore"):
        expected = tree.leaves(value_of(expression, ARGUMENTS))
    found = tree.leaves(in_form(form, partial(value_of, expression), ARGUMENTS))
    for got, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got / 64, wanted / 64)  # sums are of another order


def in_form(form: FactorizationForm, function: Any, *arguments: Any) -> Any:
    with override(factorizations=form):
        return on_gpu(function, *arguments)


@pytest.mark.parametrize(
    ("n", "dtype", "form"), in_turn([1, 3, 32, 64, 100, 300], DTYPES, FORMS, rounds=3)
)
def test_residuals_are_small(n: int, dtype: str, form: FactorizationForm) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if "c" in dtype else 0)
    a = a.astype(dtype)
    b = np.ones((n, 2), dtype)

    def program(a: Any, b: Any) -> Any:
        spd = a @ np.conj(a.T) + n * np.eye(n, dtype=dtype)
        return np.linalg.qr(a), np.linalg.solve(a, b), spd, np.linalg.cholesky(spd)

    (q, r), x, spd, lower = in_form(form, program, a, b)
    unit = 30 * n * np.finfo(dtype).eps
    assert np.abs(q @ r - a).max() <= unit * np.abs(a).max()
    assert np.abs(np.conj(q.T) @ q - np.eye(n)).max() <= unit
    assert np.abs(a @ x - b).max() <= unit * (np.abs(a) @ np.abs(x) + 1).max()
    assert np.abs(lower @ np.conj(lower.T) - spd).max() <= unit * np.abs(spd).max()
    assert not np.triu(lower, 1).any()
    assert not np.tril(r, -1).any()


@pytest.mark.parametrize(
    ("n", "dtype", "form"),
    in_turn([1, 2, 3, 8, 17, 32, 33, 129], DTYPES, ["own", "small"], rounds=2),
)
def test_spectra_have_small_residuals(n: int, dtype: str, form: FactorizationForm) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if "c" in dtype else 0)
    a = a.astype(dtype)
    singular = np.ones((n, max(n // 2, 1)), dtype)

    def program(a: Any, singular: Any) -> Any:
        h = a + np.conj(a.T)
        return h, np.linalg.eigh(h), np.linalg.svd(a), np.linalg.svd(singular, False)

    h, (w, v), *found = in_form(form, program, a, singular)
    unit = 30 * max(n, 3) * np.finfo(dtype).eps
    assert np.abs(h @ v - v * w).max() <= unit * np.abs(h).max() * n**0.5
    assert np.abs(np.conj(v.T) @ v - np.eye(n)).max() <= unit
    assert (np.diff(w) >= 0).all()
    for (u, s, vh), x in zip(found, (a, singular), strict=True):
        assert (np.diff(s) <= 0).all()
        assert np.abs(u * s @ vh - x).max() <= unit * np.abs(x).max() * n**0.5
        assert np.abs(np.conj(u.T) @ u - np.eye(u.shape[1])).max() <= unit
        assert np.abs(vh @ np.conj(vh.T) - np.eye(vh.shape[0])).max() <= unit


@pytest.mark.parametrize("form", ["own", "small"])
def test_batches_of_spectra_with_one_that_is_not_finite(form: FactorizationForm) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((500, 12, 12))
    a[7] = np.nan
    w, s = in_form(form, lambda a: (np.linalg.eigvalsh(a), np.linalg.svdvals(a)), a)
    assert np.isnan(w[7]).all()
    assert np.isnan(s[7]).all()
    others = np.arange(500) != 7
    np.testing.assert_allclose(w[others], np.linalg.eigvalsh(a[others]), atol=1e-12)
    np.testing.assert_allclose(s[others], np.linalg.svdvals(a[others]), atol=1e-12)


def test_more_of_linear_algebra() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((3, 20, 20)) + 9 * np.eye(20)
    b = rng.standard_normal((3, 20, 2))
    d = rng.standard_normal((3, 3, 20)) + np.array([0, 4, 0])[:, None, None]

    def program(a: Any, b: Any, d: Any) -> Any:
        return (
            linalg.solve_triangular(a, b),
            linalg.lu_solve(linalg.lu_factor(a), b, 1),
            linalg.cho_solve(linalg.cho_factor(a @ a.mT), b),
            linalg.tridiagonal_solve(*d, b),
            linalg.expm(a / 4),
            linalg.cg(a[0] @ a[0].T, b[0, :, 0], rtol=1e-12),
            linalg.bicgstab(a[0], b[0, :, 0], rtol=1e-12),
            linalg.gmres(a[0], b[0, :, 0], rtol=1e-12),
            tracegraph.grad(lambda b: linalg.cg(a[0] @ a[0].T, b)[0].sum())(b[0, :, 0]),
        )

    found, expected = (tree.leaves(f(a, b, d)) for f in (lambda *x: on_gpu(program, *x), program))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "k", "batch"),
    [(1, 2, (3,)), (7, 1, (1000,)), (512, 1, (40,)), (2000, 3, ()), (50_000, 1, (2,))],
)
def test_tridiagonal_systems(dtype: str, n: int, k: int, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(n)

    def mixed_numbers(*shape: int) -> Any:
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if "c" in dtype else x).astype(dtype)

    dl, d, du = (mixed_numbers(*batch, n) for _ in range(3))  # rows have to be swapped
    b = mixed_numbers(*batch, n, k)
    x = on_gpu(linalg.tridiagonal_solve, dl, d, du, b).astype(complex if "c" in dtype else float)
    rest = d[..., None] * x - b
    rest[..., 1:, :] += dl[..., 1:, None] * x[..., :-1, :]
    rest[..., :-1, :] += du[..., :-1, None] * x[..., 1:, :]
    size = np.abs(x).max((-2, -1), keepdims=True) + 1
    assert (np.abs(rest) <= 100 * np.finfo(dtype).eps * size).all()


def test_tridiagonal_systems_in_loops_and_lanes() -> None:
    rng = np.random.default_rng(0)
    d, b = rng.standard_normal((3, 3, 70)), rng.standard_normal((3, 70))

    def program(d: Any, b: Any) -> Any:
        def solved(x: Any) -> Any:
            return linalg.tridiagonal_solve(d[0], d[1] + 4, d[2], x[:, None])[:, 0]

        return tracegraph.fori_loop(0, 5, lambda _, x: solved(x), b)

    def gradient(d: Any, b: Any) -> Any:
        return tracegraph.grad(lambda d: program(d, b).sum())(d)

    for function in (program, gradient):
        found = on_gpu(tracegraph.vmap(function), d, b)
        expected = np.stack([function(*each) for each in zip(d, b, strict=True)])
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_spectra_run_in_loops_and_lanes() -> None:
    a = np.random.default_rng(2).standard_normal((4, 5, 5))

    def program(a: Any) -> Any:
        def step(carry: Any, k: Any) -> Any:
            w, v = np.linalg.eigh(carry @ carry.T + k)
            return v * np.sqrt(w) @ v.T, np.linalg.svdvals(carry)

        return tracegraph.scan(step, a, np.arange(3.0))

    found = on_gpu(tracegraph.vmap(program), a)
    expected = zip(*map(program, a), strict=True)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, np.stack(wanted), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_matrices_are_factored_by_the_library(dtype: str) -> None:
    n = 1500
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((n, n)).astype(dtype), rng.standard_normal(n).astype(dtype)

    def program(a: Any, b: Any) -> Any:
        spd = a @ a.T / n + np.eye(n, dtype=dtype)
        return np.linalg.solve(a, b), np.linalg.qr(a).R, spd, np.linalg.cholesky(spd)

    compiled = tracegraph.jit(program, device="cuda").lower(a, b).compile()
    calls = [n.call for n in walk(compiled.plan.graph) if isinstance(n, LibraryNode)]
    named = {call.op.name for call in calls if isinstance(call, LapackRoutine)}
    assert named == {"potrf", "getrf", "trsm", "geqrf"}
    x, r, spd, lower = tree.map(np.asarray, compiled(a, b))
    unit = 30 * n * np.finfo(dtype).eps
    assert np.abs(a @ x - b).max() <= unit * (np.abs(a) @ np.abs(x) + 1).max()
    assert np.abs(r.T @ r - a.T @ a).max() <= unit * np.abs(a.T @ a).max()
    assert np.abs(lower @ lower.T - spd).max() <= unit * np.abs(spd).max()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(200, 70), (70, 200), (3, 90, 80), (2, 2, 5, 5)])
def test_rectangular_matrices_and_batches(shape: tuple[int, ...], form: FactorizationForm) -> None:
    a = np.random.default_rng(0).standard_normal(shape)
    *batch, m, n = shape
    k = min(m, n)

    def program(a: Any) -> Any:
        return apply(get("lu"), a), np.linalg.qr(a)

    (factors, pivots, rows), (q, r) = in_form(form, program, a)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    upper = np.triu(factors[..., :k, :])
    np.testing.assert_allclose(
        lower @ upper, np.take_along_axis(a, rows[..., None], -2), atol=1e-12
    )
    order = np.broadcast_to(np.arange(m), (*batch, m)).copy()
    for at in np.ndindex(*batch):
        for row, pivot in enumerate(pivots[at]):
            order[at][[row, pivot]] = order[at][[pivot, row]]
    np.testing.assert_array_equal(order, rows)
    np.testing.assert_allclose(q @ r, a, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_matrix_without_a_factorization_spoils_no_other(form: FactorizationForm) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((150, 150))
    spd = a @ a.T + np.eye(150)
    indefinite = spd - 1000 * np.eye(150)

    def program(spd: Any, a: Any) -> Any:
        return np.linalg.cholesky(spd), np.linalg.det(a), np.linalg.inv(a)

    singular = np.stack([a, np.ones((150, 150)), np.zeros((150, 150))])
    lower, dets, inverses = in_form(
        form, program, np.stack([spd, indefinite, spd * np.nan]), singular
    )
    np.testing.assert_allclose(lower[0], np.linalg.cholesky(spd), atol=1e-10)
    assert np.isnan(lower[1]).all()
    assert np.isnan(np.diagonal(lower[2])).all()
    np.testing.assert_allclose(dets[0], np.linalg.det(a), rtol=1e-8)
    np.testing.assert_array_equal(dets[1:], [0, 0])
    np.testing.assert_allclose(inverses[0] @ a, np.eye(150), atol=1e-9)
    assert not any(np.isfinite(inverses[k]).all() for k in (1, 2))


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_and_lanes(form: FactorizationForm) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 40, 40)) + 8 * np.eye(40)

    def energy(a: Any) -> Any:
        lower = np.linalg.cholesky(a @ a.T)
        return np.sum(np.sin(np.linalg.solve(a, lower))) + np.sum(np.linalg.qr(a).R ** 3)

    function = tracegraph.vmap(tracegraph.grad(energy))
    expected = np.asarray(tracegraph.jit(function, device="host")(a))
    np.testing.assert_allclose(in_form(form, function, a), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("dtype", "batch", "form"),
    in_turn(DTYPES, [(10_000, 16), (5, 3), (300, 33)], FORMS, rounds=3),
)
def test_batches_of_small_matrices(
    dtype: str, batch: tuple[int, int], form: FactorizationForm
) -> None:
    count, n = batch
    rng = np.random.default_rng(0)
    a = rng.standard_normal((count, n, n))
    a = a + 1j * rng.standard_normal(a.shape) if "c" in dtype else a
    a = (a + 2 * n * np.roll(np.eye(n), 1, 0)).astype(dtype)
    b = rng.standard_normal((count, n, 2)).astype(dtype)
    unit = 100 * n * float(np.finfo(dtype).eps)

    def program(a: Any, b: Any) -> Any:
        spd = a @ np.conj(np.swapaxes(a, -1, -2))
        return np.linalg.solve(a, b), np.linalg.cholesky(spd), np.linalg.slogdet(a)

    found, expected = in_form(form, program, a, b), program(a, b)
    for got, wanted in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, wanted, unit, unit * np.abs(wanted).max())
    jitted = tracegraph.jit(program, device="cuda", scratch="per_launch")
    with override(factorizations=form):
        again = jitted(a, b)
    np.testing.assert_array_equal(np.asarray(again[0]), found[0])


@pytest.mark.parametrize("form", FORMS)
def test_one_of_many_matrices_has_no_factorization(form: FactorizationForm) -> None:
    a = np.random.default_rng(0).standard_normal((20, 9, 9)) + 5 * np.eye(9)
    spd = a @ a.mT
    a[3], a[7], spd[5] = 0, 1, -spd[5]
    lower, dets = in_form(form, lambda s, a: (np.linalg.cholesky(s), np.linalg.det(a)), spd, a)
    assert np.isnan(lower[5]).all()
    others = np.arange(20) != 5
    np.testing.assert_allclose(lower[others], np.linalg.cholesky(spd[others]), 1e-10, 1e-10)
    np.testing.assert_allclose(dets, np.linalg.det(a), 1e-9, 1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_they_run_in_loops_and_branches(form: FactorizationForm) -> None:
    a, b = ARGUMENTS["a"], ARGUMENTS["b"]

    def program(a: Any, b: Any, n: Any) -> Any:
        x = tracegraph.fori_loop(0, n, lambda i, x: x + np.linalg.solve(a, b - a @ x), b * 0)
        _, dets = tracegraph.scan(lambda c, k: (c, np.linalg.det(a + k)), 0, np.arange(3.0))
        found = tracegraph.cond(
            dets[0] > 0,
            lambda: np.linalg.cholesky(a @ a.T),
            lambda: np.linalg.inv(a) @ np.linalg.qr(a).Q,
            schedule="conditional",
        )
        return x, dets, found

    for given in (a, a[::-1]):
        found, expected = in_form(form, program, given, b, 3), program(given, b, 3)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, 1e-11, 1e-11)


def test_two_streams_and_scratch_of_each_launch() -> None:
    rng = np.random.default_rng(0)
    a = [rng.standard_normal((300, 300)) + 20 * np.eye(300) for _ in range(2)]
    for scratch in ("kept", "per_launch"):
        jitted = tracegraph.jit(np.linalg.inv, device="cuda", scratch=scratch)
        given = [tracegraph.asarray(x, device="cuda") for x in a]
        expected = [np.asarray(jitted(x)) for x in given]
        for x, wanted in zip(a, expected, strict=True):
            np.testing.assert_allclose(x @ wanted, np.eye(300), atol=1e-12)
        streams = [tracegraph.Stream() for _ in given]
        for _ in range(5):
            found = []
            for stream, x in zip(streams, given, strict=True):
                with tracegraph.stream(stream):
                    found.append(jitted(x))
            for got, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(got), wanted)


def test_systems_of_one_right_hand_side_are_solved_on_several_streams_at_once() -> None:
    solve = tracegraph.jit(lambda a, b: np.linalg.solve(a, b), device="cuda")
    given = [(well_conditioned(1000) + k * np.eye(1000), mixed((1000,), seed=k)) for k in range(4)]
    expected = [np.linalg.solve(a, b) for a, b in given]
    arrays = [[tracegraph.asarray(x, device="cuda") for x in pair] for pair in given]
    streams = [tracegraph.Stream("cuda") for _ in given]
    for _ in range(5):
        found = []
        for stream, pair in zip(streams, arrays, strict=True):
            with tracegraph.stream(stream):
                found.append(solve(*pair))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-9)
