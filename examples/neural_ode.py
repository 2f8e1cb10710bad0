"""A neural ordinary differential equation, fitted by the gradient of its solution.

The slope of a spiral is learned from points along one: a network of one hidden layer gives dy/dt,
a `scan` of Runge-Kutta steps integrates it from several of the points, and `value_and_grad` goes
back through the scan, which keeps the states at some checkpoints and computes the steps between
again. All of the training, by Adam, is one graph: with an NVIDIA GPU a single launch; without, the
same plan runs on the host.

The problem: Chen, Rubanova, Bettencourt and Duvenaud, "Neural Ordinary Differential Equations",
2018. The optimiser: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.

Run: python examples/neural_ode.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph

HIDDEN = 16
POINTS = 200
STEP = 0.025
SEGMENT = 20
"""Steps from a point to the last one that training compares."""
ITERATIONS = 1500
RATE = 0.01

START = np.array([2.0, 0.0])
SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def spiral(y):
    """The slope that is to be learned."""
    return (y**3) @ SPIRAL


def network(weights, y):
    """The slope that the network gives."""
    return np.tanh((y**3) @ weights["in"] + weights["shift"]) @ weights["out"]


def trajectory(slope, start, steps, checkpoints=None):
    """The states after each of the steps of the classical Runge-Kutta method."""

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + STEP / 2 * k1)
        k3 = slope(y + STEP / 2 * k2)
        k4 = slope(y + STEP * k3)
        y = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return tracegraph.scan(step, start, length=steps, checkpoints=checkpoints)[1]


def loss(weights, points):
    """The mean distance of trajectories from the points, which begin at every tenth of them."""
    starts = points[:-SEGMENT:10]
    moved = trajectory(lambda y: network(weights, y), starts, SEGMENT, checkpoints=4)
    wanted = np.stack([points[i : POINTS - SEGMENT + i : 10] for i in range(1, SEGMENT + 1)])
    return np.mean(np.abs(moved - wanted))


def adam(weights, gradient, first, second, count):
    """One step of Adam, for one array: it and the two moments."""
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    mean, square = first / (1 - 0.9**count), second / (1 - 0.999**count)
    return weights - RATE * mean / (np.sqrt(square) + 1e-8), first, second


@tracegraph.jit
def train(weights, points, iterations):
    """The weights after training, and the loss of the last iteration."""
    zeros = tracegraph.tree.map(np.zeros_like, weights)

    def step(i, state):
        weights, first, second, _ = state
        value, gradient = tracegraph.value_and_grad(loss)(weights, points)
        new = {
            name: adam(weights[name], gradient[name], first[name], second[name], i + 1.0)
            for name in weights
        }
        parts = ({name: each[part] for name, each in new.items()} for part in range(3))
        return *parts, value

    state = (weights, zeros, zeros, 0.0)
    weights, _, _, last = tracegraph.fori_loop(0, iterations, step, state)
    return weights, last


def initial():
    """Small random weights."""
    rng = np.random.default_rng(1)
    return {
        "in": rng.normal(size=(2, HIDDEN)) * 0.3,
        "shift": np.zeros(HIDDEN),
        "out": rng.normal(size=(HIDDEN, 2)) * 0.3,
    }


def main():
    """Train, print."""
    points, weights = np.asarray(trajectory(spiral, START, POINTS)), initial()
    before = float(loss(weights, points))
    began = time.perf_counter()
    fitted, after = train(weights, points, ITERATIONS)
    after = float(after)
    elapsed = time.perf_counter() - began
    whole = trajectory(lambda y: network(tracegraph.tree.map(np.asarray, fitted), y), START, POINTS)

    counts = train.lower(weights, points, ITERATIONS).plan.node_counts
    print(f"weights            {sum(w.size for w in weights.values())}")
    print(f"iterations         {ITERATIONS}, of {SEGMENT} steps forwards and backwards")
    print(f"graph nodes        {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"mean distance      {before:.3f} before, {after:.4f} after training")
    print(f"                   {np.abs(whole - points).mean():.4f} along all of the spiral")
    print(f"time of training   {elapsed:.2f} s   (with compilation)")
    if after > 0.2 * before:
        raise SystemExit("the trajectory does not come near the points")


if __name__ == "__main__":
    main()
