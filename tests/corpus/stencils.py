"""Published kernels on grids: stencils in place, sweeps, and recursive filters."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import normal, positive, program


@program(normal(7, 7), normal(7, 7, seed=1), ulps=1024)
def jacobi_2d(a, b):
    a, b = a.copy(), b.copy()
    for _ in range(2):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return a, b


@program(positive(5, 5), ulps=16)
def seidel_2d(a):
    a, n = a.copy(), a.shape[0]
    for i in range(1, n - 1):
        a[i, 1:-1] += (
            a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:]
            + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
        )  # fmt: skip
        for j in range(1, n - 1):
            a[i, j] += a[i, j - 1]
            a[i, j] /= 9.0
    return a


@program(positive(5, 6), positive(5, 6, seed=1), positive(5, 6, seed=2), positive(3), ulps=8192)
def fdtd_2d(ex, ey, hz, fict):
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(3):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


@program(positive(5, 5, 5), ulps=16)
def heat_3d(a):
    a = a.copy()
    b = a.copy()
    for source, target in ((a, b), (b, a)):
        inner = source[1:-1, 1:-1, 1:-1]
        target[1:-1, 1:-1, 1:-1] = (
            0.125 * (source[2:, 1:-1, 1:-1] - 2.0 * inner + source[:-2, 1:-1, 1:-1])
            + 0.125 * (source[1:-1, 2:, 1:-1] - 2.0 * inner + source[1:-1, :-2, 1:-1])
            + 0.125 * (source[1:-1, 1:-1, 2:] - 2.0 * inner + source[1:-1, 1:-1, :-2])
            + inner
        )
    return a, b


@program(positive(6, 6), ulps=32)
def alternating_directions(u):
    u = u.copy()
    v, p, q = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    n, a, b, c = u.shape[0], -0.25, 1.5, -0.25
    for now, new in ((u, v), (v, u)):
        new[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = new[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -c / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (
                -a * now[j, :-2] + (1.0 + 2.0 * a) * now[j, 1:-1] - c * now[j, 2:]
                - a * q[1:-1, j - 1]
            ) / (a * p[1:-1, j - 1] + b)  # fmt: skip
        new[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            new[j, 1:-1] = p[1:-1, j] * new[j + 1, 1:-1] + q[1:-1, j]
    return u


@program(normal(8, 8, 2), positive(4, 4, 2), ulps=2048)
def horizontal_diffusion(field, coefficients):
    rows, columns, _ = coefficients.shape
    laplacian = 4.0 * field[1 : rows + 3, 1 : columns + 3, :] - (
        field[2 : rows + 4, 1 : columns + 3, :]
        + field[:rows + 2, 1 : columns + 3, :]
        + field[1 : rows + 3, 2 : columns + 4, :]
        + field[1 : rows + 3, : columns + 2, :]
    )  # fmt: skip
    flux = laplacian[1:, 1:-1, :] - laplacian[:-1, 1:-1, :]
    slope = field[2 : rows + 3, 2 : columns + 2, :] - field[1 : rows + 2, 2 : columns + 2, :]
    x_flux = np.where(flux * slope > 0, 0, flux)
    flux = laplacian[1:-1, 1:, :] - laplacian[1:-1, :-1, :]
    slope = field[2 : rows + 2, 2 : columns + 3, :] - field[2 : rows + 2, 1 : columns + 2, :]
    y_flux = np.where(flux * slope > 0, 0, flux)
    spread = x_flux[1:, :, :] - x_flux[:-1, :, :] + y_flux[:, 1:, :] - y_flux[:, :-1, :]
    return field[2 : rows + 2, 2 : columns + 2, :] - coefficients * spread


@program(
    positive(3, 3, 4), positive(3, 3, 4, seed=1), positive(4, 3, 4, seed=2),
    positive(3, 3, 4, seed=3), ulps=8192,
)  # fmt: skip
def vertical_advection(stage, position, wind, tendency):
    levels = stage.shape[2]
    upper, right = np.empty_like(stage), np.empty_like(stage)
    result = np.empty_like(stage)
    for k in range(levels):
        below = 0.25 * (wind[1:, :, k] + wind[:-1, :, k]) if k else 0.0
        above = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1]) if k + 1 < levels else 0.0
        lower = -0.6 * below
        change = 0.0
        if k:
            change = change - lower * (stage[:, :, k - 1] - stage[:, :, k])
        if k + 1 < levels:
            change = change - 0.4 * above * (stage[:, :, k + 1] - stage[:, :, k])
        diagonal = 3.0 - lower - 0.6 * above
        upper[:, :, k] = 0.6 * above
        right[:, :, k] = 3.0 * position[:, :, k] + tendency[:, :, k] + change
        if k:
            divided = 1.0 / (diagonal - upper[:, :, k - 1] * lower)
            right[:, :, k] = (right[:, :, k] - right[:, :, k - 1] * lower) * divided
        else:
            divided = 1.0 / diagonal
            right[:, :, k] *= divided
        upper[:, :, k] *= divided
    for k in range(levels - 1, -1, -1):
        last = k == levels - 1
        data = right[:, :, k] - (0.0 if last else upper[:, :, k] * data)  # noqa: F821
        result[:, :, k] = 3.0 * (data - position[:, :, k])
    return result


@program(positive(5, 5), positive(5, 5, seed=1), positive(5, 5, seed=2), ulps=512)
def cavity_flow(u, v, p):
    u, v, p, dt, dx, dy, rho, nu = u.copy(), v.copy(), p.copy(), 0.001, 0.1, 0.1, 1.0, 0.1
    for _ in range(2):
        un, vn = u.copy(), v.copy()
        b = np.zeros_like(u)
        du, dv = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx), (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        cross = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        b[1:-1, 1:-1] = rho * ((du + dv) / dt - du**2 - 2 * cross - dv**2)
        for _ in range(2):
            pn = p.copy()
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
            ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
            p[:, -1], p[0, :], p[:, 0], p[-1, :] = p[:, -2], p[1, :], p[:, 1], 0
        for w, wn, slope in (
            (u, un, p[1:-1, 2:] - p[1:-1, :-2]),
            (v, vn, p[2:, 1:-1] - p[:-2, 1:-1]),
        ):
            middle = wn[1:-1, 1:-1]
            w[1:-1, 1:-1] = (
                middle
                - un[1:-1, 1:-1] * dt / dx * (middle - wn[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / dy * (middle - wn[:-2, 1:-1])
                - dt / (2 * rho * dx) * slope
                + nu * dt / dx**2 * (wn[1:-1, 2:] - 2 * middle + wn[1:-1, :-2])
                + nu * dt / dy**2 * (wn[2:, 1:-1] - 2 * middle + wn[:-2, 1:-1])
            )
        for w in (u, v):
            w[0, :] = w[:, 0] = w[:, -1] = 0
        u[-1, :], v[-1, :] = 1, 0
    return u, v, p


@program(positive(4, 5), ulps=64)
def recursive_filter(image):
    k, a1, a2 = 0.3, 0.9, -0.2
    first, second = np.empty_like(image), np.empty_like(image)
    first[:, 0] = k * image[:, 0]
    first[:, 1] = k * image[:, 1] + a1 * first[:, 0]
    for j in range(2, image.shape[1]):
        first[:, j] = k * image[:, j] + a1 * first[:, j - 1] + a2 * first[:, j - 2]
    second[:, -1] = 0.0
    second[:, -2] = k * image[:, -1]
    for j in range(image.shape[1] - 3, -1, -1):
        second[:, j] = k * image[:, j + 1] + a1 * second[:, j + 1] + a2 * second[:, j + 2]
    return first + second


@program(positive(3, 6, 6), ulps=64)
def lattice_boltzmann(populations):
    f = populations.copy()
    weights, velocities = np.array([0.5, 0.25, 0.25]), np.array([[0, 0], [1, 0], [0, -1]])
    obstacle = np.zeros(f.shape[1:], bool)
    obstacle[2:4, 2] = True
    for _ in range(2):
        for direction, (x, y) in enumerate(velocities):
            f[direction] = np.roll(np.roll(f[direction], x, axis=0), y, axis=1)
        bounced = f[:, obstacle][[0, 2, 1]]
        density = f.sum(axis=0)
        flow = np.einsum("dk,dij->kij", velocities, f) / density
        along = np.tensordot(velocities, flow, axes=1)
        f += -0.5 * (f - density * weights[:, None, None] * (1 + along + along**2))
        f[:, obstacle] = bounced
    return f
