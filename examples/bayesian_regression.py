"""Bayesian linear regression by Hamiltonian Monte Carlo, next to the posterior in closed form.

Weights with a normal prior explain measurements with normal errors; the columns of the design are
powers, so that weights are strongly correlated. A chain whose mass matrix is the curvature of the
posterior moves as if they were not. The matrix is factored in the graph (`np.linalg.cholesky`): its
factor makes momenta, and solves for velocities. `grad` of the log density moves a chain, a `scan`
makes its draws, `vmap` makes it many. With an NVIDIA GPU all chains are a single launch of a CUDA
graph; without, the same plan runs on the host.

The posterior is normal, with a mean and a covariance that are known: the draws must have both.

The model: Bishop, "Pattern Recognition and Machine Learning", 2006, section 3.3. The sampler: Neal,
"MCMC using Hamiltonian dynamics", 2011.

Run: python examples/bayesian_regression.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph
from tracegraph import random

CHAINS = 64
DRAWS = 400
LEAPS = 8
STEP = 0.2

POINTS, WEIGHTS = 60, 6
ERROR, PRIOR = 0.2, 2.0  # standard deviations


def data(seed):
    """A design of powers from 0 on, and measurements."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-1, 1, POINTS)
    design = x[:, None] ** np.arange(WEIGHTS)
    return design, design @ rng.normal(0, PRIOR, WEIGHTS) + ERROR * rng.normal(size=POINTS)


def log_density(weights, design, measurements):
    """The logarithm of the posterior density, but for a constant."""
    misfit = (measurements - design @ weights) / ERROR
    return -(misfit @ misfit) / 2 - (weights @ weights) / (2 * PRIOR**2)


def curvature(design):
    """Minus the second derivative of the log density: the precision of the posterior."""
    return design.T @ design / ERROR**2 + np.eye(WEIGHTS) / PRIOR**2


def posterior(design, measurements):
    """The mean and the covariance in closed form."""
    covariance = np.linalg.inv(curvature(design))
    return covariance @ (design.T @ measurements) / ERROR**2, covariance


def chain(key, design, measurements, draws):
    """The weights, one row for each draw, and the part of the moves that were accepted."""
    factor = np.linalg.cholesky(curvature(design))

    def density(weights):
        return log_density(weights, design, measurements)

    def velocity(momentum):
        return tracegraph.linalg.cho_solve((factor, True), momentum)

    def energy(weights, momentum):
        return (momentum @ velocity(momentum)) / 2 - density(weights)

    def leap(_, state):
        weights, momentum = state
        momentum = momentum + STEP / 2 * tracegraph.grad(density)(weights)
        weights = weights + STEP * velocity(momentum)
        return weights, momentum + STEP / 2 * tracegraph.grad(density)(weights)

    def draw(carry, key):
        weights, accepted = carry
        of_momentum, of_choice = random.split(key)
        momentum = factor @ random.normal(of_momentum, (WEIGHTS,))
        moved, last = tracegraph.fori_loop(0, LEAPS, leap, (weights, momentum))
        gain = energy(weights, momentum) - energy(moved, last)
        accept = np.log(1 - random.uniform(of_choice)) < gain
        weights = np.where(accept, moved, weights)
        return (weights, accepted + accept), weights

    of_start, of_draws = random.split(key)
    start = PRIOR * random.normal(of_start, (WEIGHTS,))
    (_, accepted), rows = tracegraph.scan(draw, (start, 0), random.split(of_draws, draws))
    return rows, accepted / draws


def sample(keys, design, measurements, draws):
    """A chain for each key."""
    return tracegraph.vmap(lambda key: chain(key, design, measurements, draws))(keys)


sampled = tracegraph.jit(sample, static_argnums=3)


def main():
    """Sample, and compare the mean and the covariance with those in closed form."""
    design, measurements = data(3)
    keys = np.asarray(random.split(random.key(7), CHAINS))
    np.asarray(sampled(keys, design, measurements, DRAWS)[1])
    began = time.perf_counter()
    rows, accepted = map(np.asarray, sampled(keys, design, measurements, DRAWS))
    elapsed = time.perf_counter() - began

    kept = rows[:, DRAWS // 4 :].reshape(-1, WEIGHTS)
    mean, covariance = posterior(design, measurements)
    spread = np.sqrt(np.diag(covariance))
    off_mean = np.abs(kept.mean(axis=0) - mean) / spread
    off_covariance = np.abs(np.cov(kept.T) - covariance) / np.outer(spread, spread)
    counts = sampled.lower(keys, design, measurements, DRAWS).plan.node_counts
    print(f"chains             {CHAINS}, of {DRAWS} draws, {LEAPS} steps each")
    print(f"graph nodes        {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"accepted           {accepted.mean():.2f}")
    print(f"error of the mean  {off_mean.max():.3f} standard deviations")
    print(f"of the covariance  {off_covariance.max():.3f}")
    print(f"time per call      {elapsed * 1e3:.0f} ms")
    if off_mean.max() > 0.05 or off_covariance.max() > 0.06 or accepted.mean() < 0.8:
        raise SystemExit("the draws do not have the distribution that they must have")


if __name__ == "__main__":
    main()
