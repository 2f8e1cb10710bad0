"""A Poisson equation with a coefficient that varies, solved by Fourier transforms in one graph.

On the periodic square, -∇·(a ∇u) = f is discretised pseudo-spectrally: derivatives are products
with wave numbers, those with `a` are taken on the grid. Conjugate gradients solve the system,
preconditioned by the inverse Laplacian, which Fourier transforms make diagonal; so the number of
steps hardly depends on the grid. All transforms, products and the test of convergence are one
`while_loop`: with an NVIDIA GPU a single launch of a CUDA graph that calls cuFFT; without, the same
plan runs on the host.

The solution is known. Its error falls faster than any power of the grid spacing, until rounding
is all that is left.

The method: Trefethen, "Spectral Methods in MATLAB", 2000, chapters 3 and 7.

Run: python examples/fft_poisson.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph

GRIDS = (8, 16, 32, 64, 256)
TOLERANCE = 1e-13  # of the residual, as a part of f
MOST_STEPS = 100


def problem(n):
    """A and f on a grid of n by n points, and the solution, whose mean is 0 there."""
    x, y = np.meshgrid(*2 * [2 * np.pi * np.arange(n) / n], indexing="ij")
    a, slope_of_a = 2 + np.sin(x + y), np.cos(x + y)  # the latter in both directions
    u = np.exp(np.sin(x) + np.cos(y))
    u_x, u_y = np.cos(x) * u, -np.sin(y) * u
    laplacian = (np.cos(x) ** 2 - np.sin(x) + np.sin(y) ** 2 - np.cos(y)) * u
    return a, -(a * laplacian + slope_of_a * (u_x + u_y)), u - u.mean()


def wave_numbers(n):
    """Those along both axes, 0 where the derivative of a real function has no such wave."""
    k = n * np.fft.fftfreq(n)
    k[n // 2] = 0
    return k[:, None], np.abs(k[: n // 2 + 1])


def solve(a, f):
    """The solution with mean 0, how many steps it took, and the residual as a part of f."""
    n = f.shape[0]
    k_x, k_y = wave_numbers(n)
    squares = k_x**2 + k_y**2
    inverse = np.where(squares > 0, 1 / np.where(squares > 0, squares, 1), 0)

    def applied(u):
        spectrum = np.fft.rfft2(u)
        u_x, u_y = (np.fft.irfft2(1j * k * spectrum) for k in (k_x, k_y))
        of_x, of_y = np.fft.rfft2(a * u_x), np.fft.rfft2(a * u_y)
        return -np.fft.irfft2(1j * (k_x * of_x + k_y * of_y))

    def preconditioned(r):
        return np.fft.irfft2(np.fft.rfft2(r) * inverse)

    limit = TOLERANCE**2 * np.sum(f * f)

    def unfinished(state):
        _, r, _, _, steps = state
        return (np.sum(r * r) > limit) & (steps < MOST_STEPS)

    def step(state):
        u, r, p, rho, steps = state
        q = applied(p)
        alpha = rho / np.sum(p * q)
        u, r = u + alpha * p, r - alpha * q
        z = preconditioned(r)
        following = np.sum(r * z)
        return u, r, z + (following / rho) * p, following, steps + 1

    f = np.fft.irfft2(np.fft.rfft2(f) * (squares > 0))  # what the derivatives can give
    p = preconditioned(f)
    start = 0 * f, f, p, np.sum(f * p), 0
    u, r, _, _, steps = tracegraph.while_loop(unfinished, step, start)
    return u, steps, np.sqrt(np.sum(r * r) / np.sum(f * f))


solver = tracegraph.jit(solve)


def error(n):
    """The largest error on a grid, the steps and the residual."""
    a, f, exact = problem(n)
    u, steps, residual = solver(a, f)
    return np.abs(np.asarray(u) - exact).max(), int(steps), float(residual)


def main():
    """Solve on finer and finer grids, print errors, and check that they fall."""
    print(f"device  {tracegraph.asarray(0.0).device}")
    print(f"{'grid':>11} {'error':>9} {'steps':>6} {'residual':>9} {'ms per call':>12}")
    errors = []
    for n in GRIDS:
        worst, steps, residual = error(n)
        errors.append(worst)
        a, f, _ = map(tracegraph.asarray, problem(n))
        repeats = 3
        start = time.perf_counter()
        for _ in range(repeats):
            solver(a, f)[0].synchronize()
        elapsed = (time.perf_counter() - start) / repeats
        size = f"{n} x {n}"
        print(f"{size:>11} {worst:9.1e} {steps:6} {residual:9.1e} {elapsed * 1e3:12.2f}")
    nodes = solver.lower(a, f).plan.node_counts
    print(f"graph nodes  {', '.join(f'{n} {kind}' for kind, n in sorted(nodes.items()))}")
    if not (errors[1] < errors[0] / 10 and errors[2] < errors[1] / 1e4 and errors[-1] < 1e-9):
        raise SystemExit("the error does not fall as it must")


if __name__ == "__main__":
    main()
