"""Published kernels of linear algebra: triangular loops, in place, over static ranges."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import normal, positive, program

DOMINANT = positive(5, 5) @ positive(5, 5).T + 5 * np.eye(5)
"""A symmetric matrix that is positive definite."""


@program(DOMINANT, ulps=256)
def cholesky(a):
    a = a.copy()
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return np.tril(a)


@program(DOMINANT, ulps=256)
def lower_upper(a):
    a, n = a.copy(), a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


@program(DOMINANT, positive(5), ulps=256)
def lower_upper_solve(a, b):
    lu, n = a.copy(), a.shape[0]
    for k in range(n - 1):
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    x, y = np.zeros_like(b), np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - lu[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - lu[i, i + 1 :] @ x[i + 1 :]) / lu[i, i]
    return x


@program(DOMINANT[:, :4], ulps=1024)
def gram_schmidt(a):
    a = a.copy()
    q = np.zeros_like(a)
    r = np.zeros_like(a, shape=(a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@program(np.array([0.5, 0.3, 0.21, 0.1, 0.04]), ulps=512)
def durbin(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@program(0.5, 1.5, normal(5, 5), normal(5, 3, seed=1), ulps=64)
def symmetric_rank_k(alpha, beta, c, a):
    c = c.copy()
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]
    return c


@program(0.5, 1.5, positive(4, 3), positive(4, 4, seed=1), positive(4, 3, seed=2), ulps=32)
def symmetric_product(alpha, beta, c, a, b):
    c = c.copy()
    terms = np.empty_like(c, shape=c.shape[1])
    c *= beta
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            terms[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * terms
    return c


@program(0.5, positive(4, 4), positive(4, 3, seed=1), ulps=32)
def triangular_product(alpha, a, b):
    b = b.copy()
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= alpha
    return b


@program(positive(4, 4), *(positive(4, seed=k) for k in range(1, 7)), ulps=64)
def vector_products(a, u1, v1, u2, v2, y, z):
    a = a.copy()
    a += np.outer(u1, v1) + np.multiply.outer(u2, v2)
    x = 0.5 * y @ a + z
    w = 1.5 * a @ x
    return a, x, w


@program(DOMINANT, positive(5), ulps=4096)
def conjugate_gradients(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p, old = r.copy(), r @ r
    for _ in range(3):
        ap = a @ p
        alpha = old / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / old) * p
        old = new
    return x
