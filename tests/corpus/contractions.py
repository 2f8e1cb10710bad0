"""Matrix products of every kind. Numbers are whole, so that sums are exact in any order."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import normal, positive, program, whole

for _dtype in ("f4", "f8", "c8", "c16", "i4", "i8", "u1", "bool", "f2"):

    @program(
        whole(5, 7, dtype=_dtype, low=0),
        whole(7, 3, dtype=_dtype, low=0, seed=1),
        name=f"matmul_{_dtype}",
    )
    def matmul(x, y):
        return x @ y


@program(whole(5, 7), whole(5, 4, seed=1), whole(7, seed=2))
def products_of_transposes_and_vectors(x, y, v):
    return x.T @ y, y.T @ x, x @ v, v @ x.T, v @ v, np.dot(x, v), np.outer(v, v)


@program(whole(2, 3, 4), whole(2, 4, 5, seed=1), whole(4, 2, seed=2))
def batched_products(x, y, w):
    return x @ y, x @ w, np.matmul(y.transpose(0, 2, 1), x.transpose(0, 2, 1)), x[0] @ y


@program(whole(8, 8), whole(8, 8, seed=1))
def slices_as_operands(x, y):
    return x[:4, 2:5] @ y[1:4], x[::2] @ y[:, ::3], x[::-1, :3] @ y[3:6], x[2] @ y


@program(whole(4, 4), whole(4, 4, seed=1))
def products_among_elementwise_work(x, y):
    return (x + 1) @ (y * 2) - x, np.maximum(x @ y, 0) @ x.T, (x @ y).sum(axis=0)


@program(whole(3, 4, low=1), whole(4, 5, low=1, seed=1), whole(3, 3, low=1, seed=2))
def einsum(x, y, z):
    return (
        np.einsum("ij,jk->ik", x, y),
        np.einsum("ij,jk->ki", x, y),
        np.einsum("ii->i", z),
        np.einsum("ij,ij->", x, x),
        np.einsum("ij,kl->ikjl", x, z),
        np.tensordot(x, y, 1),
    )


@program(whole(0, 3), whole(3, 0, seed=1), whole(3, 2))
def products_of_nothing(x, y, z):
    return x @ y, y @ x, x @ z


@program(normal(40, 30), normal(30, 20, seed=1), 1e-12)
def product_within_rounding(x, y, tolerance):
    found = x @ y
    exact = (x[:, :, None] * y).sum(axis=1)
    return np.abs(found - exact).max() < tolerance


@program(positive(64, 64, dtype="f4"), ulps=64)
def attention(x):
    scores = x @ x.T / 8
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ x
