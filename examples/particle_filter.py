"""A particle filter, as one graph, and the exact filter that it approaches.

A target moves with a velocity that random accelerations change; its position is measured with an
error. Particles follow the same motion, each measurement weighs them, and systematic resampling
draws the next ones: the running sum of the weights is searched (`np.searchsorted`) for evenly
spaced numbers with one random offset. Time is a `scan`, and `vmap` runs filters with random numbers
of their own. With an NVIDIA GPU all of it is a single launch of a CUDA graph; without, the same
plan runs on the host.

Since the model is linear and its noise normal, the Kalman filter is exact: its means and its
likelihood are what those of the particles must approach.

The method: Doucet and Johansen, "A tutorial on particle filtering and smoothing", 2009.

Run: python examples/particle_filter.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph
from tracegraph import random

PARTICLES = 8192
FILTERS = 16
TIMES = 100
STEP = 0.1

MOTION = np.array([[1.0, STEP], [0.0, 1.0]])  # of position and velocity
PUSH = np.array([STEP**2 / 2, STEP])  # what an acceleration changes
ACCELERATION, ERROR = 1.0, 0.3  # standard deviations
START, SPREAD = np.array([0.0, 1.0]), np.array([0.5, 0.5])


def measured(seed):
    """Measurements of a target, one for each time."""
    rng = np.random.default_rng(seed)
    state, found = START + SPREAD * rng.normal(size=2), []
    for _ in range(TIMES):
        state = MOTION @ state + PUSH * (ACCELERATION * rng.normal())
        found.append(state[0] + ERROR * rng.normal())
    return np.array(found)


def resampled(key, particles, weights):
    """As many particles, each drawn in proportion to its weight."""
    count = weights.shape[0]
    sums = np.cumsum(weights)
    at = (np.arange(count) + random.uniform(key)) / count * sums[-1]
    return particles[np.minimum(np.searchsorted(sums, at), count - 1)]


def particle_filter(key, measurements, count):
    """The mean at each time, and the logarithm of the likelihood of the measurements."""
    first, rest = random.split(key)
    particles = START + SPREAD * random.normal(first, (count, 2))

    def step(carry, measurement):
        key, particles, total = carry
        key, of_motion, of_choice = random.split(key, 3)
        pushes = ACCELERATION * random.normal(of_motion, (count, 1))
        particles = particles @ MOTION.T + pushes * PUSH
        misfit = (measurement - particles[:, 0]) / ERROR
        likelihood = np.exp(-(misfit**2) / 2) / (ERROR * np.sqrt(2 * np.pi))
        mean = np.sum(likelihood[:, None] * particles, axis=0) / np.sum(likelihood)
        total = total + np.log(np.mean(likelihood))
        return (key, resampled(of_choice, particles, likelihood), total), mean

    start = rest, particles, 0.0
    (_, _, total), means = tracegraph.scan(step, start, measurements)
    return means, total


def filters(keys, measurements, count):
    """A particle filter for each key."""
    return tracegraph.vmap(lambda key: particle_filter(key, measurements, count))(keys)


filtered = tracegraph.jit(filters, static_argnums=2)


def kalman_filter(measurements):
    """What particle filters approach: the exact means and logarithm of the likelihood."""
    mean, covariance = START, np.diag(SPREAD**2)
    noise = np.outer(PUSH, PUSH) * ACCELERATION**2
    means, total = [], 0.0
    for measurement in measurements:
        mean, covariance = MOTION @ mean, MOTION @ covariance @ MOTION.T + noise
        variance = covariance[0, 0] + ERROR**2
        surprise = measurement - mean[0]
        total -= (surprise**2 / variance + np.log(2 * np.pi * variance)) / 2
        gain = covariance[:, 0] / variance
        mean = mean + gain * surprise
        covariance = covariance - np.outer(gain, covariance[0])
        means.append(mean)
    return np.array(means), total


def main():
    """Filter, and compare means and likelihoods with the exact ones."""
    measurements = measured(1)
    exact, likelihood = kalman_filter(measurements)
    keys = np.asarray(random.split(random.key(0), FILTERS))
    np.asarray(filtered(keys, measurements, PARTICLES)[1])
    began = time.perf_counter()
    means, totals = map(np.asarray, filtered(keys, measurements, PARTICLES))
    elapsed = time.perf_counter() - began

    counts = filtered.lower(keys, measurements, PARTICLES).plan.node_counts
    errors = np.sqrt(np.mean((means - exact) ** 2, axis=(0, 1)))
    print(f"filters            {FILTERS}, of {PARTICLES} particles, {TIMES} measurements each")
    print(f"graph nodes        {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"error of position  {errors[0]:.1e}, of velocity {errors[1]:.1e}")
    print(f"log likelihood     {totals.mean():.3f} ± {totals.std():.3f}, exact {likelihood:.3f}")
    print(f"time per call      {elapsed * 1e3:.0f} ms")
    if errors.max() > 0.03 or abs(totals.mean() - likelihood) > 0.1:
        raise SystemExit("the particles do not approach the exact filter")


if __name__ == "__main__":
    main()
