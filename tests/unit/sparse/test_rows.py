"""CSR: how it is made, its products and their derivatives, against dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.errors import ShapeDependentError, UnsupportedArgumentError
from tracegraph.sparse import CSR

RNG = np.random.default_rng(3)


def dense(shape: tuple[int, int], dtype: Any = np.float64) -> Any:
    kept = RNG.random(shape) < 0.35
    values = RNG.integers(-9, 10, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.integers(-9, 10, shape)
    return np.where(kept, values, 0).astype(dtype)


PRODUCTS = {
    "dense": lambda a, x, y: a.todense() if isinstance(a, CSR) else a + 0,
    "a @ x": lambda a, x, y: a @ x[:, 0],
    "a @ X": lambda a, x, y: a @ x,
    "y @ a": lambda a, x, y: y[0] @ a,
    "Y @ a": lambda a, x, y: y @ a,
    "transposed": lambda a, x, y: a.T.todense() if isinstance(a, CSR) else a.T,
    "a.T @ y": lambda a, x, y: a.T @ y[0],
    "x @ a.T": lambda a, x, y: x[:, 0] @ a.T,
    "a.T.T @ x": lambda a, x, y: a.T.T @ x,
}


@pytest.mark.parametrize("shape", [(5, 7), (1, 4), (6, 1), (4, 0), (0, 3)])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("product", PRODUCTS)
def test_products_are_those_of_the_dense_matrix(product: str, dtype: Any, shape: Any) -> None:
    function, d = PRODUCTS[product], dense(shape, dtype)
    x, y = dense((shape[1], 3), dtype), dense((2, shape[0]), dtype)
    a, wanted = CSR.from_dense(d), function(d, x, y)
    for run in (function, tracegraph.jit(function, device="host")):
        found = np.asarray(run(a, x, y))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_traced_matrix_has_room_for_more_elements(product: str) -> None:
    function, d = PRODUCTS[product], dense((5, 7))
    x, y = dense((7, 3)), dense((2, 5))
    run = tracegraph.jit(lambda d, x, y: function(CSR.from_dense(d, nnz=30), x, y), device="host")
    np.testing.assert_array_equal(np.asarray(run(d, x, y)), function(d, x, y))


def test_a_matrix_is_made_of_coordinates() -> None:
    rows, columns = np.array([2, 0, 2, 1, 2]), np.array([1, 3, 1, 0, 0])
    data = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    wanted = np.zeros((3, 4))
    np.add.at(wanted, (rows, columns), data)
    np.testing.assert_array_equal(CSR.from_coo(data, rows, columns, (3, 4)).todense(), wanted)
    made = tracegraph.jit(lambda *x: CSR.from_coo(*x, (3, 4)), device="host")(data, rows, columns)
    assert isinstance(made, CSR)
    np.testing.assert_array_equal(made @ np.eye(4), wanted)
    dropped = tracegraph.jit(lambda r: CSR.from_coo(data, r, columns, (3, 4)).todense())(
        np.array([2, -1, 2, 1, 7])
    )
    np.testing.assert_array_equal(dropped, [[0, 0, 0, 0], [8, 0, 0, 0], [0, 5, 0, 0]])


def test_scipys_arrays() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    made = scipy_sparse.random_array((30, 20), density=0.2, rng=np.random.default_rng(1))
    for form in ("csr", "csc", "coo"):
        a = CSR.from_scipy(made.asformat(form))
        np.testing.assert_allclose(a @ np.arange(20.0), made @ np.arange(20.0), rtol=1e-14)
        assert a.nnz == made.nnz
    with pytest.raises(TypeError, match="a sparse array of SciPy, got ndarray; for a dense one"):
        CSR.from_scipy(np.eye(3))


def test_slopes_are_those_of_the_dense_product() -> None:
    d, x, w = dense((5, 7)), RNG.normal(size=7), RNG.normal(size=5)
    a = CSR.from_dense(d)

    def weighed(data: Any, x: Any) -> Any:
        return np.sum(w * (CSR(data, a.indices, a.indptr, a.shape) @ x) ** 2)

    of_data, of_x = tracegraph.grad(weighed, argnums=(0, 1))(a.data, x)
    residual = 2 * w * (d @ x)
    np.testing.assert_allclose(of_x, residual @ d, rtol=1e-13)
    np.testing.assert_allclose(of_data, np.outer(residual, x)[d != 0], rtol=1e-13)
    transposed = tracegraph.grad(lambda y: np.sum((y @ a) ** 2))(w)
    np.testing.assert_allclose(transposed, 2 * d @ (w @ d), rtol=1e-13)


def test_products_are_mapped_over_lanes() -> None:
    d, x = dense((5, 7)), RNG.normal(size=(4, 7))
    a = CSR.from_dense(d)
    np.testing.assert_allclose(tracegraph.vmap(lambda x: a @ x)(x), x @ d.T, rtol=1e-13)
    data = np.stack([a.data, 2 * a.data])
    found = tracegraph.vmap(lambda data: CSR(data, a.indices, a.indptr, a.shape) @ x[0])(data)
    np.testing.assert_allclose(found, np.stack([d @ x[0], 2 * (d @ x[0])]), rtol=1e-13)


def test_conjugate_gradients_take_a_sparse_operator() -> None:
    n = 40
    d = 2.5 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    b = np.arange(float(n))

    @tracegraph.jit(device="host")
    def solve(a: CSR, b: Any) -> Any:
        return tracegraph.linalg.cg(lambda x: a @ x, b, rtol=1e-12)

    x, info = solve(CSR.from_dense(d), b)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.solve(d, b), rtol=1e-9)


def test_eager_arrays_on_the_left() -> None:
    d = dense((5, 7))
    y = tracegraph.asarray(np.arange(5.0))
    np.testing.assert_array_equal(np.asarray(y @ CSR.from_dense(d)), np.arange(5.0) @ d)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CSR([1.0], [0, 1], [0, 1], (1, 2)), ValueError, r"shapes \(1,\) and \(2,\)"),
        (lambda: CSR([1.0], [0], [0, 1], (2, 2)), ValueError, r"must have the shape \(3,\)"),
        (lambda: CSR([1.0], [2], [0, 1], (1, 2)), ValueError, "indices .* from 0 to 1, got 2"),
        (lambda: CSR([1.0], [0], [0, 5], (1, 2)), ValueError, "indptr .* from 0 to 1, got 5"),
        (lambda: CSR([1.0], [0.0], [0, 1], (1, 2)), TypeError, "must be integers, got float64"),
        (lambda: CSR([1.0], [0], [0, 1], (1, -2)), ValueError, "two static integers from 0"),
        (lambda: CSR.from_dense(np.ones(3)), ValueError, r"made of a matrix, got shape \(3,\)"),
        (lambda: CSR.from_coo([1.0], [2], [0], (2, 2)), ValueError, "rows .* from 0 to 1, got 2"),
        (lambda: CSR.from_coo([1.0], [2, 1], [0], (2, 2)), ValueError, "vectors of one length"),
        (
            lambda: CSR.from_dense(np.eye(3)) @ np.ones(2),
            ValueError,
            "with 3 elements along axis 0",
        ),
        (lambda: np.ones((3, 2)) @ CSR.from_dense(np.eye(3)), ValueError, "elements along axis 1"),
        (
            lambda: tracegraph.jit(lambda d: CSR.from_dense(d).todense())(np.eye(3)),
            ShapeDependentError,
            r"CSR.from_dense\(a, nnz=n\)",
        ),
    ],
)
def test_misuse(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_operators_leave_sparse_matrices_of_scipy_to_scipy() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(tracegraph.asarray(x) @ a, x @ a)
    np.testing.assert_array_equal(a @ tracegraph.asarray(x), a @ x)
    with pytest.raises(UnsupportedArgumentError, match=r"CSR\.from_scipy"):
        tracegraph.jit(lambda a: a)(a)
