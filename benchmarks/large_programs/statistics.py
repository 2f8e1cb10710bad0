"""Statistics: a mixture of Gaussians, and a search whose steps are drawn from one.

Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977;
Hansen, "The CMA evolution strategy: a tutorial", 2016.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .at_sizes import at_sizes


def _clusters(draw, n, dtype):
    """Points around some centers, a guess of these, and the improvement that is small enough."""
    features, centers = (16, 16) if n > 10_000 else (3, 4)
    true = draw.rng.standard_normal((centers, features)) * 4
    points = true[draw.rng.integers(0, centers, n)] + draw.rng.standard_normal((n, features))
    guess = true + 0.5 * draw.rng.standard_normal((centers, features))
    tolerance = np.asarray(1e-4 if dtype == np.float32 else 1e-9, dtype)
    return points.astype(dtype), guess.astype(dtype), tolerance


def mixture(language, functions, steps):
    """Means, covariances and weights of normal distributions by expectation maximization."""
    xp = language.xp

    def fit(points, means, tolerance):
        n, features = points.shape
        centers = means.shape[0]
        unit = xp.eye(features, dtype=points.dtype)

        def log_density(mean, covariance):
            factor = xp.linalg.cholesky(covariance)
            z = functions.solve_lower(factor, (points - mean).T)
            log_volume = xp.log(xp.diagonal(factor)).sum()
            return -0.5 * (z * z).sum(0) - log_volume - 0.5 * features * float(np.log(2 * np.pi))

        def improve(state):
            means, covariances, weights, before, _, count = state
            densities = language.transforms.vmap(log_density)(means, covariances).T
            densities = densities + xp.log(weights)
            total = functions.logsumexp(densities, 1)
            shares = xp.exp(densities - total[:, None])
            sizes = shares.sum(0)
            means = (shares.T @ points) / sizes[:, None]
            apart = points[None] - means[:, None]
            squares = xp.einsum("nk,kni,knj->kij", shares, apart, apart)
            covariances = squares / sizes[:, None, None] + 1e-6 * unit
            likelihood = xp.mean(total)
            change = xp.abs(likelihood - before)
            return means, covariances, sizes / n, likelihood, change, count + 1

        def unfinished(state):
            return (state[4] > tolerance) & (state[5] < steps)

        start = (
            means,
            xp.broadcast_to(unit, (centers, features, features)),
            xp.full_like(means[:, 0], 1 / centers),
            language.scalar(-1e30, points),
            language.scalar(np.inf, points),
            0,
        )
        found = language.loops.while_loop(unfinished, improve, start)
        return *found[:4], found[5]

    return fit


GENERATION = 32
GENERATIONS = 100


def _search(draw, n, dtype):
    """Where the search begins, and all its random numbers."""
    normal = draw.rng.standard_normal((GENERATIONS, GENERATION, n))
    return np.full(n, 3.0, dtype), normal.astype(dtype)


def evolution(language, functions, steps):
    """CMA-ES on an ellipsoid; each generation takes the eigenvectors of its covariances."""
    xp = language.xp

    def minimize(mean, draws):
        n = mean.shape[0]
        parents = GENERATION // 2
        ranks = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        shares = (ranks / ranks.sum()).astype(mean.dtype)
        effective = float(1 / (shares**2).sum())
        pace = (effective + 2) / (n + effective + 5)
        damping = 1 + pace + 2 * max(0.0, ((effective - 1) / (n + 1)) ** 0.5 - 1)
        path_pace = (4 + effective / n) / (n + 4 + 2 * effective / n)
        one = 2 / ((n + 1.3) ** 2 + effective)
        many = min(1 - one, 2 * (effective - 2 + 1 / effective) / ((n + 2) ** 2 + effective))
        expected = n**0.5 * (1 - 1 / (4 * n) + 1 / (21 * n * n))
        scales = (10.0 ** (2 * np.arange(n) / (n - 1))).astype(mean.dtype)

        def generation(state, z):
            mean, sigma, covariance, path, sigma_path = state
            values, vectors = xp.linalg.eigh(covariance)
            spread = xp.sqrt(xp.maximum(values, 1e-20))
            y = ((z @ vectors) * spread) @ vectors.T
            x = mean + sigma * y
            costs = (scales * x * x).sum(1)
            best = xp.argsort(costs)[:parents]
            chosen = y[best]
            move = shares @ chosen
            mean = mean + sigma * move
            whitened = ((move @ vectors) / spread) @ vectors.T
            sigma_path = (1 - pace) * sigma_path + (pace * (2 - pace) * effective) ** 0.5 * whitened
            path = (1 - path_pace) * path + (path_pace * (2 - path_pace) * effective) ** 0.5 * move
            weighted = (shares[:, None] * chosen).T @ chosen
            covariance = (
                (1 - one - many) * covariance + one * xp.outer(path, path) + many * weighted
            )
            length = xp.sqrt((sigma_path * sigma_path).sum())
            sigma = sigma * xp.exp((pace / damping) * (length / expected - 1))
            return (mean, sigma, covariance, path, sigma_path), xp.min(costs)

        nothing = xp.zeros_like(mean)
        start = mean, language.scalar(0.5, mean), xp.eye(n, dtype=mean.dtype), nothing, nothing
        _, costs = language.loops.scan(generation, start, draws[:steps])
        return costs

    return minimize


PROGRAMS = (
    *at_sizes(
        "mixture",
        "a mixture of Gaussians for n points by expectation maximization",
        mixture,
        _clusters,
        small=(1000, 30),
        large=(50_000, 30),
        agrees=within(2e-2, 1e-6, steps=0.2),
    ),
    *at_sizes(
        "evolution",
        "CMA-ES in n dimensions",
        evolution,
        _search,
        small=(16, 50),
        large=(64, GENERATIONS),
        agrees=within(0.5, 1e-3),
    ),
)
