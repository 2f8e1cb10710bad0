"""Eigenvalues and singular values as a GPU computes them: residuals of all kinds of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.planning.factorizations import FactorizationForm
from tests.cases.hard_matrices import MATRICES
from tests.helpers.agreement import planned_for_cuda
from tracegraph.ir.op import get

EIGH, SVD = get("eigh"), get("svd")

each_kind = pytest.mark.parametrize("kind", MATRICES)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def assert_near(got: Any, wanted: Any, size: Any, dtype: Any) -> None:
    """Within units of rounding times the extent, relative to a size, computed in wide numbers."""
    unit = 30 * max(got.shape[-1], 3) * float(np.finfo(dtype).eps)
    assert (np.abs(got - wanted) <= unit * size + 4 * np.finfo(dtype).smallest_subnormal).all()


def wide(*xs: Any) -> list[Any]:
    return [np.asarray(x, np.clongdouble if np.iscomplexobj(x) else np.longdouble) for x in xs]


@each_dtype
@each_kind
def test_eigenvectors_are_orthonormal_and_have_small_residuals(kind: str, dtype: str) -> None:
    for n in (1, 2, 5, 8, 33) if dtype == "float64" else (3, 9):
        a = np.asarray(MATRICES[kind](n, dtype), dtype)
        lower = np.tril(a)
        h = lower + adjoint(np.tril(a, -1)) - 1j * np.diag(np.diag(a).imag)
        values, vectors = planned_for_cuda(EIGH, (a,), {"vectors": True}, "own")
        assert (np.diff(values) >= 0).all()
        np.testing.assert_array_equal(
            values, planned_for_cuda(EIGH, (a,), {"vectors": False}, "own")
        )
        h, w, v = wide(h, values, vectors)
        assert_near(h @ v, v * w, np.abs(h).max() * n**0.5, dtype)
        assert_near(adjoint(v) @ v, np.eye(n), 1, dtype)


@each_dtype
@each_kind
def test_singular_vectors_are_orthonormal_and_have_small_residuals(kind: str, dtype: str) -> None:
    shapes = ((1, 1), (5, 5), (8, 3), (4, 9), (33, 20))
    for m, n in shapes if dtype == "float64" else ((7, 7), (9, 4)):
        assert_decomposes(np.asarray(MATRICES[kind](max(m, n), dtype), dtype)[:m, :n], "own")


@each_kind
def test_singular_vectors_where_a_kernel_rotates(kind: str) -> None:
    for dtype, m, n in (("float64", 8, 3), ("float64", 4, 9), ("complex128", 5, 5)):
        assert_decomposes(np.asarray(MATRICES[kind](max(m, n), dtype), dtype)[:m, :n], "small")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((1025, 4), "complex128"),
        ((40, 1100), "float32"),
        ((1300, 33), "float32"),
        ((1030, 120), "float32"),
    ],
)
def test_tall_matrices_are_split(shape: tuple[int, int], dtype: str) -> None:
    a = np.asarray(MATRICES["random"](max(shape), dtype), dtype)[: shape[0], : shape[1]]
    assert_decomposes(a, "small")


def assert_decomposes(a: Any, form: FactorizationForm) -> None:
    (m, n), dtype = a.shape, a.dtype
    u, values, vh = planned_for_cuda(SVD, (a,), {"vectors": True}, form)
    assert (np.diff(values) <= 0).all()
    assert (values >= 0).all()
    alone = planned_for_cuda(SVD, (a,), {"vectors": False}, form)
    np.testing.assert_allclose(values, alone, 0, 8 * np.finfo(dtype).eps * values.max())
    a, u, values, vh = wide(a, u, values, vh)
    assert_near(u * values @ vh, a, np.abs(a).max() * n**0.5, dtype)
    assert_near(adjoint(u) @ u, np.eye(min(m, n)), 1, dtype)
    assert_near(vh @ adjoint(vh), np.eye(min(m, n)), 1, dtype)


@pytest.mark.parametrize("op", [EIGH, SVD], ids=["eigh", "svd"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_spoils_no_other(op: Any, bad: float) -> None:
    a = np.stack([np.diag([1.0, 2.0, 3.0])] * 3)
    a[1, 2, 0] = bad
    results = planned_for_cuda(op, (a,), {"vectors": True}, "own")
    values = results[0] if op is EIGH else results[1]
    for x in results:
        assert np.isnan(x[1]).all()
    np.testing.assert_array_equal(np.sort(values[::2]), [[1, 2, 3]] * 2)


def test_the_upper_triangle_is_not_read() -> None:
    a = np.array([[1.0, np.nan], [2.0, 1.0]])
    values, vectors = planned_for_cuda(EIGH, (a,), {"vectors": True}, "own")
    np.testing.assert_allclose(values, [-1, 3], rtol=1e-15)
    np.testing.assert_allclose(np.abs(vectors), 0.5**0.5, rtol=1e-15)
