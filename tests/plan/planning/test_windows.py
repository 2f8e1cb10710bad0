"""Windows in plans: views that are read in place, and derivatives that update nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.plan.nests.kernel import ScatterNest
from lowering.plan.nodes import KernelNode, walk
from tests.helpers.compiled import plan_of

RNG = np.random.default_rng(6)
X = RNG.normal(size=(3, 9, 8, 4))
W = RNG.normal(size=(3, 2, 4, 5))


def convolved(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, w)


def convolved_by_parts(x, w):
    n, height, width = x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    total = np.zeros((n, height, width, w.shape[3]))
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            total = total + x[:, i : i + height, j : j + width] @ w[i, j]
    return total


def loss(convolution):
    return lambda x, w: np.sum(np.sin(convolution(x, w)))


def derivatives(convolution):
    return tracegraph.grad(loss(convolution), argnums=(0, 1))


def second_derivatives(convolution):
    def along(x, w):
        slopes = derivatives(convolution)(x, w)
        return np.sum(slopes[0] ** 2) + np.sum(slopes[1] ** 3)

    return tracegraph.grad(along, argnums=(0, 1))


@pytest.mark.parametrize("of", [lambda f: f, derivatives, second_derivatives], ids=["0", "1", "2"])
@pytest.mark.parametrize("device", ["host", "cuda"])
def test_convolutions_and_their_derivatives_are_those_of_their_parts(of, device):
    plan = plan_of(of(convolved), X, W, device=device)
    found = HostExecutable(plan, poison=True)([X, W])
    expected = HostExecutable(plan_of(of(convolved_by_parts), X, W, device="host"))([X, W])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_derivatives_of_windows_update_no_array():
    plan = plan_of(derivatives(convolved), X, W)
    nests = [
        n for node in walk(plan.graph) if isinstance(node, KernelNode) for n in node.kernel.nests
    ]
    assert nests
    assert not any(isinstance(nest, ScatterNest) for nest in nests)


def test_lanes_of_windows_are_windows():
    def moving_mean(x):
        return np.lib.stride_tricks.sliding_window_view(x, 3).mean(axis=-1)

    x = RNG.normal(size=(4, 10))
    found = tracegraph.vmap(moving_mean)(x)
    np.testing.assert_allclose(found, [moving_mean(row) for row in x], rtol=1e-14)
