"""A network that four devices train together: each has a part of the data, all have the weights.

The loss is a mean over devices. Its gradient by the weights, which all have, is therefore summed
over devices, and all make the same step: the weights stay the same. The whole training is one loop.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

MESH = tracegraph.Mesh(4, "batch", device="host")
WIDTHS = (2, 16, 16, 1)


def initial(key: Any) -> list[Any]:
    """Weights and biases of each layer."""
    layers = []
    for n, m in pairwise(WIDTHS):
        key, own = tracegraph.random.split(key)
        layers.append((tracegraph.random.normal(own, (n, m)) / np.sqrt(n), np.zeros(m)))
    return layers


def network(layers: Any, x: Any) -> Any:
    """The prediction for each row."""
    for w, b in layers[:-1]:
        x = np.tanh(x @ w + b)
    w, b = layers[-1]
    return (x @ w + b)[:, 0]


def loss(layers: Any, x: Any, y: Any) -> Any:
    """The mean square error over the rows of all devices."""
    return tracegraph.pmean(np.mean((network(layers, x) - y) ** 2), "batch")


@tracegraph.jit
@tracegraph.shard(mesh=MESH, in_specs=(P(), P("batch"), P("batch"), P()), out_specs=P())
def train(layers: Any, x: Any, y: Any, steps: Any) -> Any:
    """The weights and the loss after some steps of gradient descent with momentum."""

    def step(i: Any, state: Any) -> Any:
        layers, speed = state
        gradient = tracegraph.grad(loss)(layers, x, y)
        speed = tracegraph.tree.map(lambda v, g: 0.9 * v - 0.02 * g, speed, gradient)
        return tracegraph.tree.map(lambda w, v: w + v, layers, speed), speed

    still = tracegraph.tree.map(np.zeros_like, layers)
    layers, _ = tracegraph.fori_loop(0, steps, step, (layers, still))
    return layers, loss(layers, x, y)


def data(rows: int) -> tuple[Any, Any]:
    """Points of a square, and a function of them."""
    x = np.random.default_rng(0).uniform(-1, 1, (rows, 2))
    return x, np.sin(3 * x[:, 0]) * x[:, 1]


def main() -> None:
    """Train, and compare with the loss before."""
    x, y = data(512)
    layers = initial(tracegraph.random.key(0))
    _, before = train(layers, x, y, 0)
    _, after = train(layers, x, y, 500)
    print(f"loss {float(before):.4f} before and {float(after):.4f} after 500 steps")


if __name__ == "__main__":
    main()
