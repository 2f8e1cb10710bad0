"""`numpy.linalg` as CUDA graphs: residuals of all sizes, inside loops and branches, in lanes."""

from __future__ import annotations

from typing import Any

import linear_algebra_cases
import numpy as np
import pytest
from numpy_agreement import assert_close

import tracegraph
from lowering.plan.lapack import LapackRoutine
from lowering.plan.nodes import LibraryNode, walk
from lowering.planning.factorizations import FactorizationForm
from lowering.scheduling.overrides import override
from tracegraph import tree
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get

ARGUMENTS = linear_algebra_cases.ARGUMENTS
ILLEGAL = ("(r)", "v[:3]", "(v, v)", "(r, v)", "ind=0", "(v)", "full")
"""What marks expressions that NumPy refuses, or that are only refused when traced."""

LEGAL = [
    each
    for each in linear_algebra_cases.TABLES
    if not any(text in each for text in ILLEGAL)
    and each not in ("xp.linalg.solve(r, b)", "xp.linalg.matrix_power(r, 2)")
]


def on_gpu(function: Any, *arguments: Any) -> Any:
    return tree.map(np.asarray, tracegraph.jit(function, device="cuda")(*arguments))


@pytest.mark.parametrize("form", ["own", "library"])
@pytest.mark.parametrize("expression", LEGAL)
def test_expressions_equal_numpys(expression: str, form: FactorizationForm) -> None:
    def function(values: Any) -> Any:
        return eval(expression, {"xp": np, "np": np, **values})

    with np.errstate(all="ignore"):
        expected = tree.leaves(function(ARGUMENTS))
    found = tree.leaves(in_form(form, function, ARGUMENTS))
    for got, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got / 64, wanted / 64)  # sums are of another order


FORMS: list[FactorizationForm] = ["own", "library"]


def in_form(form: FactorizationForm, function: Any, *arguments: Any) -> Any:
    with override(factorizations=form):
        return on_gpu(function, *arguments)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 3, 32, 64, 100, 300])
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


def test_batches_of_small_matrices() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((10_000, 16, 16)) + 4 * np.eye(16)
    b = rng.standard_normal((10_000, 16, 1))
    np.testing.assert_allclose(on_gpu(np.linalg.solve, a, b), np.linalg.solve(a, b), 1e-9, 1e-9)
    spd = a @ a.mT
    lower = on_gpu(np.linalg.cholesky, spd)
    np.testing.assert_allclose(lower, np.linalg.cholesky(spd), 1e-9, 1e-9)


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
