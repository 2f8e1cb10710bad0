"""Random keys that a loop makes: few kernels make them, or none, and the numbers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.host.executable import HostExecutable
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import KernelNode, walk
from tests.helpers.compiled import nodes_planned_for
from tracegraph import fori_loop, random


def spins(s: Any, key: Any) -> Any:
    """Each step folds in its number, splits, and draws a number for each spin."""

    def step(i: Any, s: Any) -> Any:
        flip, _ = random.split(random.fold_in(key, i))
        near = np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
        return np.where(random.uniform(flip, s.shape) < np.exp(-0.8 * s * near), -s, s)

    return fori_loop(0, 6, step, s)


def walk_in_line(x: Any, key: Any) -> Any:
    """The key is carried: each step splits it, and keeps one half."""

    def step(i: Any, c: Any) -> Any:
        x, key = c
        key, now = random.split(key)
        return np.roll(x, 1) + random.normal(now, x.shape), key

    return fori_loop(0, 6, step, (x, key))


def kernels_of_a_step(function: Any, *arguments: Any) -> int:
    plan = nodes_planned_for(function, *arguments, choices={"loops": "conditional"})
    (loop,) = [node for node in walk(plan.graph) if isinstance(node, WhileNode)]
    return sum(isinstance(node, KernelNode) for node in loop.body.nodes)


@pytest.mark.parametrize(("n", "count"), [(16, 1), (128, 1), (1024, 2)])
def test_keys_have_no_kernel_of_their_own_or_one_for_all(n: int, count: int) -> None:
    copies = 1  # of the spins, whose neighbours are read
    found = kernels_of_a_step(spins, np.ones((n, n), np.float32), random.key(3))
    assert found == count + copies


@pytest.mark.parametrize("function", [spins, walk_in_line])
@pytest.mark.parametrize("n", [3, 64, 300])
def test_the_numbers_are_those_of_plain_python(function: Any, n: int) -> None:
    shape = (n, n) if function is spins else (n * n,)
    arguments = np.ones(shape), np.asarray(random.key(3))
    plan = nodes_planned_for(function, *arguments)
    found = HostExecutable(plan)(list(arguments))
    wanted = function(*arguments)
    for new, old in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(np.asarray(new), np.asarray(old), 1e-12)


def test_a_long_chain_of_keys_is_stored_somewhere() -> None:
    def run(x: Any, key: Any) -> Any:
        for i in range(30):
            key = random.fold_in(key, i)
        return x + random.uniform(key, x.shape)

    plan = nodes_planned_for(run, np.ones(1 << 20), random.key(1))
    assert 2 <= plan.node_counts["KernelNode"] <= 8
