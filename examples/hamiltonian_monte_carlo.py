"""Hamiltonian Monte Carlo with many chains, as one graph.

The hierarchical model of the eight schools: the effects of coaching in eight schools, known with an
error, have a common mean μ and spread τ. `grad` of the log density moves a chain, a `scan` makes
its draws, and `vmap` makes it many chains, each with random numbers of its own. These come from a
hash of a counter, so that chains need no state of a generator. With an NVIDIA GPU all chains are a
single launch of a CUDA graph; without, the same plan runs on the host.

The model: Gelman et al., "Bayesian Data Analysis", 3rd edition, section 5.5, in which effects are
written as μ + τ·z with standard normal z; half-Cauchy prior of scale 5 of τ, normal prior of scale
5 of μ. The sampler: Neal, "MCMC using Hamiltonian dynamics", 2011. The hash: Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", 2014.

Run: python examples/hamiltonian_monte_carlo.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph

CHAINS = 256
DRAWS = 500
WARM_UP = 100
LEAPS = 12
STEP = 0.25

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SIZE = 2 + EFFECTS.size
"""Of a position: μ / 5, log τ, and z of each school."""


def log_density(position):
    """The logarithm of the posterior density, but for a constant."""
    mean, log_spread, z = 5 * position[0], position[1], position[2:]
    spread = np.exp(log_spread)
    misfit = (EFFECTS - mean - spread * z) / ERRORS
    prior = -np.log1p((spread / 5) ** 2) + log_spread - position[0] ** 2 / 2
    return prior - (z @ z) / 2 - (misfit @ misfit) / 2


def bits(counter):
    """Splitmix64: 64 bits for each counter, an array of uint64."""
    z = (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(counter):
    """Numbers between 0 and 1, both excluded."""
    return ((bits(counter) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normal(counter):
    """Standard normal numbers by Box and Muller, of twice as many counters."""
    first, second = uniform(2 * counter), uniform(2 * counter + np.uint64(1))
    return np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


def move(position, momentum):
    """Position and momentum after some leapfrog steps."""
    slope = tracegraph.grad(log_density)

    def leap(_, state):
        position, momentum = state
        momentum = momentum + STEP / 2 * slope(position)
        position = position + STEP * momentum
        return position, momentum + STEP / 2 * slope(position)

    return tracegraph.fori_loop(0, LEAPS, leap, (position, momentum))


def chain(number, draws):
    """The positions of a chain, one for each draw, and the part of the moves that it accepted."""
    numbers = np.arange(SIZE + 1).astype(np.uint64)
    own = number.astype(np.uint64) * np.uint64(draws + 1)

    def energy(position, momentum):
        return (momentum @ momentum) / 2 - log_density(position)

    def draw(state, i):
        position, accepted = state
        counters = (own + i.astype(np.uint64) + np.uint64(1)) * np.uint64(SIZE + 1) + numbers
        momentum = normal(counters)[:SIZE]
        moved, turned = move(position, momentum)
        gain = energy(position, momentum) - energy(moved, turned)
        accept = np.log(uniform(~counters)[SIZE]) < gain
        position = np.where(accept, moved, position)
        return (position, accepted + accept), position

    start = normal(own * np.uint64(SIZE + 1) + numbers)[:SIZE]
    (_, accepted), positions = tracegraph.scan(draw, (start, 0), np.arange(draws))
    return positions, accepted / draws


def sample(numbers, draws):
    """The draws of chains of these numbers."""
    return tracegraph.vmap(lambda number: chain(number, draws))(numbers)


sampled = tracegraph.jit(sample, static_argnums=1)


def spread_of_means(draws):
    """Gelman and Rubin's ratio for draws by chain: near 1 where chains agree with each other."""
    count = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = draws.mean(axis=1).var(ddof=1)
    return np.sqrt((count - 1) / count + between / within)


def main():
    """Sample, print means and how well chains agree."""
    numbers = np.arange(CHAINS)
    np.asarray(sampled(numbers, DRAWS)[1])
    began = time.perf_counter()
    positions, accepted = map(np.asarray, sampled(numbers, DRAWS))
    elapsed = time.perf_counter() - began

    kept = positions[:, WARM_UP:]
    means, spreads = 5 * kept[..., 0], np.exp(kept[..., 1])
    ratio = max(spread_of_means(kept[..., i]) for i in range(SIZE))
    counts = sampled.lower(numbers, DRAWS).plan.node_counts
    print(f"chains             {CHAINS}, of {DRAWS} draws, {LEAPS} steps each")
    print(f"graph nodes        {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"accepted           {accepted.mean():.2f}")
    print(f"mean of μ          {means.mean():.2f}")
    print(f"mean of τ          {spreads.mean():.2f}")
    print(f"ratio R            {ratio:.4f}")
    print(f"time per call      {elapsed * 1e3:.0f} ms")
    if ratio > 1.05 or accepted.mean() < 0.5:
        raise SystemExit("the chains do not agree")


if __name__ == "__main__":
    main()
